package launch_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
)

const commandAgent = `identity: {name: tickets}
model_policy: {primary: {model: scripted/script.yaml}}
prompt: {system: Work.}
tools:
  allow: [fs.read]
  commands:
    - {name: ticket.lookup, description: Find a ticket., args_file: lookup.json, command: [sh, tools/lookup.sh], effect: idempotent}
`

// ticketWorkspace returns a workspace with an agent and its program.
func ticketWorkspace(t *testing.T, agent string) (dir string, o launch.Options, write func(name, text string)) {
	t.Helper()
	dir = t.TempDir()
	write = func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("script.yaml", "- text: done\n")
	write("lookup.json", `{"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}`)
	write("tools/lookup.sh", "cat; echo ok\n")
	write("agent.yaml", agent)
	return dir, launch.Options{Flags: launch.Flags{Workspace: dir, Dir: dir}}, write
}

// A run pins the programs of tools.commands and their schemas when it begins; a process
// that resumes it uses the same pins.
func TestRunPinsItsCommandTools(t *testing.T) {
	dir, o, write := ticketWorkspace(t, commandAgent)
	started, env, err := launch.Agent(read(t, filepath.Join(dir, "agent.yaml")), "go", o)
	if err != nil {
		t.Fatal(err)
	}
	defer env.Close()
	script := filepath.Join(dir, "tools/lookup.sh")
	if len(started.Commands) != 1 || !slices.Equal(started.Commands[0].Argv, []string{"sh", "tools/lookup.sh"}) ||
		!strings.Contains(string(started.Commands[0].Schema), `"integer"`) ||
		!slices.ContainsFunc(started.Commands[0].Files, func(f event.CommandFile) bool { return f.Path == script && strings.HasPrefix(f.Digest, "sha256:") }) {
		t.Fatalf("pinned %+v", started.Commands)
	}
	var cfg struct {
		Policy struct{ Protected []string }
	}
	if err := json.Unmarshal(started.Config, &cfg); err != nil || !slices.Contains(cfg.Policy.Protected, "tools/lookup.sh") || !slices.Contains(cfg.Policy.Protected, "lookup.json") {
		t.Errorf("protected %v, %v", cfg.Policy.Protected, err)
	}
	write("lookup.json", `{"type": "object", "properties": {"other": {"type": "string"}}}`)
	resumed, err := launch.Environment(started, o)
	if err != nil {
		t.Fatal(err)
	}
	defer resumed.Close()
	says := func(env perform.Env, args string) string {
		call := env.Tools.Resolve("c", llm.ToolCall{Name: "ticket.lookup", Args: json.RawMessage(args)})
		if call.Problem != nil {
			return string(call.Problem.Type) + ": " + call.Problem.Message
		}
		lookup, _ := env.Tools.Lookup("ticket.lookup")
		r, err := lookup.Run(t.Context(), tool.Call{ID: "c", Key: "k", Args: call.Args, Facts: call.Facts})
		if err != nil {
			return err.Error()
		}
		return r.Output
	}
	for where, env := range map[string]perform.Env{"in the run": env, "when it is resumed": resumed} {
		write("tools/lookup.sh", "cat; echo ok\n")
		if got := says(env, `{"id":1}`); got != `{"id":1}`+"ok\n" {
			t.Errorf("%s: %s", where, got)
		}
		if got := says(env, `{"other":"x"}`); !strings.HasPrefix(got, "invalid_arguments") {
			t.Errorf("%s the schema is the changed one: %s", where, got)
		}
		write("tools/lookup.sh", "echo changed\n")
		if got := says(env, `{"id":1}`); !strings.HasPrefix(got, "conflict") || !strings.Contains(got, "is not what it was when the run began") {
			t.Errorf("%s the changed program says %s", where, got)
		}
		lookup, _ := env.Tools.Lookup("ticket.lookup")
		if _, err := lookup.Run(t.Context(), tool.Call{Args: json.RawMessage(`{"id":1}`)}); err == nil {
			t.Errorf("%s the program changed after its call was judged, and ran", where)
		}
	}
}

func TestCommandToolsThatAreRefused(t *testing.T) {
	for what, test := range map[string]struct{ from, to, problem string }{
		"a built-in name": {"ticket.lookup", "fs.edit", `"fs.edit" is a built-in tool`},
		"an alias":        {"ticket.lookup", "bash", `"bash" is a built-in tool`},
		"two of a name": {"    - {name", "    - {name: ticket.lookup, description: x, command: [sh]}\n    - {name",
			`"ticket.lookup" is given twice`},
		"no such program": {"[sh, tools/lookup.sh]", "[no-such-program]", "no-such-program is not found in $PATH"},
		"no such script":  {"tools/lookup.sh", "tools/other.py", "tools/other.py is not there"},
		"no description":  {"description: Find a ticket., ", "", "description: is missing"},
		"both schemas":    {"args_file", "args: {type: object}, args_file", "both are given"},
		"no object":       {"args_file: lookup.json", "args: {type: string}", "not that of an object"},
		"no such secret":  {"effect", "secrets: [TOKEN], effect", `"TOKEN" is not one`},
		"a bounded secret": {"  commands:", "  secrets: {TOKEN: {env: T, hosts: [example.com]}}\n  commands:\n    - {name: x, description: x, command: [sh], secrets: [TOKEN]}",
			"the hosts of TOKEN would not hold"},
		"another effect":     {"effect: idempotent", "effect: maybe", "idempotent"},
		"no sandbox to hold": {"effect", "network: none, effect", "which nothing holds for programs that run without a sandbox"},
	} {
		t.Run(what, func(t *testing.T) {
			dir, o, _ := ticketWorkspace(t, strings.Replace(commandAgent, test.from, test.to, 1))
			o.Getenv = func(string) string { return "a-secret-value" }
			_, env, err := launch.Agent(read(t, filepath.Join(dir, "agent.yaml")), "go", o)
			if err == nil {
				env.Close()
			}
			if err == nil || !strings.Contains(err.Error(), test.problem) {
				t.Errorf("%v; want %q", err, test.problem)
			}
		})
	}
}

// A file that was sent cannot start any program of this machine.
func TestSentFileHasNoCommandTools(t *testing.T) {
	_, o, _ := ticketWorkspace(t, commandAgent)
	for _, text := range []string{commandAgent, strings.Replace(commandAgent, "tools:\n", "loop: {loopEnabled: true, maxIterations: 2}\ntools:\n", 1)} {
		_, _, err := launch.Agent(launch.File{Path: "sent.yaml", Text: []byte(text), Sent: true}, "go", o)
		if err == nil || !strings.Contains(err.Error(), "tools.commands[0]: starts a program of this machine, which a file that was sent may not") {
			t.Errorf("%v", err)
		}
	}
}

// A tool of the file is offered with an empty tools.allow and without one, unless a
// rule denies it. It then needs no approval, unless its risk requires one.
func TestCommandToolsAreOffered(t *testing.T) {
	for tools, want := range map[string]string{
		"  allow: []\n": "allow", "": "allow", "  allow: []\n  rules: [{deny: ticket.lookup}]\n": "hidden",
		"  allow: []\n  risks: {ticket.lookup: delete}\n": "ask", "  allow: []\n  approvals: {ticket.lookup: always}\n": "ask",
	} {
		_, o, _ := ticketWorkspace(t, commandAgent)
		text := strings.Replace(commandAgent, "  allow: [fs.read]\n", tools+"  mode: bypass\n", 1)
		e, err := launch.Explain(launch.File{Path: filepath.Join(o.Workspace, "agent.yaml"), Text: []byte(text)}, `ticket.lookup {"id": 1}`, o)
		if err != nil {
			t.Fatalf("%q: %v", tools, err)
		}
		got := string(e.Decision.Decision)
		if e.Hidden != "" {
			got = "hidden"
		}
		if tools == "" && !slices.ContainsFunc(e.Rules, func(v policy.Verdict) bool { return v.Rule == "tools.commands" && v.Decision == event.DecisionAllow }) {
			t.Errorf("without tools.allow nothing but the mode allows it: %+v", e.Rules)
		}
		if got != want {
			t.Errorf("%q: %s by %s, want %s", tools, got, e.Decision.Rule, want)
		}
	}
}
