package event

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/pawlrun/pawl/llm"
)

// sameAsAnyForm fails if the decoder of the stored form reads an event differently than
// encoding/json, and reports whether it reads it at all.
func sameAsAnyForm(t *testing.T, stored []byte) bool {
	t.Helper()
	fast, ok := (&decoder{b: stored}).stored()
	if !ok {
		return false
	}
	slow, err := decodeAny(stored)
	if err != nil {
		t.Fatalf("encoding/json refuses %s: %v", stored, err)
	}
	if !reflect.DeepEqual(fast, slow) {
		t.Fatalf("%s is read as\n%#v\nand by encoding/json as\n%#v", stored, fast, slow)
	}
	return true
}

// recorded returns the events of recorded runs.
func recorded(t testing.TB) (all [][]byte) {
	t.Helper()
	paths, err := filepath.Glob("../internal/view/testdata/*.jsonl")
	if err != nil || len(paths) == 0 {
		t.Fatal("no journals are recorded", err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			all = append(all, bytes.TrimSpace(line))
		}
	}
	return all
}

func TestTheStoredFormIsReadWithoutReflection(t *testing.T) {
	texts := []string{"", "plain", "<&>", `"quoted" \ back/`, "line\nbreak\ttab\r\b\f\x00\x1f", "grüße", "\u2028", "😀"}
	seq := int64(0)
	for _, text := range texts {
		for _, d := range []Data{
			CycleStart{Cycle: 7, MaxCycles: -1},
			BudgetReserved{ID: text, USD: 0.001, Input: 5, Run: text}, BudgetReserved{USD: 0},
			BudgetCommitted{ID: text, USD: 12, Usage: nil}, BudgetCommitted{Usage: &llm.Usage{Input: 3}, Priced: true, Estimated: true},
			ModelRequested{Model: text, Prompt: &PromptSums{New: text}, Withheld: &Withheld{Tools: []string{text}}}, ModelRequested{},
			ModelResponse{ToolCalls: []CallRef{{text, text}, {text, ""}}, Parts: Answer{}}, ModelResponse{ToolCalls: []CallRef{}, Parts: Answer{}},
			ToolCall{CallID: text, Args: json.RawMessage(`{"a":[1,"}",{}]}`), ArgsText: text, Sent: json.RawMessage(`"]"`), Labels: Labels{Private: true}}, ToolCall{},
			PolicyDecision{CallID: text, Facts: &Facts{}, Step: text}, PolicyDecision{Sandbox: true},
			ToolStarted{CallID: text, Attempt: 2},
			ToolResult{Output: text, ExitCode: new(int), Contains: []string{text}, Tools: []string{}, Raw: text}, ToolResult{IsError: true, DurationMs: 3},
			ToolResults{Results: []ResultRef{{CallID: text, IsError: true}}}, ToolResults{},
			RunParked{Detail: text}, Nudge{Text: text},
		} {
			seq++
			stored, err := Encode(&Event{Seq: seq, Run: "r", Parent: text, SkippedMs: seq % 2, Cycle: int(seq % 3), Step: text, Data: d, Prev: text})
			if err != nil {
				t.Fatal(err)
			}
			if !sameAsAnyForm(t, stored) || !sameAsAnyForm(t, WithPos(stored, 9)) {
				t.Errorf("it is left to encoding/json: %s", stored)
			}
		}
	}
	left := 0
	all := recorded(t)
	for _, stored := range all {
		if !sameAsAnyForm(t, stored) {
			left++
		}
	}
	if left > len(all)/10 {
		t.Errorf("%d of %d recorded events are left to encoding/json", left, len(all))
	}
}

// A single byte that is missing, another, or too many gives what encoding/json reads, or
// its error.
func TestOtherFormsAreLeftToEncodingJSON(t *testing.T) {
	seen := map[Type]bool{}
	for _, stored := range recorded(t) {
		e, err := Decode(stored)
		if err != nil {
			t.Fatal(err)
		}
		if seen[e.Type()] || len(stored) > 600 {
			continue
		}
		seen[e.Type()] = true
		for at := range stored {
			sameAsAnyForm(t, append(bytes.Clone(stored[:at]), stored[at+1:]...))
			for _, c := range []byte(` ,"\{]0-.` + "\xff") {
				other := bytes.Clone(stored)
				other[at] = c
				sameAsAnyForm(t, other)
				sameAsAnyForm(t, append(append(bytes.Clone(stored[:at]), c), stored[at:]...))
			}
		}
	}
}

func FuzzDecodeStored(f *testing.F) {
	for _, stored := range recorded(f)[:200] {
		f.Add(stored)
	}
	f.Fuzz(func(t *testing.T, stored []byte) { sameAsAnyForm(t, stored) })
}
