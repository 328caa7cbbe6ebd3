package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine/agent"
)

const readsSkill = "- tool_calls: [{name: skill.read, arguments: {name: review}}]\n- text: the answer\n"

// started returns the first event of a run, and its system text.
func (p project) started(run string) (event.RunStarted, string) {
	p.t.Helper()
	started, err := drive.At[event.RunStarted](p.t.Context(), p.journal(), run, 0)
	if err != nil {
		p.t.Fatal(err)
	}
	var c agent.Config
	if err := json.Unmarshal(started.Config, &c); err != nil {
		p.t.Fatal(err)
	}
	return started, c.System
}

// A person agrees once, continues in another process, and must agree again to a changed
// file.
func TestTheTextsOfATreeAreUsedOnceTheyAreTrusted(t *testing.T) {
	p := newProject(t, map[string]string{
		"agent.yaml": slowly, "script.yaml": readsSkill, "AGENTS.md": "Run the tests.",
		".agents/skills/review/SKILL.md": "---\nname: review\ndescription: Finds bugs.\n---\nLook twice.\n",
	})
	args := []string{"code", "--agent", "agent.yaml", "-p", "go"}
	const question, used = "[y/N]", "## AGENTS.md\n\nRun the tests.\n\n## Skills\n\n"
	y, s := p.atTerminal(nil, args...)
	p.eventually("it asks", func() bool { return strings.Contains(y.plain(), question) })
	for _, text := range []string{"AGENTS.md (14 bytes)", "the skill review: Finds bugs."} {
		if !strings.Contains(y.plain(), text) {
			t.Errorf("the question does not name %q: %q", text, y.plain())
		}
	}
	y.types("y\n")
	if f := s.wait(); f.code != 0 {
		t.Fatalf("it exits with %d: %q", f.code, y.seen())
	}
	first := p.newest()
	started, system := p.started(first)
	if !strings.HasPrefix(system, used) || !strings.HasSuffix(system, "- review: Finds bugs.") || len(started.Instructions) != 1 || len(started.Skills) != 1 {
		t.Errorf("the system text is %q, with %v and %v", system, started.Instructions, started.Skills)
	}
	if log := p.exits(0, "runs", "log", first).out; !strings.Contains(log, "Look twice.") {
		t.Errorf("the skill is not read: %s", log)
	}

	// The answer holds for the content, also without a terminal; the session keeps the texts.
	p.exits(0, args...)
	if _, system := p.started(p.newest()); !strings.HasPrefix(system, used) {
		t.Errorf("the second session has the system text %q", system)
	}
	p.write(".agents/skills/review/SKILL.md", "---\nname: review\ndescription: Finds bugs.\n---\nDelete them.\n")
	p.exits(0, "code", "--resume", first, "-p", "again")
	again := p.newest()
	if started, system := p.started(again); !strings.HasPrefix(system, used) || len(started.Skills) != 1 || len(started.Instructions) != 1 {
		t.Errorf("the continued session has the system text %q", system)
	}
	if log := p.exits(0, "runs", "log", again).out; strings.Contains(log, "Delete them.") || !strings.Contains(log, "has changed since the run began") {
		t.Errorf("a changed skill: %s", log)
	}

	// Another content is another question; without an answer it is left out.
	got := p.exits(0, args...)
	if _, system := p.started(p.newest()); system != "" || !strings.Contains(got.err, "do not trust them: AGENTS.md, the skill review; --trust") {
		t.Errorf("a changed skill has the system text %q: %s", system, got.err)
	}
	y, s = p.atTerminal(nil, args...)
	p.eventually("it asks again", func() bool { return strings.Contains(y.plain(), question) })
	y.types("\n")
	s.wait()
	if _, system := p.started(p.newest()); system != "" {
		t.Errorf("Enter trusts: %q", system)
	}
	p.exits(0, append(args, "--trust")...)
	if _, system := p.started(p.newest()); !strings.HasPrefix(system, used) {
		t.Errorf("--trust has the system text %q", system)
	}
}

// An agent file that names them is its owner's decision.
func TestAnAgentFileNamesItsSkills(t *testing.T) {
	p := newProject(t, map[string]string{
		"agent.yaml": slowly + "tools: {allow: []}\nskills: [mine]\n", "script.yaml": readsSkill, "AGENTS.md": "Not asked for.",
		"mine/review/SKILL.md": "---\nname: review\ndescription: Finds bugs.\n---\nLook twice.\n",
	})
	for range 2 {
		if got := p.exits(0, "run", "agent.yaml", "go"); !strings.Contains(got.out, "the answer") {
			t.Errorf("it prints %q", got.out)
		}
		run := p.newest()
		if _, system := p.started(run); strings.Contains(system, "Not asked for.") || !strings.HasSuffix(system, "- review: Finds bugs.") {
			t.Errorf("the system text is %q", system)
		}
		if log := p.exits(0, "runs", "log", run).out; !strings.Contains(log, "Look twice.") {
			t.Errorf("the skill is not read: %s", log)
		}
	}
	p.write("mine/review/SKILL.md", "no head")
	if got := p.exits(exitUsage, "check", "agent.yaml"); !strings.Contains(got.err, "skills[0]: cannot be used: review/SKILL.md is not used: it has no head") {
		t.Errorf("a skill without a head: %s", got.err)
	}
}
