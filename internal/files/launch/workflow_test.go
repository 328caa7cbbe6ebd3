package launch_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/files/workflow"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
)

// obliging is a model that returns a result that fits the requested schema: true for a
// boolean, two items for a list. Without a schema it answers that it is done.
type obliging struct{ llm.Model }

func (obliging) Generate(_ context.Context, req *llm.Request) (*llm.Response, error) {
	for _, t := range req.Tools {
		if t.Name != "submit_result" {
			continue
		}
		args, err := json.Marshal(fits(t.Schema))
		return &llm.Response{Parts: llm.Parts{llm.ToolCall{ProviderID: "r", Name: t.Name, Args: args}}, Finish: llm.FinishTool}, err
	}
	return &llm.Response{Parts: llm.Parts{llm.Text{Text: "Done: LGTM, healthy."}}, Finish: llm.FinishEnd}, nil
}

// fits returns a value that a schema accepts.
func fits(schema json.RawMessage) any {
	var s struct {
		Type       string
		Properties map[string]json.RawMessage
		Items      json.RawMessage
	}
	_ = json.Unmarshal(schema, &s)
	switch s.Type {
	case "object":
		object := map[string]any{}
		for name, property := range s.Properties {
			object[name] = fits(property)
		}
		return object
	case "array":
		return []any{fits(s.Items), fits(s.Items)}
	case "boolean":
		return true
	}
	return "x"
}

func obliged(t *testing.T) launch.Options {
	t.Helper()
	return launch.Options{
		Flags: launch.Flags{Model: "scripted/" + filepath.Join(t.TempDir(), "unused.yaml"), Workspace: t.TempDir(), Approve: agent.ApproveAll},
		Host: launch.Host{Dress: func(env *perform.Env) {
			env.Model = func(string) (llm.Model, string, error) { return obliging{}, "obliging", nil }
		}},
	}
}

// Every example of the specification and every snippet of the page on loops runs.
// rows: DAG-1, DAG-2, DAG-5..9, DAG-13, DAG-14, DAG-22, DAG-23, DAG-31..33, DAG-39..41
func TestTheExamplesOfWorkflowsRun(t *testing.T) {
	var paths []string
	for _, pattern := range []string{"examples/*.yaml", "examples/*.json", "seed/*.yaml"} {
		found, err := filepath.Glob("../workflow/testdata/" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, found...)
	}
	if len(paths) != 23 {
		t.Fatalf("%d files", len(paths))
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			o := obliged(t)
			if err := os.WriteFile(strings.TrimPrefix(o.Model, "scripted/"), []byte("- text: unused"), 0o600); err != nil {
				t.Fatal(err)
			}
			text = []byte(strings.ReplaceAll(string(text), `delay: "`, `delay: "0s" # `)) // the test does not wait for it
			started, env, err := launch.Workflow(launch.File{Path: path, Text: text}, "", o)
			if err != nil {
				t.Fatal(err)
			}
			_, events := run(t, memory.New(nil), started, env)
			last, _ := events[len(events)-1].Data.(event.RunCompleted)
			if !last.Outcome.OK || last.Outcome.Steps == nil || last.Outcome.Steps.Failed > 0 {
				t.Errorf("it ends as %+v", events[len(events)-1].Data)
			}
		})
	}
}

// An agent of a workflow has the same permissions as an agent file with the same keys.
func TestTheAgentsOfAWorkflowAreThoseOfAgentFiles(t *testing.T) {
	dir := t.TempDir()
	fixer := filepath.Join(dir, "agents", "fixer.yaml")
	if err := os.MkdirAll(filepath.Dir(fixer), 0o700); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "s.yaml")
	for path, text := range map[string]string{
		fixer:  "identity: {name: fixer}\nmodel_policy: {primary: scripted/" + script + "}\nprompt: {system: You fix.}\ntools: {allow: [fs.edit]}\nmax_cycles: 7\n",
		script: "- text: done\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text := `apiVersion: pawl/v1
name: agents
agents:
  reader: {description: Reads., prompt: "You read ${things}.", model: scripted/s.yaml, tools: [read, search], disallowedTools: [search], maxTurns: 3, temperature: 0.5}
  careful: {description: Runs., model: scripted/s.yaml, disallowedTools: [bash], approvals: {fs.write: always}}
  fixer: {file: agents/fixer.yaml}
  plain: {description: Does.}
steps:
- {id: a, agent: reader, maxRetries: 2}
- {id: b, agent: careful, model: openai/gpt-5}
- {id: c, agent: fixer}
- {id: d}
- {id: e, agent: plain}
`
	o := obliged(t)
	o.Model, o.Getenv = "", func(name string) string { return map[string]string{"OPENAI_API_KEY": "key"}[name] }
	o.Config.Classes = map[string]string{"default": "scripted/" + script}
	o.Limits = []launch.Limit{{Setting: "max_cycles", Value: 4}}
	started, env, err := launch.Workflow(launch.File{Path: filepath.Join(dir, "w.yaml"), Text: []byte(text)}, "go", o)
	if err != nil {
		t.Fatal(err)
	}
	configs := map[string]agent.Config{}
	for name, child := range env.Children {
		begun, inner, err := child.Begin(json.RawMessage(`{"task": "do it"}`))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var cfg agent.Config
		if err := json.Unmarshal(begun.Config, &cfg); err != nil {
			t.Fatal(err)
		}
		configs[name] = cfg
		if inner.Close != nil {
			_ = inner.Close()
		}
	}
	reader, careful := configs["reader with 2 retries"], configs["careful with openai/gpt-5"]
	if reader.System != "You read ${things}." || *reader.Temperature != 0.5 || reader.Limits.MaxCycles != 4 || *reader.Limits.MaxToolRetries != 2 || !slices.Equal(tools(reader), []string{"fs.read", "result.read", "send_message"}) {
		t.Errorf("reader: %+v", reader)
	}
	if careful.Targets[0].Model != "openai/gpt-5" || slices.Contains(tools(careful), "shell.exec") || !slices.Contains(tools(careful), "fs.grep") || !slices.Equal(careful.Policy.Gates, []string{"fs.write"}) || careful.Policy.Declared {
		t.Errorf("careful: %+v, %v", careful.Policy, tools(careful))
	}
	if fixer := configs["fixer"]; fixer.System != "You fix." || !slices.Contains(tools(fixer), "fs.edit") {
		t.Errorf("fixer: %+v", fixer)
	}
	if d := configs[workflow.DefaultAgent]; d.System != "" || d.Targets[0].Model != "scripted/"+script || !slices.Contains(tools(d), "shell.exec") || d.Policy.Declared {
		t.Errorf("without an agent: %+v", d)
	}
	if plain := configs["plain"]; plain.Targets[0].Model != "scripted/"+script {
		t.Errorf("without a model: %+v", plain)
	}
	if started.Kind != "Workflow" || len(started.Agents) != 6 || started.Machine != "flow/1" {
		t.Errorf("started: %s %s, %d agents", started.Machine, started.Kind, len(started.Agents))
	}

	// A context file that is not text is sent with the task.
	begun, inner, err := env.Children["fixer"].Begin(json.RawMessage(`{"task": "look", "media": [{"mediaType": "image/png", "name": "a.png", "data": "AAAA"}]}`))
	if err != nil || begun.Input == nil || len(begun.Input.Parts) != 2 {
		t.Errorf("with an image: %+v, %v", begun.Input, err)
	}
	if inner.Close != nil {
		_ = inner.Close()
	}

	// Pinned texts do not depend on the files.
	if err := os.Remove(fixer); err != nil {
		t.Fatal(err)
	}
	again, err := launch.WorkflowFiles().Resume(started, obliged(t))
	if err != nil || len(again.Children) != 6 {
		t.Fatalf("resumed: %d agents, %v", len(again.Children), err)
	}
	if _, _, err := again.Children["fixer"].Begin(json.RawMessage(`{"task": "do it"}`)); err != nil {
		t.Errorf("its file is gone: %v", err)
	}
}

func tools(cfg agent.Config) []string {
	var names []string
	for _, t := range cfg.Tools {
		names = append(names, t.Name)
	}
	slices.Sort(names)
	return names
}

func TestWorkflowInputIsRedactedBySecretsOfItsAgents(t *testing.T) {
	t.Setenv("WORKFLOW_TOKEN", "s3cr3t-of-a-step")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte("identity: {name: a}\nmodel_policy: {primary: openai/gpt-5}\ntools: {allow: [shell.exec], secrets: {TOKEN: {env: WORKFLOW_TOKEN, tools: [shell.exec]}, LOST: {env: NO_SUCH_VARIABLE, tools: [shell.exec]}}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := "apiVersion: pawl/v1\nname: x\nagents: {a: {file: a.yaml}}\nsteps: [{id: s, agent: a, instructions: Do it.}]"
	o := obliged(t)
	o.Model, o.Getenv = "", func(name string) string {
		return map[string]string{"OPENAI_API_KEY": "key", "WORKFLOW_TOKEN": "s3cr3t-of-a-step", "NO_SUCH_VARIABLE": "there when it began"}[name]
	}
	started, env, err := launch.Workflow(launch.File{Path: filepath.Join(dir, "w.yaml"), Text: []byte(text)}, "", o)
	if err != nil || env.Secrets == nil {
		t.Fatalf("%v, %v", env.Secrets, err)
	}
	r, missing, err := launch.WorkflowFiles().Redactor(started)
	if err != nil || !slices.Equal(missing, []string{"LOST"}) || strings.Contains(r.RedactString("say s3cr3t-of-a-step"), "s3cr3t") {
		t.Errorf("%v, %v", missing, err)
	}
}
