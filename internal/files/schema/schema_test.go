package schema_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/files/schema"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/files/workflow"
	"github.com/pawlrun/pawl/llm/scripted"
)

func compiled(t *testing.T, kind string) *jsonschema.Schema {
	t.Helper()
	text, err := schema.Of(kind)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(kind+".json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(kind + ".json")
	if err != nil {
		t.Fatalf("the schema of %s is none: %v", kind, err)
	}
	return s
}

// instance returns a file as a validator sees it.
func instance(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out, err := jsonschema.UnmarshalJSON(bytes.NewReader(encoded))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var (
	update = flag.Bool("update", false, "write the pages anew")
	known  = spec.ConfigOptions{Providers: []string{"anthropic", "groq", "mistral"}, Profiles: []string{"llamacpp", "vllm"}, Abilities: []string{"tools", "reasoning", "images"}}
)

// files returns the files of a tree that a parser accepts.
func files(t *testing.T, accepts func(path string, data []byte) bool) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	for _, dir := range []string{"../../../examples", "../launch/testdata", "../spec/testdata", "../workflow/testdata", "../../cli/testdata", "../../cli/templates", "../../../docs"} {
		err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
			if err != nil || e.IsDir() || filepath.Ext(path) != ".yaml" {
				return err
			}
			data, err := os.ReadFile(path)
			if err == nil && accepts(path, data) {
				found[path] = data
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

func TestFilesThatTheParserTakesFitTheSchemaOfTheirKind(t *testing.T) {
	for kind, c := range map[string]struct {
		accepts func(path string, data []byte) bool
		least   int
	}{
		"agent": {func(path string, data []byte) bool {
			_, err := spec.ParseAgent(path, data, spec.Options{})
			return err == nil
		}, 8},
		"workflow": {func(path string, data []byte) bool {
			_, err := workflow.Parse(path, data, spec.Options{})
			return err == nil
		}, 16},
		"script": {func(path string, data []byte) bool {
			_, err := scripted.Parse(path, data)
			return err == nil && bytes.HasPrefix(bytes.TrimSpace(data), []byte("-"))
		}, 1},
		"config": {func(path string, data []byte) bool {
			_, err := spec.ParseConfig(path, data, known)
			return err == nil
		}, 1},
	} {
		s, found := compiled(t, kind), files(t, c.accepts)
		if len(found) < c.least {
			t.Errorf("%s: only %d files were found", kind, len(found))
		}
		for path, data := range found {
			if err := s.Validate(instance(t, data)); err != nil {
				t.Errorf("%s does not fit the schema of %s: %v", path, kind, err)
			}
		}
	}
}

func TestSchemasRefuseWhatTheParserDoes(t *testing.T) {
	for text, kind := range map[string]string{
		"identity: {name: x}\nmax_cycle: 3":                                       "agent",
		"identity: {name: x}\nmax_cycles: many":                                   "agent",
		"identity: {name: x}\non_limit: maybe":                                    "agent",
		"identity: {name: x}\ntools: {approvals: {shell.exec: sometimes}}":        "agent",
		"identity: {name: x}\nmodel_policy: {primary: {modle: x/y}}":              "agent",
		"identity: {name: x}\niteration: {termination_conditions: [{kind: t}]}":   "agent",
		"apiVersion: aldo-ai/agent.v1\niteration: {max_cycle: 3}":                 "agent",
		"name: x\nsteps: [{id: a, agnet: b}]":                                     "workflow",
		"name: x\nsteps: [{id: a, timeout: 5 minutes}]":                           "workflow",
		"name: x\nsteps: [{id: a, loop: {forEach: 3}}]":                           "workflow",
		"name: x\nsteps: [{id: a}]\noptions: {scheduler: fair}":                   "workflow",
		"identity: {name: x}\nbudgets: {actions: {max_tool_calls: park}}":         "agent",
		"identity: {name: x}\nbudgets: {actions: {max_parallel_tool_calls: ask}}": "agent",
		"identity: {name: x}\nbudgets: {actions: {max_cycles: ask}}":              "agent",
		"- txt: hi":                       "script",
		"- {tool_calls: [{nam: x}]}":      "script",
		"- {error: {status: bad}}":        "script",
		"text: hi":                        "script",
		"providers: {acme: {url: x}}":     "config",
		"providers: {acme: {api_key: x}}": "config",
		"models: {x/y: {price: {in: 1}}}": "config",
		"roles: {reviewer: x/y}":          "config",
		"classes: [a]":                    "config",
	} {
		if err := compiled(t, kind).Validate(instance(t, []byte(text))); err == nil {
			t.Errorf("the schema of %s takes %s", kind, text)
		}
	}
	lenient := "apiVersion: aldo-ai/agent.v1\nidentity: {name: x, owner: me}\nprivacy: {tier: high}"
	if err := compiled(t, "agent").Validate(instance(t, []byte(lenient))); err != nil {
		t.Errorf("ALDO's own keys are refused: %v", err)
	}
}

// The schema offers exactly the values that the rules accept.
func TestSchemaOffersTheChoicesOfTheRules(t *testing.T) {
	found := choices(t, "agent")
	for path, allowed := range map[string]string{
		"on_limit": "ok, stopped, fail", "iteration.on_limit": "ok, stopped, fail", "tools.approvals.*": "always, never, protected_paths",
		"tools.labels.*[]": "untrusted, private, outgoing", "tools.mode": "default, accept-edits, plan, bypass", "cache": "5m, 1h, off",
		"hooks.before_tool[].kind": "gate, observer", "tools.permissions.sandbox": "required, bubblewrap, namespaces, landlock, on-demand",
	} {
		if found[path] != allowed {
			t.Errorf("%s: the schema offers %q, want %q", path, found[path], allowed)
		}
	}
	for path, allowed := range found {
		_, err := spec.ParseAgent("a.yaml", []byte(nested(path, "bogus-value")), spec.Options{})
		problems, _ := errors.AsType[decode.Errors](err)
		if !slices.ContainsFunc(problems, func(p decode.Problem) bool {
			return strings.HasSuffix(p.Expected, allowed) && strings.Contains(p.Message, "bogus-value")
		}) {
			t.Errorf("%s: the schema offers %s, the rules say:\n%v", path, allowed, err)
		}
		for value := range strings.SplitSeq(allowed, ", ") {
			_, err := spec.ParseAgent("a.yaml", []byte(nested(path, value)), spec.Options{})
			problems, _ := errors.AsType[decode.Errors](err)
			for _, p := range problems {
				if strings.HasPrefix(p.Message, fmt.Sprintf("is %q", value)) && strings.HasSuffix(p.Expected, allowed) {
					t.Errorf("%s: %s is offered and refused: %v", path, value, p)
				}
			}
		}
	}
}

// choices returns the values that the schema of a kind of file offers for texts, by
// place. An entry of a list has the suffix [], and an entry of a mapping is called *.
func choices(t *testing.T, kind string) map[string]string {
	t.Helper()
	text, err := schema.Of(kind)
	if err != nil {
		t.Fatal(err)
	}
	var root map[string]any
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	var walk func(of any, path string)
	walk = func(of any, path string) {
		s, ok := of.(map[string]any)
		if !ok {
			return
		}
		if enum, ok := s["enum"].([]any); ok {
			words := make([]string, len(enum))
			for i, value := range enum {
				words[i] = fmt.Sprint(value)
			}
			found[path] = strings.Join(words, ", ")
		}
		if ref, ok := s["$ref"].(string); ok {
			walk(root["$defs"].(map[string]any)[strings.TrimPrefix(ref, "#/$defs/")], path)
		}
		for _, one := range slices.Concat(list(s["anyOf"]), list(s["else"])) {
			walk(one, path)
		}
		properties, _ := s["properties"].(map[string]any)
		for key, property := range properties {
			walk(property, strings.TrimPrefix(path+"."+key, "."))
		}
		walk(s["items"], path+"[]")
		walk(s["additionalProperties"], path+".*")
	}
	walk(root, "")
	return found
}

// list returns a value as a list, or nil if there is none.
func list(v any) []any {
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		return v
	}
	return []any{v}
}

// nested returns a file with one value at a path.
func nested(path, value string) string {
	text := value
	keys := strings.Split(path, ".")
	for _, key := range slices.Backward(keys) {
		name, isList := strings.CutSuffix(key, "[]")
		if isList {
			text = "[" + text + "]"
		}
		text = "{" + strings.Replace(name, "*", "shell.exec", 1) + ": " + text + "}"
	}
	return text
}

func TestUnknownKindHasNoSchema(t *testing.T) {
	if _, err := schema.Of("dance"); err == nil || !strings.Contains(err.Error(), "agent, workflow, goal, script, config") {
		t.Errorf("got %v", err)
	}
}
