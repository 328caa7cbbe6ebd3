package spec_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/processor"
)

const small = "identity: {name: fixer}\nmodel_policy: {primary: {model: scripted/a.yaml}}\n"

func parse(t *testing.T, name, text string) *spec.Agent {
	t.Helper()
	a, err := spec.ParseAgent(name, []byte(text), rules)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return a
}

func TestSameAgentFromEveryWayOfWritingAFile(t *testing.T) {
	want := parse(t, "agent.yaml", small)
	for name, text := range map[string]string{
		"agent.yaml":   "\ufeff" + small,
		"windows.yaml": strings.ReplaceAll(small, "\n", "\r\n"),
		"marked.yaml":  "---\n" + small + "...\n",
		"agent.json":   `{"identity": {"name": "fixer"}, "model_policy": {"primary": {"model": "scripted/a.yaml"}}}`,
		"tabs.json":    "\ufeff{\n\t\"identity\": {\"name\": \"fixer\"},\n\t\"model_policy\": {\"primary\": \"scripted\\/a.yaml\"}\n}\n",
		"flow.yaml":    `{identity: {name: fixer}, model_policy: {primary: scripted/a.yaml}}`,
		"alias.yaml":   "identity: {name: &n fixer, description: x}\nmodel_policy: {primary: {model: scripted/a.yaml}}\n",
	} {
		got := parse(t, name, text)
		got.Identity.Description = ""
		if diff := cmp.Diff(want.Identity, got.Identity); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if diff := cmp.Diff(want.ModelPolicy, got.ModelPolicy); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestJSONKeepsEscapedCharacters(t *testing.T) {
	a := parse(t, "a.json", `{"kind": "Agent", "nudge_text": "\ud83d\ude00 go"}`)
	if a.NudgeText != "😀 go" {
		t.Errorf("nudge_text is %q", a.NudgeText)
	}
}

func TestMergedMappingsFillWhatIsNotGiven(t *testing.T) {
	a := parse(t, "a.yaml", small+`
budgets: &b {max_tool_calls: 5, max_model_turns: 7}
iteration:
  termination_conditions:
    - &c {kind: text-includes, text: done}
    - {<<: *c, text: finished}
    - {<<: [{text: last}, *c]}
`)
	var texts []string
	for _, c := range a.Iteration.TerminationConditions {
		texts = append(texts, string(c.Kind)+" "+c.Text)
	}
	want := []string{"text-includes done", "text-includes finished", "text-includes last"}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Error(diff)
	}
}

// A few lines of aliases of aliases can stand for billions of values.
func TestAliasBombsEndInAnErrorAtOnce(t *testing.T) {
	var lists, merges strings.Builder
	lists.WriteString("tools:\n  mcp:\n  - &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	merges.WriteString("model_policy: &a0 {zz: 1}\n")
	for i := range 12 {
		ten := strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 10), ", ")
		fmt.Fprintf(&lists, "  - &a%d [%s]\n", i+1, ten)
		fmt.Fprintf(&merges, "k%d: &a%d {<<: [%s]}\n", i, i+1, ten)
	}
	merges.WriteString("tools: *a12\n")
	for name, text := range map[string]string{
		"lists": lists.String(), "merges": merges.String(),
		"self": "tools: &t {mcp: [*t]}\n", "self merge": "tools: &t {<<: *t, allow: [fs.read]}\n",
		"conditions": "iteration: {termination_conditions: &l [*l, *l]}\n",
	} {
		_, err := spec.ParseAgent("bomb.yaml", []byte(small+text), rules)
		var problems decode.Errors
		if !errors.As(err, &problems) {
			t.Errorf("%s: accepted: %v", name, err)
		}
		if len(problems) > 100 {
			t.Errorf("%s: %d problems", name, len(problems))
		}
	}
}

func TestFilesTooLargeOrTooDeepAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"large.yaml": small + "# " + strings.Repeat("x", 1<<20),
		"deep.json":  strings.Repeat("[", 1000) + strings.Repeat("]", 1000),
		"deep.yaml":  "composite: " + strings.Repeat("[", 100_000),
	} {
		if _, err := spec.ParseAgent(name, []byte(text), rules); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

// A file may be wrong in every line: reading it takes only a moment, and the number of
// reported problems is bounded.
func TestFilesWrongThroughoutAreReadInAMoment(t *testing.T) {
	var keys strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&keys, "termination_condition%d: 1\n", i)
	}
	for name, text := range map[string]string{
		"unknown keys":   keys.String(),
		"bad conditions": "iteration: {termination_conditions: [" + strings.Repeat("{},", 15_000) + "]}",
		"bad tools":      "tools: {allow: [" + strings.Repeat("fs.raed, ", 15_000) + "]}",
	} {
		begin := processor.Time(t)
		_, err := spec.ParseAgent("a.yaml", []byte(small+text), rules)
		var problems decode.Errors
		if !errors.As(err, &problems) || len(problems) > 1001 {
			t.Errorf("%s: %d problems", name, len(problems))
		}
		if took := processor.Time(t) - begin; took > 10*time.Second {
			t.Errorf("%s: took %s", name, took)
		}
	}
}

// The first hundred problems cost little, and what is beyond them is counted and costs
// next to nothing.
func TestProblemsAreCountedBeyondAHundred(t *testing.T) {
	text := func(n int) []byte {
		var b strings.Builder
		b.WriteString(`{"kind":"Agent","identity":{"name":"a"}`)
		for i := range n {
			fmt.Fprintf(&b, `,"unknown_%d":"x"`, i)
		}
		return []byte(b.String() + "}")
	}
	refuse := func(n int) (problems decode.Errors, allocations float64) {
		file := text(n)
		allocations = testing.AllocsPerRun(1, func() {
			_, err := spec.ParseAgent("spec.json", file, spec.Options{Sent: true})
			problems, _ = err.(decode.Errors)
		})
		return problems, allocations
	}
	problems, few := refuse(200)
	if last := problems[len(problems)-1].Message; len(problems) != 101 || !strings.HasPrefix(last, "and ") || !strings.HasSuffix(last, " more problems") {
		t.Errorf("%d problems, the last %q", len(problems), last)
	}
	if few > 50_000 { // a millisecond for each of a hundred problems would be 100 ms
		t.Errorf("%.0f allocations for a hundred problems", few)
	}
	if one, _ := refuse(1); len(one) > 10 || strings.HasSuffix(one[len(one)-1].Message, "more problems") {
		t.Errorf("of one key: %v", one)
	}
	_, many := refuse(9_000)
	if each := (many - few) / 8_800; each > 40 {
		t.Errorf("a key beyond the hundredth costs %.0f allocations", each)
	}
}

func FuzzParseAgent(f *testing.F) {
	f.Add("a.yaml", small)
	f.Add("a.json", `{"identity": {"name": "x"}, "iteration": {"max_cycles": 3}}`)
	f.Add("a.yaml", "a: &x {b: *x}\n<<: [*x, {y: 1}]\n")
	f.Add("a.yaml", "identity: {name: \u00e9}\niteration:\n  termination_conditions: [{kind: text-includes}]\n")
	f.Add("a.yaml", "00\r0\x1c")
	f.Add("a.yaml", "identity: {name: x}\ncomposite: {strategy: debate, subagents: [{agent: a}, {file: b.yaml, as: c}], aggregator: d, max_rounds: 2, terminate: round > 1}\ntermination: {max_turns: 3}")
	f.Add("a.json", `{"a": [1, {"b": null}], "a": "\ud800"} x`)
	f.Add("a.yaml", "tools: {approvals: {shell.exec: always}, timeouts: {shell.exec: 1m}}\n---\n? [1]\n: 2")
	f.Fuzz(func(t *testing.T, name, text string) {
		_, err := spec.ParseAgent(name, []byte(text), spec.Options{Tools: rules.Tools})
		if err == nil {
			return
		}
		var problems decode.Errors
		if !errors.As(err, &problems) || len(problems) == 0 {
			t.Fatalf("an error without problems: %v", err)
		}
		// YAML ends a line at a lone carriage return too, and at a few more
		// characters; the end of any of them bounds a place.
		ends := strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")
		lines := strings.Split(ends.Replace(strings.TrimPrefix(text, "\ufeff")), "\n")
		longest := 0
		for _, line := range lines {
			longest = max(longest, len(line))
		}
		for _, p := range problems {
			if p.File != name {
				continue
			}
			if p.Line < 1 || p.Column < 1 || p.Line > len(lines)+1 || p.Column > longest+2 {
				t.Errorf("%q: place %d:%d is outside the file", text, p.Line, p.Column)
			}
		}
	})
}
