package mcpserver_test

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const model = "model_policy: {primary: {model: scripted/the.script}}\n"

// catalog has a file of each kind.
var catalog = map[string]string{
	"the.script": "- text: the end\n",
	"reads.yaml": "identity: {name: reads, description: Reads files.}\nprompt: {system: 'Speak ${language}.'}\ntools: {allow: [fs.read, fs.list]}\n" + model,
	"reports.yaml": "identity: {name: reports}\nprompt: {task: 'Report on ${place}.'}\ntools: {allow: []}\n" + model +
		"resultSchema: {type: object, required: [n], properties: {n: {type: integer}}}\n",
	"writes.yaml": "identity: {name: writes}\ntools: {allow: [fs.write]}\n" + model,
	"hooked.yaml": "identity: {name: hooked}\ntools: {allow: [fs.read]}\nhooks: {after_run: [{command: \"true\"}]}\n" + model,
	"asks.yaml":   "identity: {name: asks}\ntools: {allow: [fs.read], agents: [{name: helper, description: helps, file: writes.yaml}]}\n" + model,
	"looks.yaml":  "name: looks\nagents: {a: {description: looks, prompt: Look., tools: [fs.read], model: scripted/the.script}}\nsteps: [{id: one, agent: a, instructions: Look.}]\n",
	"builds.yaml": "apiVersion: pawl/v1\nname: builds\nagents: {a: {description: looks, prompt: Look., tools: [fs.read], model: scripted/the.script}}\n" +
		"steps: [{id: one, agent: a, instructions: Look.}, {id: two, command: [\"true\"], dependsOn: [one]}]\n",
	"goal.yaml": "apiVersion: pawl/v1\nkind: Goal\nidentity: {name: reaches}\nobjective: Be there.\ndone: {when: [{cel: 'true'}]}\nvalidation: [{cel: 'true'}]\ntools: {allow: [fs.read]}\n" + model,
	"loop.yaml": "identity: {name: repeats}\nprompt: {system: Work.}\ntools: {allow: [fs.read]}\n" + model + "loop: {loopEnabled: true, maxIterations: 2}\n",
	"bad.yaml":  "identity: {name: bad}\nmodel_policy: {primary: {model: nobody/none}}\n",
}

func tools(s site, session *mcp.ClientSession) map[string]*mcp.Tool {
	s.t.Helper()
	page, err := session.ListTools(s.t.Context(), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	named := map[string]*mcp.Tool{}
	for _, tool := range page.Tools {
		named[tool.Name] = tool
	}
	return named
}

func TestEachFileIsATool(t *testing.T) {
	s := newest(t, catalog)
	session := s.connect("", nil)
	for range 2 {
		listed := tools(s, session)
		for name, want := range map[string]struct {
			required string
			readOnly bool
		}{
			"reads": {"task language", true}, "reports": {"", true}, "writes": {"task", false}, "hooked": {"task", false}, "asks": {"task", false},
			"looks": {"", true}, "builds": {"", false}, "reaches": {"", true}, "repeats": {"task", true},
		} {
			tool := listed[name]
			if tool == nil {
				t.Errorf("%s is no tool", name)
				continue
			}
			var schema struct {
				Type       string
				Properties map[string]struct{ Type string }
				Required   []string
			}
			text, err := json.Marshal(tool.InputSchema)
			if err != nil || json.Unmarshal(text, &schema) != nil {
				t.Fatal(err)
			}
			if got := strings.Join(schema.Required, " "); schema.Type != "object" || got != want.required || schema.Properties["task"].Type != "string" {
				t.Errorf("%s takes %s", name, text)
			}
			if a := tool.Annotations; a.ReadOnlyHint != want.readOnly || *a.DestructiveHint == want.readOnly || a.IdempotentHint {
				t.Errorf("%s has the hints %+v", name, a)
			}
			if has := tool.OutputSchema != nil; has != (name == "reports") {
				t.Errorf("%s has an output schema: %t", name, has)
			}
			delete(listed, name)
		}
		if len(listed) > 0 {
			t.Errorf("there are more tools: %v", listed)
		}
	}
}

func TestToolsAreThoseOfTheFilesAsTheyAre(t *testing.T) {
	s := newest(t, map[string]string{"the.script": "- text: the end\n"})
	changed := make(chan struct{}, 10)
	session := s.connect("2025-11-25", &mcp.ClientOptions{ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} }})
	for _, name := range []string{"first", "second"} {
		if listed := tools(s, session); listed[name] != nil {
			t.Fatalf("%s is a tool before it is there", name)
		}
		content := "identity: {name: " + name + "}\ntools: {allow: []}\n" + model
		if err := os.WriteFile(filepath.Join(s.dir, name+".yaml"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if listed := tools(s, session); listed[name] == nil {
			t.Fatalf("%s is no tool", name)
		}
		<-changed
		if _, r := s.callTool(session, name, "", map[string]any{"task": "go"}); text(r) != "the end" || r.IsError {
			t.Errorf("%s gives %s", name, text(r))
		}
	}
	if err := os.Remove(filepath.Join(s.dir, "first.yaml")); err != nil {
		t.Fatal(err)
	}
	if listed := tools(s, session); listed["first"] != nil || listed["second"] == nil {
		t.Errorf("the tools are %v", slices.Sorted(maps.Keys(listed)))
	}
}
