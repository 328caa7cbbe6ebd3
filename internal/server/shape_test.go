package server_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/journal/memory"
)

// shown is a file as the API shows it.
type shown struct {
	Name, Kind, File, Key, Task, Description, Problem string
	Vars, TaskVars, Models                            []string
	InputOptional, ReadOnly                           bool
	Limits                                            map[string]float64
	Tools                                             []struct{ Name, Decision, Rule string }
	Problems, Warnings                                []struct {
		Line, Column  int
		Path, Message string
	}
}

func TestFileIsShownWithWhatARunOfItTakes(t *testing.T) {
	s, dir := newServerOn(t, memory.New(nil), map[string]string{
		"writes.yaml": "identity: {name: writes, description: writes files}\nprompt: {system: \"You write ${kind}.\", task: \"Write ${what}.\"}\nmodel_policy: {primary: {model: scripted/s.script.yaml}}\n" +
			"max_cycles: 7\ntools: {allow: [fs.read, fs.write, fs.edit], approvals: {fs.write: always}}\nbudgets: {max_tool_calls: 9}\n",
		"s.script.yaml": "- {text: done}\n",
		"wrong.yaml":    "identity: {name: wrong}\nmodel_policy: {primary: {model: scripted/s.script.yaml}}\ntools: {allow: [fs.nothing]}\n",
		"flow.yaml": "apiVersion: pawl/v1\nname: flow\nagents: {w: {description: d, model: scripted/s.script.yaml, tools: []}}\n" +
			"steps: [{id: a, agent: w, instructions: x}, {id: b, agent: w, instructions: y, dependsOn: [a], loop: {forEach: [1, 2]}}]\n",
	})
	l := local{s, t}
	writes := gets[shown](l, http.StatusOK, http.MethodGet, "/v1/files/writes", "")
	if writes.Key != "agent" || writes.File != "writes.yaml" || writes.Description != "writes files" || writes.Task != "Write ${what}." || !writes.InputOptional || writes.ReadOnly {
		t.Errorf("%+v", writes)
	}
	if !slices.Equal(writes.Vars, []string{"kind"}) || !slices.Equal(writes.TaskVars, []string{"what"}) || !slices.Equal(writes.Models, []string{"scripted/s.script.yaml"}) {
		t.Errorf("%v, %v, %v", writes.Vars, writes.TaskVars, writes.Models)
	}
	if writes.Limits["max_cycles"] != 7 || writes.Limits["max_tool_calls"] != 9 || writes.Limits["usd_per_run"] != 5 {
		t.Errorf("%v", writes.Limits)
	}
	gates := map[string]string{}
	for _, tool := range writes.Tools {
		gates[tool.Name] = tool.Decision
	}
	if gates["fs.read"] != "allow" || gates["fs.write"] != "ask" || gates["fs.edit"] != "allow" || gates["shell.exec"] != "" {
		t.Errorf("%v", writes.Tools)
	}

	wrong := gets[shown](l, http.StatusOK, http.MethodGet, "/v1/files/wrong", "")
	if len(wrong.Problems) != 1 || wrong.Problems[0].Line != 3 || wrong.Problems[0].Column == 0 || !strings.Contains(wrong.Problems[0].Path, "tools.allow") || wrong.Problem == "" {
		t.Errorf("%+v", wrong)
	}
	if err := os.WriteFile(filepath.Join(dir, "wrong.yaml"), []byte("identity: {name: wrong}\nmodel_policy: {primary: {model: scripted/s.script.yaml}}\ntools: {allow: [fs.read]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if right := gets[shown](l, http.StatusOK, http.MethodGet, "/v1/files/wrong", ""); len(right.Problems) != 0 || !right.ReadOnly || right.InputOptional {
		t.Errorf("%+v", right)
	}
	if flow := gets[shown](l, http.StatusOK, http.MethodGet, "/v1/files/flow", ""); flow.Key != "workflow" || len(flow.Problems) != 0 || !flow.InputOptional {
		t.Errorf("%+v", flow)
	}
	drawn := gets[struct {
		Tree, Mermaid string
		Plan          struct{ Steps []struct{ ID string } }
	}](l, http.StatusOK, http.MethodGet, "/v1/files/flow/plan", "")
	if !strings.HasPrefix(drawn.Tree, "flow\n├─ a") || !strings.Contains(drawn.Mermaid, "flowchart") || len(drawn.Plan.Steps) != 2 || drawn.Plan.Steps[1].ID != "b" {
		t.Errorf("%+v", drawn)
	}
	l.refuses(http.StatusNotFound, "not-found", http.MethodGet, "/v1/files/writes/plan", "")
	l.refuses(http.StatusNotFound, "not-found", http.MethodGet, "/v1/files/none", "")
	l.refuses(http.StatusNotFound, "not-found", http.MethodGet, "/v1/files/..%2Fetc/plan", "")
}
