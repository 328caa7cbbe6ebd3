package spec_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/stop"
)

// rows: ALDO-69
func TestAgentBuiltInCodeIsHeldToTheRulesOfAFile(t *testing.T) {
	good := func() *spec.Agent {
		return &spec.Agent{
			Identity:    spec.Identity{Name: "fixer"},
			ModelPolicy: spec.ModelPolicy{Primary: spec.Model{Model: "scripted/a.yaml"}},
			Iteration:   &spec.Iteration{Settings: spec.Settings{MaxCycles: new(3)}},
		}
	}
	if err := good().Validate(rules); err != nil {
		t.Fatal(err)
	}
	for path, spoil := range map[string]func(*spec.Agent){
		"composite":                 func(a *spec.Agent) { a.Composite = &spec.Composite{Strategy: "debate"} },
		"iteration.max_cycles":      func(a *spec.Agent) { a.Iteration.MaxCycles = new(0) },
		"tools.allow[0]":            func(a *spec.Agent) { a.Tools.Allow = spec.Names{"fs.raed"} },
		"tools.permissions.network": func(a *spec.Agent) { a.Tools.Permissions = &spec.Permissions{Network: "some"} },
		"identity.name":             func(a *spec.Agent) { a.Identity.Name = "" },
		"prompt.system_file":        func(a *spec.Agent) { a.Prompt.SystemFile = "nowhere.md" },
		"budgets.max_total_cost":    func(a *spec.Agent) { a.Budgets.MaxTotalCost = -2 },
		"iteration.termination_conditions[0].kind": func(a *spec.Agent) {
			a.Iteration.TerminationConditions = []stop.Condition{{Kind: "never"}}
		},
	} {
		a := good()
		spoil(a)
		var problems decode.Errors
		if !errors.As(a.Validate(rules), &problems) || len(problems) != 1 || problems[0].Path != path {
			t.Errorf("%s: got %v", path, problems)
		}
	}
}

// Problems of an agent without a file have no places to be told in the order of.
func TestProblemsWithoutPositionsKeepTheirOrder(t *testing.T) {
	a := &spec.Agent{
		Identity: spec.Identity{Name: "x"}, ModelPolicy: spec.ModelPolicy{Primary: spec.Model{Model: "scripted/a.yaml"}},
		Tools: spec.Tools{
			Approvals: map[string]string{"fs.read": "a", "fs.edit": "b", "fs.list": "c", "fs.write": "d"},
			Rules:     []spec.Rule{{Allow: "no.a", Ask: "no.b", Deny: "no.c", Sandbox: "no.d"}},
		},
	}
	first := a.Validate(rules)
	if first == nil || strings.Count(first.Error(), "\n") < 8 {
		t.Fatalf("problems: %v", first)
	}
	for range 20 {
		if again := a.Validate(rules); again.Error() != first.Error() {
			t.Fatalf("once\n%v\nthen\n%v", first, again)
		}
	}
}

func TestTextOfAnAgentBuiltInCodeRestoresIt(t *testing.T) {
	for name, a := range map[string]*spec.Agent{
		"hooks": {
			Identity: spec.Identity{Name: "x"},
			Hooks: &spec.Hooks{
				BeforeTool: []spec.Hook{{
					Name: "guard", Command: spec.Command{Words: []string{"./guard", "--strict"}}, Tools: []string{"fs.*"},
					TimeoutSeconds: new(spec.Seconds(2.5)), Kind: "gate",
				}},
				PostToolUse: []spec.Hook{{Command: spec.Command{Line: "cat > log # all of it"}, ToolPattern: "*"}},
			},
		},
		"no tools": {
			Identity: spec.Identity{Name: "fixer", Version: "0.1.0"},
			Tools:    spec.Tools{Allow: spec.Names{}},
		},
		"all tools": {Identity: spec.Identity{Name: "fixer"}},
		"much": {
			Identity: spec.Identity{Name: "fixer"},
			ModelPolicy: spec.ModelPolicy{
				Primary: spec.Model{Model: "scripted/a.yaml"}, Roles: spec.Roles{Editor: spec.Model{Model: "scripted/b.yaml"}},
				Decoding: spec.Decoding{Temperature: new(0.0)},
			},
			Tools: spec.Tools{
				Allow: spec.Names{"fs.read"}, Approvals: map[string]string{"fs.read": "always"},
				Timeouts: spec.Timeouts{"fs.read": 2.5},
			},
			Settings: spec.Settings{OnLimit: "ok", MaxNudges: new(2)},
			Iteration: &spec.Iteration{TerminationConditions: []stop.Condition{
				{Kind: "tool-result", Tool: "fs.read", Match: stop.Match{ExitCode: new(0)}},
			}},
		},
	} {
		if err := a.Validate(rules); err != nil {
			t.Fatal(err)
		}
		text, err := a.Text()
		if err != nil {
			t.Fatal(err)
		}
		b, err := spec.Restore("", text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(a, b, cmpopts.IgnoreUnexported(spec.Agent{}), cmpopts.IgnoreFields(spec.Agent{}, "Dir", "Warnings")); diff != "" {
			t.Errorf("%s (-built +restored):\n%s\n%s", name, diff, text)
		}
	}
}

func TestRestoreNeedsNoOtherFile(t *testing.T) {
	a, err := spec.Restore("/gone/agent.yaml", []byte(small+"prompt: {system_file: gone.md}\ntools: {allow: [gone.tool]}\n"))
	if err != nil || len(a.Tools.Allow) != 1 {
		t.Errorf("got %v, %v", a, err)
	}
	if _, err := spec.Restore("a.yaml", []byte("- a")); err == nil {
		t.Error("a list was restored as an agent")
	}
}

func TestIterationBlockIsLaidOverTheTopLevel(t *testing.T) {
	a := parse(t, "a.yaml", small+"max_cycles: 9\non_limit: fail\niteration: {max_cycles: 12, tool_dispatch: serial}\n")
	got := a.Effective()
	want := spec.Settings{MaxCycles: new(9), OnLimit: "fail", ToolDispatch: "serial"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if *a.Iteration.MaxCycles != 12 || *a.MaxCycles != 9 {
		t.Error("the file's own values were changed")
	}
}

// rows: ALF-40
func TestChainIsTheConfiguredModelThenFallbacksThenRoles(t *testing.T) {
	const roles = "roles: {subagent: x/s, architect: x/a, editor: x/e}"
	for policy, want := range map[string]string{
		"primary: x/p": "x/p",
		"primary: {model: x/p}, fallbacks: [x/f, x/p, x/g]":      "x/p x/f x/g",
		"primary: x/p, " + roles:                                 "x/p x/a x/e x/s",
		"primary: x/p, role: subagent, " + roles:                 "x/p x/s x/a x/e",
		"primary: x/e, fallbacks: [x/f], role: editor, " + roles: "x/e x/f x/a x/s",
		"role: editor, " + roles:                                 "x/e x/a x/s",
		roles:                                                    "x/a x/e x/s",
	} {
		a := parse(t, "a.yaml", "identity: {name: x}\nmodel_policy: {"+policy+"}\n")
		if got := strings.Join(a.Chain(), " "); got != want {
			t.Errorf("%s: chain is %s, want %s", policy, got, want)
		}
	}
}

func TestPromptFileIsReadBesideTheAgentFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "p.md"), []byte("\ufeffYou fix tests.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := parse(t, filepath.Join(dir, "a.yaml"), small+"prompt: {system_file: p.md}\n")
	if a.System != "You fix tests.\n" {
		t.Errorf("system is %q", a.System)
	}
}

func TestModelIsCheckedWhereTheFileNamesIt(t *testing.T) {
	o := spec.Options{CheckModel: func(dir, name string) error { return errors.New(dir + " has no " + name) }}
	text := "identity: {name: x}\nmodel_policy:\n  primary: {model: x/p}\n  fallbacks: [x/f]\n"
	_, err := spec.ParseAgent("dir/a.yaml", []byte(text), o)
	want := "dir/a.yaml:3:20: model_policy.primary.model: dir has no x/p (expected a model that can be called)\n" +
		"dir/a.yaml:4:15: model_policy.fallbacks[0].model: dir has no x/f (expected a model that can be called)"
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	o.Model = "x/other"
	if _, err := spec.ParseAgent("dir/a.yaml", []byte(text), o); err != nil {
		t.Errorf("a replaced model was checked: %v", err)
	}
}
