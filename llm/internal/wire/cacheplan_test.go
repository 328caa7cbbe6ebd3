package wire_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/llm/internal/wire"
)

// turns draws a conversation: u is a message that is no answer, a an answer, -
// one that left nothing on the wire; the number after it are its blocks.
func turns(draw ...string) []wire.Turn {
	out := make([]wire.Turn, len(draw))
	for i, d := range draw {
		n := 0
		for _, c := range d[1:] {
			n = 10*n + int(c-'0')
		}
		out[i] = wire.Turn{Answer: d[0] == 'a', Blocks: n}
	}
	return out
}

func TestMarksStandAtTheEndsOfThisRequestAndTheOneBefore(t *testing.T) {
	for name, tt := range map[string]struct {
		turns []wire.Turn
		limit int
		want  []int
	}{
		"nothing":                            {nil, 3, []int{}},
		"only an answer":                     {turns("a1"), 3, []int{}},
		"the task":                           {turns("u1"), 3, []int{0}},
		"a cycle":                            {turns("u1", "a2", "u1"), 3, []int{2, 0}},
		"two cycles":                         {turns("u1", "a2", "u1", "a2", "u1"), 3, []int{4, 2}},
		"a wide fan-out":                     {turns("u1", "a31", "u30"), 3, []int{2, 0}},
		"an answer that the next follows":    {turns("u1", "a2", "u1", "a1"), 3, []int{2, 0}},
		"a message behind results":           {turns("u1", "a2", "u1", "u1"), 3, []int{3, 0}},
		"a message behind many results":      {turns("u1", "a2", "u30", "u1"), 3, []int{3, 0}},
		"messages without an answer between": {turns("u1", "a2", "u9", "u9", "u9", "u9"), 3, []int{5, 0, 3}},
		"nothing of the last message left":   {turns("u1", "a2", "u1", "u0"), 3, []int{2, 0}},
		"nothing of an answer left":          {turns("u1", "a2", "u1", "a0", "u1"), 3, []int{4, 0}},
		"one mark":                           {turns("u1", "a2", "u1"), 1, []int{2}},
		"no mark":                            {turns("u1", "a2", "u1"), 0, []int{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := wire.PlanMarks(len(tt.turns), func(i int) wire.Turn { return tt.turns[i] }, tt.limit, 20)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// FuzzPlanMarks holds every plan to what the provider refuses: a mark too many,
// one on an answer, one on nothing.
func FuzzPlanMarks(f *testing.F) {
	f.Add([]byte{1, 130, 30, 1, 0, 5}, 3)
	f.Fuzz(func(t *testing.T, drawn []byte, limit int) {
		limit %= 5
		turn := func(i int) wire.Turn { return wire.Turn{Answer: drawn[i] >= 128, Blocks: int(drawn[i] % 128)} }
		marks := wire.PlanMarks(len(drawn), turn, limit, 20)
		if len(marks) > max(limit, 0) {
			t.Fatalf("%d marks of %d", len(marks), limit)
		}
		for i, at := range marks {
			if m := turn(at); m.Answer || m.Blocks == 0 || slices.Contains(marks[:i], at) {
				t.Fatalf("mark %d stands on %+v: %v", i, m, marks)
			}
		}
	})
}

// TestAPlanCostsTheEndOfTheConversation bounds the turns that are looked at.
func TestAPlanCostsTheEndOfTheConversation(t *testing.T) {
	const cycles = 1000
	looked := 0
	wire.PlanMarks(2*cycles+1, func(i int) wire.Turn {
		looked++
		return wire.Turn{Answer: i%2 == 1, Blocks: 3}
	}, 3, 20)
	if looked > 5 {
		t.Errorf("%d of %d turns were looked at", looked, 2*cycles+1)
	}
}

func TestModelsWithCacheBreakpointsAreKnownByTheirVersion(t *testing.T) {
	for model, want := range map[string]bool{
		"gpt-5.6": true, "gpt-5.6-sol": true, "gpt-5.10": true, "gpt-6": true, "GPT-5.6": true, "ft:gpt-5.6:acme": true,
		"gpt-5": false, "gpt-5.5": false, "gpt-5-mini": false, "gpt-4.1": false, "gpt-4o": false, "o3": false, "gpt-oss-120b": false, "": false,
	} {
		if got := wire.HasCacheBreakpoints(model); got != want {
			t.Errorf("%q: %t, want %t", model, got, want)
		}
	}
}
