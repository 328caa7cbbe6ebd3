package launch_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/files/kinds"
	"github.com/pawlrun/pawl/internal/files/launch"
)

const named = "model_policy: {primary: anthropic/claude-sonnet-4-5}\n"

// written writes files and returns their directory.
func written(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func explained(t *testing.T, file, call string) (launch.Explanation, error) {
	t.Helper()
	f, err := kinds.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return f.Explain(call, launch.Options{Flags: launch.Flags{Workspace: filepath.Dir(file)}})
}

func TestExplainReadsTheFilesOfTheAgentsThatAFileOffers(t *testing.T) {
	dir := written(t, map[string]string{
		"agent.yaml": "identity: {name: lead}\n" + named + "tools: {allow: [fs.read], rules: [{deny: second}], agents: [" +
			"{name: first, description: Reads., file: below/first.yaml}, {name: second, description: Sends., file: below/second.yaml}]}\n",
		"below/first.yaml": "identity: {name: first}\n" + named + "prompt: {system: \"Read ${what}.\"}\ntools: {allow: [fs.read]}\n",
		"below/second.yaml": "identity: {name: second}\n" + named +
			"tools: {allow: [web.fetch], agents: [{name: third, description: Writes., file: third.yaml}]}\n",
		"below/third.yaml": "identity: {name: third}\n" + named + "tools: {allow: [fs.write]}\n",
	})
	for _, c := range []struct {
		call   string
		want   event.Decision
		labels event.Labels
	}{
		{"fs.read a.txt", event.DecisionAllow, event.Labels{Private: true}},
		{"first Look.", event.DecisionAllow, event.Labels{Untrusted: true, Private: true}},
		{"second Send.", event.DecisionDeny, event.Labels{Untrusted: true, Outgoing: true}},
	} {
		e, err := explained(t, filepath.Join(dir, "agent.yaml"), c.call)
		if err != nil {
			t.Errorf("%s: %v", c.call, err)
			continue
		}
		if e.Decision.Decision != c.want || c.call != "fs.read a.txt" && e.Call.Labels != c.labels {
			t.Errorf("%s is %s by %s with the labels %+v; want %s with %+v", c.call, e.Decision.Decision, e.Decision.Rule, e.Call.Labels, c.want, c.labels)
		}
	}
}

func TestExplainJudgesCallsOfGoalsAndLoops(t *testing.T) {
	const goal = "apiVersion: pawl/v1\nkind: Goal\nidentity: {name: g}\nobjective: Make it work.\n" +
		"done: {when: [{command: [\"true\"]}]}\nvalidation: [{command: [\"true\"]}]\n"
	const tools = "tools: {allow: [fs.read, fs.write], rules: [{deny: fs.write, path: \"a/**\"}]}\n"
	dir := written(t, map[string]string{
		"own.yaml":         goal + named + tools,
		"other.yaml":       goal + "agent: below/agent.yaml\n",
		"below/agent.yaml": "identity: {name: worker}\n" + named + tools,
		"loop.yaml":        "identity: {name: loop}\n" + named + tools + "loop: {loopEnabled: true, maxIterations: 3}\n",
		"runner.yaml":      "identity: {name: other}\nloop: {runner: {command: [\"true\"]}}\n",
	})
	for _, file := range []string{"own.yaml", "other.yaml", "loop.yaml"} {
		for call, want := range map[string]event.Decision{
			`fs.write {"path": "a/b", "content": ""}`: event.DecisionDeny, `fs.write {"path": "b", "content": ""}`: event.DecisionAllow,
		} {
			e, err := explained(t, filepath.Join(dir, file), call)
			if err != nil || e.Decision.Decision != want {
				t.Errorf("%s: %s is %s by %s, want %s: %v", file, call, e.Decision.Decision, e.Decision.Rule, want, err)
			}
		}
	}
	if _, err := explained(t, filepath.Join(dir, "runner.yaml"), "fs.read a"); err == nil || !strings.Contains(err.Error(), "true decides itself what it does") {
		t.Errorf("a runner: %v", err)
	}
}

func TestARuleForAToolThatIsNotOfferedIsAWarning(t *testing.T) {
	for _, c := range []struct {
		tools string
		want  []string
	}{
		{"{allow: [fs.read], rules: [{deny: fs.read}, {deny: \"fs.*\"}, {deny: result.read}]}", nil},
		{"{rules: [{deny: shell.exec}, {deny: \"*\"}, {ask: fs.write}]}", nil},
		{"{allow: [fs.read], rules: [{allow: shell.exec, command: \"ls *\"}, {deny: fs.read}, {deny: \"web.*\"}]}", []string{"tools.rules[0].allow", "tools.rules[2].deny"}},
		{"{rules: [{deny: web.fetch}]}", []string{"tools.rules[0].deny"}},
		{"{allow: [], rules: [{deny: result.read}]}", []string{"tools.rules[0].deny"}},
		{"{allow: [], agents: [{name: a, description: A., file: a.yaml}], rules: [{ask: a}]}", nil},
	} {
		dir := written(t, map[string]string{
			"agent.yaml": "identity: {name: x}\n" + named + "tools: " + c.tools + "\n",
			"a.yaml":     "identity: {name: a}\n" + named + "tools: {allow: [fs.read]}\n",
		})
		got, err := checked(t, filepath.Join(dir, "agent.yaml"), dir)
		if err != nil {
			t.Fatal(err)
		}
		var places []string
		for _, w := range got {
			if strings.Contains(w.Message, "offers no tool") {
				places = append(places, w.Path)
			}
		}
		if strings.Join(places, " ") != strings.Join(c.want, " ") {
			t.Errorf("%s: warnings at %v, want %v", c.tools, places, c.want)
		}
	}
}

func checked(t *testing.T, file, workspace string) ([]decode.Problem, error) {
	t.Helper()
	f, err := kinds.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return f.Check(launch.Options{Flags: launch.Flags{Workspace: workspace}})
}

// The validity of a file does not depend on the workspace; a run needs the repository.
func TestAMissingRepositoryIsAWarningOfCheckAndRefusesARun(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"an agent offered": {
			"main.yaml": "identity: {name: x}\n" + named + "tools: {agents: [{name: a, description: A., file: a.yaml, isolation: worktree}]}\n",
			"a.yaml":    "identity: {name: a}\n" + named,
		},
		"a workflow": {
			"main.yaml": "apiVersion: pawl/v1\nkind: Workflow\nname: w\noptions: {isolation: worktree-per-step}\nsteps: [{id: one, command: [\"true\"]}]\n",
		},
	} {
		dir, elsewhere := written(t, files), t.TempDir()
		warnings, err := checked(t, filepath.Join(dir, "main.yaml"), elsewhere)
		text := ""
		for _, w := range warnings {
			text += w.Message + "\n"
		}
		if err != nil || !strings.Contains(text, "refuses this in this workspace: "+elsewhere+" is not in the worktree") {
			t.Errorf("%s: %v, warnings %q", name, err, text)
		}
		f, err := kinds.Read(filepath.Join(dir, "main.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := f.Launch("go", launch.Options{Flags: launch.Flags{Workspace: elsewhere}}); err == nil || !strings.Contains(err.Error(), "is not in the worktree") {
			t.Errorf("%s: a run begins: %v", name, err)
		}
	}
}

// A call of an agent can send data if the agent has a tool that can.
func TestAnAgentWithoutAToolThatCanSendSendsNothing(t *testing.T) {
	for tools, outgoing := range map[string]bool{
		"{allow: [fs.read, fs.write]}":                                                    false,
		"{allow: [fs.read, web.fetch]}":                                                   true,
		"{allow: [web.fetch], permissions: {network: none}}":                              false,
		"{allow: [fs.read, shell.exec]}":                                                  true, // there is no sandbox here
		"{rules: [{deny: shell.exec}]}":                                                   false,
		"{rules: [{deny: shell.exec, command: \"curl *\"}]}":                              true,
		"{mode: plan, allow: [web.fetch]}":                                                true,
		"{allow: [fs.read], agents: [{name: self, description: A., file: child.yaml}]}":   false,
		"{allow: [web.fetch], agents: [{name: self, description: A., file: child.yaml}]}": true,
		"{allow: [], agents: [{name: other, description: A., file: back.yaml}]}":          false,
		"{allow: [], agents: [{name: other, description: A., file: sends.yaml}]}":         true,
		"{allow: [], provider: [web_search], labels: {}}":                                 true,
	} {
		dir := written(t, map[string]string{
			"agent.yaml": "identity: {name: lead}\n" + named + "tools: {allow: [], agents: [{name: child, description: A., file: child.yaml}]}\n",
			"child.yaml": "identity: {name: child}\n" + named + "tools: " + tools + "\n",
			"back.yaml":  "identity: {name: back}\n" + named + "tools: {allow: [fs.read], agents: [{name: child, description: A., file: child.yaml}]}\n",
			"sends.yaml": "identity: {name: sends}\n" + named + "tools: {allow: [web.fetch], agents: [{name: child, description: A., file: child.yaml}]}\n",
		})
		for range 2 {
			e, err := explained(t, filepath.Join(dir, "agent.yaml"), "child Go on.")
			if err != nil || e.Call.Labels.Outgoing != outgoing || (e.Tainted != nil) != outgoing {
				t.Errorf("%s: it sends: %t, with both in the run it is %+v: %v", tools, e.Call.Labels.Outgoing, e.Tainted, err)
			}
		}
	}
}
