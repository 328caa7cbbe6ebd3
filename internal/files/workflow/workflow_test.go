package workflow_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/files/workflow"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

// case is one of the conformance cases of the workflow specification.
type conformance struct {
	Input    string
	Expected struct {
		Valid       bool
		Error       string
		StepCount   int      `yaml:"step_count"`
		TopoOrder   []string `yaml:"topo_order"`
		Constraints []struct {
			Before, After []string
		} `yaml:"topo_constraints"`
	}
}

// said is part of the message for each code of the cases, "" for any message.
func said(code string) string {
	return map[string]string{
		"missing_name": "name: is missing", "invalid_step_id": "is not an id", "agent_missing_description": "description: is missing",
		"duplicate_step": "another step", "missing_dep": "there is no step", "cycle": "is a cycle",
		"include_has_condition": "condition: a step with include", "include_has_loop": "loop: a step with include", "include_has_model": "model: a step with include",
		"foreach_with_until": "a loop over items", "unknown_version": "version of the specification", "negative_value": "(expected ",
	}[code]
}

// rows: DAG-1..4, DAG-25, DAG-27..29, DAG-40, DAG-43..46
func TestTheConformanceCasesOfTheSpecificationJudgeAsExpected(t *testing.T) {
	paths, err := filepath.Glob("testdata/testcases/*/*.yaml")
	if err != nil || len(paths) != 43 {
		t.Fatalf("%d cases, %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var c conformance
			if err := yaml.Unmarshal(text, &c); err != nil {
				t.Fatal(err)
			}
			w, err := workflow.Parse(filepath.Join(filesOfCases(t), "w.yaml"), []byte(c.Input), spec.Options{})
			problems, _ := errors.AsType[decode.Errors](err)
			switch {
			case c.Expected.Valid:
				c.holds(t, w, err)
			case len(problems) == 0:
				t.Errorf("it is not refused: %v", err)
			case !strings.Contains(err.Error(), said(c.Expected.Error)):
				t.Errorf("want %s, got %v", c.Expected.Error, err)
			}
			for _, p := range problems {
				if p.File == "" || p.Line == 0 || p.Column == 0 {
					t.Errorf("no place: %+v", p)
				}
			}
		})
	}
}

// holds reports differences from the case.
func (c conformance) holds(t *testing.T, w *workflow.Workflow, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	order := topological(w.Plan)
	if len(w.Plan.Steps) != c.Expected.StepCount || c.Expected.TopoOrder != nil && !slices.Equal(order, c.Expected.TopoOrder) {
		t.Errorf("%d steps, %v", len(w.Plan.Steps), order)
	}
	for _, pair := range c.Expected.Constraints {
		for _, before := range pair.Before {
			for _, after := range pair.After {
				if slices.Index(order, before) >= slices.Index(order, after) {
					t.Errorf("%s is not before %s in %v", before, after, order)
				}
			}
		}
	}
}

// topological returns the ids of steps, each after its dependencies.
func topological(p plan.Plan) []string {
	var order []string
	for range p.Steps {
		for _, s := range p.Steps {
			waits := slices.ContainsFunc(s.DependsOn, func(id string) bool { return !slices.Contains(order, id) })
			if !waits && !slices.Contains(order, s.ID) {
				order = append(order, s.ID)
			}
		}
	}
	return order
}

// filesOfCases returns a directory with the files that the cases name but do not
// contain.
func filesOfCases(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"prompts/architect.md": "You design.", "instructions/design.md": "Design it.", "docs/requirements.md": "It must work.", "docs/api-spec.yaml": "openapi: 3.0.0",
		"workflows/deploy.yaml": "name: deploy\nsteps: [{id: run, instructions: Deploy it.}]",
		"workflows/build.yaml":  "name: build\nsteps: [{id: run, instructions: Build it.}]",
		"workflows/test.yaml":   "name: test\nsteps: [{id: run, instructions: Test it.}]",
	} {
		write(t, filepath.Join(dir, name), text)
	}
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestTheExamplesOfTheSpecificationParse(t *testing.T) {
	found := 0
	for _, pattern := range []string{"*.yaml", "*.json", "workflows/*.yaml"} {
		paths, err := filepath.Glob("testdata/examples/" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			found++
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			known := func(name string) (string, bool) { return "anthropic/" + name, true }
			w, err := workflow.Parse(path, text, spec.Options{FindModel: known, Classes: map[string]string{"default": "anthropic/claude-sonnet-4-6"}})
			if err != nil {
				t.Errorf("%s: %v", path, err)
			} else if len(w.Unbuilt)+len(w.Warnings) > 0 {
				t.Errorf("%s: %v, %v", path, w.Unbuilt, w.Warnings)
			}
		}
	}
	if found != 16 {
		t.Errorf("%d examples", found)
	}
}

func show(t *testing.T, p plan.Plan) string {
	t.Helper()
	text, err := json.MarshalIndent(p, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
