package schema_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/pawlrun/pawl/internal/files/schema"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/golden"
)

const flowHead = `# The workflow file

Every key of a workflow file, with an example. This page is generated from ` + "`pawl schema workflow`" + `; ` + "`make docs`" + ` writes it anew.
Keys in small letters with underscores, and those that a row says need it, are this program's own: a file that has one says
` + "`apiVersion: pawl/v1`" + `. ` + "`pawl check FILE`" + ` knows more rules than a schema can tell.

Expressions (condition, until, forEach, cel) are CEL over these variables. ` + "`steps.ID`" + ` may have an id with hyphens.

| variable | where |
| --- | --- |
| ` + "`steps.ID.content`, `.result`, `.status`" + ` | the steps beside it: in condition and forEach those that are done, in until those of the loop |
| ` + "`steps.ID.results`" + ` | of a forEach: the result of each item, its content where it has no result, and null where it did not complete, in their order |
| ` + "`content`, `result`, `status`" + ` | in until of a loop without steps: the iteration that is done |
| ` + "`iteration`" + ` | in until, and in conditions within a loop that repeats; from 0 |
| ` + "`item`, `index`" + ` | in conditions within a forEach loop; index from 0 |

They have the functions of CEL and those of its strings extension: ` + "`split`, `join`, `trim`, `replace`, `lowerAscii`, `indexOf`, `format`" + ` and more. The content of
a command is its output without the line ends behind it; its result is that output where it is JSON, else ` + "`{exitCode: N}`" + `. A loop over items is
skipped where every item was.

A workflow of which a step failed, or that was stopped, starts again from there with ` + "`pawl runs retry RUN`" + `: what completed is kept, also in other branches,
items and iterations, and is not run again.

## Values in instructions and commands

INPUT is told to the steps without ` + "`dependsOn`" + `, and stands wherever instructions say ` + "`{{input}}`" + `. These stand in ` + "`instructions`, in the `input` of a `workflow`" + `,
and in the arguments of ` + "`command`" + `:

| name | value |
| --- | --- |
| ` + "`{{input}}`" + ` | the run's INPUT |
| ` + "`{{item}}`, `{{item.KEY}}`, `{{index}}`" + ` | within forEach: the item, a value in it, its place from 0 |
| ` + "`{{steps.ID.content}}`, `.status`, `.result`, `.result.KEY`, `.results`" + ` | of a step that this one depends on, directly or not; or that the loop around it does |

A text is put in as it is, any other value as JSON. It is put in once: what a value holds is no name. A value that is not there fails the step
(` + "`missing_value`" + `). What other steps gave stands between ` + "`<untrusted id=…>`" + ` marks in instructions. In a command a value is one argument or a part of one, and
no shell reads it; in the script of ` + "`sh -c`" + ` it is refused. Commands have ` + "`PAWL_INPUT`, and within forEach `PAWL_ITEM`" + `, in their environment, where those have
at most 100,000 bytes. A backslash before a name leaves it as it is: ` + "`\\{{item}}`" + `.

` + "`pawl run`" + ` shows the first and the last lines that a command printed, and ` + "`pawl runs show RUN --step ID`" + ` all of them.
`

// examples returns the workflows of the page, each of which a test of cmd/pawl runs.
func examples(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, name := range []string{"fan-out", "collect", "judge"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "workflow", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "\n```yaml\n%s```\n", text)
	}
	return b.String()
}

const goalPage = `# The goal file

Every key of a goal file, with an example. This page is generated from ` + "`pawl schema goal`" + `; ` + "`make docs`" + ` writes it anew. A goal is
one objective that an agent works towards, in iterations that each begin afresh and are told the plan and the log of those before. What shows
that it is done is looked at after each. ` + "`pawl check FILE`" + ` knows more rules than a schema can tell.
`

const head = `# The agent file

Every key of an agent file, with an example. This page is generated from ` + "`pawl schema agent`" + `; ` + "`make docs`" + ` writes it anew. An
example is a piece of the mapping that the key stands in. ` + "`pawl check FILE`" + ` also checks rules that no schema can express.

To complete and check a file while you type, keep the schema beside it (` + "`pawl init`" + ` does) and name it in the first line:

    pawl schema agent > .agent.schema.json

    # yaml-language-server: $schema=.agent.schema.json
`

// TestThePageOfTheAgentFileIsWhatTheSchemaSays keeps docs/agent-file.md up to date.
func TestThePageOfTheAgentFileIsWhatTheSchemaSays(t *testing.T) {
	golden.File(t, filepath.Join("..", "..", "..", "docs", "agent-file.md"), page(t, head, "agent"), *update)
}

func TestThePageOfTheWorkflowFileIsWhatTheSchemaSays(t *testing.T) {
	golden.File(t, filepath.Join("..", "..", "..", "docs", "workflow-file.md"), page(t, flowHead+examples(t), "workflow"), *update)
}

func TestThePageOfTheGoalFileIsWhatTheSchemaSays(t *testing.T) {
	golden.File(t, filepath.Join("..", "..", "..", "docs", "goal-file.md"), page(t, goalPage, "goal"), *update)
}

func page(t *testing.T, head, kind string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(head)
	for _, s := range sections(t, kind) {
		s.write(t, &b)
	}
	return b.String()
}

func TestEveryKeyOfASchemaHasADescription(t *testing.T) {
	described, err := schema.Described()
	if err != nil {
		t.Fatal(err)
	}
	offered := map[string][]string{}
	var walk func(name string, of any)
	walk = func(name string, of any) {
		s, _ := of.(map[string]any)
		for key, property := range object(s, "properties") {
			offered[name] = append(offered[name], key)
			if text, _ := property.(map[string]any)["description"].(string); text == "" {
				t.Errorf("%s of %s has no description", key, name)
			}
			walk(name+"."+key, property)
		}
		for _, inner := range slices.Concat(list(s["anyOf"]), list(s["items"]), list(s["additionalProperties"])) {
			walk(name, inner)
		}
	}
	for _, kind := range schema.Kinds() {
		for name, def := range object(schemaOf(t, kind), "$defs") {
			walk(name, def)
		}
	}
	offered["Settings"], offered["LoopSettings"] = offered["Agent"], offered["Agent"] // these types contain the settings
	for name, keys := range described {
		for _, key := range keys {
			if !slices.Contains(offered[name], key) {
				t.Errorf("%s of %s is described, and there is no such key", key, name)
			}
		}
	}
}

// The examples of the page form a valid file below an agent's name, for the parser and
// for editors.
func TestEveryKeyOfAnAgentFileHasAnExampleThatIsAccepted(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"prompt.md": "You help.", "AGENTS.md": "Run the tests.", "lookup.schema.json": `{"type": "object"}`, ".mcp.json": `{"mcpServers": {}}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "skills/review"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "skills/review/SKILL.md"), []byte("---\nname: review\ndescription: Reviews code.\n---\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, checked := compiled(t, "agent"), 0
	for _, section := range sections(t, "agent") {
		for _, key := range section.keys() {
			whole := section.file(t, key)
			whole["identity"] = merged(map[string]any{"name": "example"}, whole["identity"])
			if tools, ok := whole["tools"].(map[string]any); ok && (key == "secrets" && len(section.parent.paths) > 0 || key == "client_secret") {
				name := map[string]string{"CommandTool": "TICKET_TOKEN", "MCPServer": "DOCS_TOKEN", "OAuth": "CLIENT_SECRET"}[section.name]
				tools["secrets"] = map[string]any{name: map[string]any{"env": name}}
			}
			text, err := yaml.Marshal(whole)
			if err != nil {
				t.Fatal(err)
			}
			o := spec.Options{
				Classes: map[string]string{"reasoning": "anthropic/claude-opus-4-5"}, Roles: map[string]string{"subagent": "anthropic/claude-haiku-4-5"},
			}
			if _, err := spec.ParseAgent(filepath.Join(dir, "agent.yaml"), text, o); err != nil {
				t.Errorf("%s of %s: %v\n%s", key, section.name, err, text)
			}
			if err := s.Validate(instance(t, text)); err != nil {
				t.Errorf("%s of %s does not fit the schema: %v\n%s", key, section.name, err, text)
			}
			checked++
		}
	}
	if checked < 100 {
		t.Errorf("only %d examples were found", checked)
	}
}

// section is one mapping of an agent file.
type section struct {
	// name is the name of its type, and paths are the places where it may occur.
	name  string
	paths []string
	// parent is the first mapping that contains the section, and in is its key there.
	parent     *section
	in         string
	properties map[string]any
}

func (s *section) keys() []string { return slices.Sorted(maps.Keys(s.properties)) }

// sections returns the mappings of an agent file in the order of their first
// occurrence, beginning with the file itself.
func sections(t *testing.T, kind string) []*section {
	t.Helper()
	defs := object(schemaOf(t, kind), "$defs")
	found := []*section{{name: strings.ToUpper(kind[:1]) + kind[1:]}}
	for i := 0; i < len(found); i++ {
		s := found[i]
		s.properties = object(defs[s.name].(map[string]any), "properties")
		for _, key := range s.keys() {
			name, suffix := refersTo(s.properties[key].(map[string]any))
			path := key + suffix
			if len(s.paths) > 0 {
				path = s.paths[0] + "." + path
			}
			at := slices.IndexFunc(found, func(other *section) bool { return other.name == name })
			switch {
			case name == "":
			case at < 0:
				found = append(found, &section{name: name, paths: []string{path}, parent: s, in: key})
			default:
				found[at].paths = append(found[at].paths, path)
			}
		}
	}
	return found
}

// refersTo returns the type of the mappings in a value, and the path suffix that leads
// to them.
func refersTo(s map[string]any) (name, suffix string) {
	if ref, ok := s["$ref"].(string); ok {
		return strings.TrimPrefix(ref, "#/$defs/"), ""
	}
	for _, one := range list(s["anyOf"]) {
		if name, suffix := refersTo(one.(map[string]any)); name != "" {
			return name, suffix
		}
	}
	for key, step := range map[string]string{"items": "[]", "additionalProperties": ".NAME"} {
		if inner, ok := s[key].(map[string]any); ok {
			name, suffix := refersTo(inner)
			return name, step + suffix
		}
	}
	return "", ""
}

// file returns the example of a key within the examples of the keys that lead to it.
func (s *section) file(t *testing.T, key string) map[string]any {
	t.Helper()
	inner := s.example(t, key)
	for ; s.parent != nil; s = s.parent {
		outer := s.parent.example(t, s.in)
		switch v := outer[s.in].(type) {
		case []any:
			outer[s.in] = []any{inner}
		case map[string]any:
			outer[s.in] = inner
			if strings.HasSuffix(s.paths[0], ".NAME") {
				outer[s.in] = map[string]any{slices.Sorted(maps.Keys(v))[0]: inner}
			}
		default: // a short form
			outer[s.in] = inner
		}
		inner = outer
	}
	return inner
}

func (s *section) example(t *testing.T, key string) map[string]any {
	t.Helper()
	text, err := schema.ShownFor(s.name, key)
	if err != nil {
		t.Fatal(err)
	}
	var fragment map[string]any
	if err := yaml.Unmarshal([]byte(text), &fragment); err != nil {
		t.Fatalf("the example of %s in %s: %v", key, s.name, err)
	}
	if fragment[key] == nil {
		t.Fatalf("the example of %s in %s is %q, which does not have the key", key, s.name, text)
	}
	return fragment
}

func (s *section) write(t *testing.T, b *strings.Builder) {
	t.Helper()
	title := "The top level"
	if s.parent != nil {
		title = "`" + s.paths[0] + "`"
	}
	fmt.Fprintf(b, "\n## %s\n\n", title)
	if len(s.paths) > 1 {
		fmt.Fprintf(b, "Also at `%s`.\n\n", strings.Join(s.paths[1:], "`, `"))
	}
	var same []string
	b.WriteString("| key | value | meaning | example |\n| --- | --- | --- | --- |\n")
	for _, key := range s.keys() {
		p := s.properties[key].(map[string]any)
		if s.name == "Iteration" && !describedFor(t, s.name, key) {
			same = append(same, key)
			continue
		}
		example, _ := schema.ShownFor(s.name, key)
		about, _ := p["description"].(string)
		fmt.Fprintf(b, "| `%s` | %s | %s | `%s` |\n", key, cell(valueOf(p)), cell(about), cell(example))
	}
	if len(same) > 0 {
		fmt.Fprintf(b, "\nAs at the top level, of which each may stand in one of the two places: `%s`.\n", strings.Join(same, "`, `"))
	}
}

// describedFor reports whether a key is described for this type alone, and not for all
// types with the settings of the loop.
func describedFor(t *testing.T, name, key string) bool {
	t.Helper()
	described, err := schema.Described()
	if err != nil {
		t.Fatal(err)
	}
	return slices.Contains(described[name], key)
}

// valueOf describes the allowed values in a few words.
func valueOf(s map[string]any) string {
	if enum, ok := s["enum"].([]any); ok {
		words := make([]string, len(enum))
		for i, value := range enum {
			words[i] = fmt.Sprintf("`%v`", value)
		}
		return strings.Join(words, ", ")
	}
	if value, ok := s["const"]; ok {
		return fmt.Sprintf("`%v`", value)
	}
	if _, ok := s["$ref"]; ok {
		return "mapping"
	}
	if several := list(s["anyOf"]); len(several) > 0 {
		words := make([]string, len(several))
		for i, one := range several {
			words[i] = valueOf(one.(map[string]any))
		}
		return strings.Join(words, " or ")
	}
	if kinds, ok := s["type"].([]any); ok {
		words := make([]string, len(kinds))
		for i, kind := range kinds {
			words[i] = valueOf(map[string]any{"type": kind})
		}
		return strings.Join(words, " or ")
	}
	switch kind, _ := s["type"].(string); kind {
	case "string":
		return "text"
	case "integer":
		return "whole number"
	case "boolean":
		return "true or false"
	case "array":
		if s["items"] == nil {
			return "list"
		}
		return "list of: " + valueOf(s["items"].(map[string]any))
	case "object":
		if inner, ok := s["additionalProperties"].(map[string]any); ok {
			return "mapping from names to: " + valueOf(inner)
		}
		return "mapping"
	default:
		return kind
	}
}

// cell escapes a text for a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

func schemaOf(t *testing.T, kind string) map[string]any {
	t.Helper()
	text, err := schema.Of(kind)
	if err != nil {
		t.Fatal(err)
	}
	var root map[string]any
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	return root
}

func object(s map[string]any, key string) map[string]any {
	inner, _ := s[key].(map[string]any)
	return inner
}

func merged(into map[string]any, over any) map[string]any {
	given, _ := over.(map[string]any)
	maps.Copy(into, given)
	return into
}
