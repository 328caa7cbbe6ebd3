package refine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/machine/refine"
	"github.com/pawlrun/pawl/internal/rules/fence"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

// rows: RON-7
func TestALearningIsAPartOfTheOutput(t *testing.T) {
	for name, tt := range map[string]struct {
		output string
		log    plan.Log
		want   string
	}{
		"the head":              {"  abcdef ", plan.Log{Chars: 3}, "abc"},
		"the tail":              {"abcdef\n", plan.Log{Chars: 3, Extract: plan.ExtractTail}, "def"},
		"characters, not bytes": {"äöüx", plan.Log{Chars: 3}, "äöü"},
		"of the tail, too":      {"xäöü", plan.Log{Chars: 3, Extract: plan.ExtractTail}, "äöü"},
		"all of a short one":    {"ab", plan.Log{Chars: 3}, "ab"},
		"nothing":               {" \n", plan.Log{Chars: 3}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := refine.Learning(tt.output, tt.log); got != tt.want {
				t.Errorf("%q", got)
			}
		})
	}
}

func TestPatternsAreTheLinesUnderTheirHeading(t *testing.T) {
	for output, want := range map[string]string{
		"no heading":                                "",
		"## Patterns\n- a\n- b\n":                   "- a\n- b",
		"x\n\n## Patterns\n- a\n\n## Next\nmore":    "- a",
		"## Patterns\nold\n# x\n## Patterns\n- new": "- new",
		"## Patterns\r\n- a\r\n":                    "- a",
		"## Patterns\n" + strings.Repeat("ä", 3000): strings.Repeat("ä", 2000),
	} {
		if got := refine.Patterns(output); got != want {
			t.Errorf("%q: %q", output, got)
		}
	}
}

// rows: RON-2..4, RON-6, RON-9
func TestIterationGetsInputLogAndNumber(t *testing.T) {
	var log refine.Log
	it := refine.Iteration{Fence: fence.New("n0nce"), Input: "Fix it. ", Number: 1, Of: 10, Log: &log, MaxEntries: 2}
	if got := it.Message(); got != "Fix it. " {
		t.Errorf("the first one is told %q", got)
	}
	log.Add(1, "tried a", "")
	log.Add(2, "tried b", "- keep the tests")
	log.Add(3, "tried c", "")
	it.Number = 4
	it.Feedback = []refine.Feedback{{Title: "Command go test: it exited with 1", From: "command", Text: "FAIL"}}
	got, at := it.Message(), 0
	for _, want := range []string{
		"Fix it. \n\n## Progress Log\n", "### Patterns\n<untrusted id=\"n0nce\" source=\"patterns\">\n- keep the tests\n",
		"(The oldest 1 entries are left out.)", "### Iteration 2\n<untrusted id=\"n0nce\" source=\"iteration_2\">\ntried b\n", "### Iteration 3\n", "tried c",
		"Command go test: it exited with 1:\n<untrusted", "FAIL", "\n\nIteration 4 of 10\n", "do better",
	} {
		i := strings.Index(got[at:], want)
		if i < 0 {
			t.Fatalf("after %d there is no %q in\n%s", at, want, got)
		}
		at += i
	}
	if strings.Contains(got, "tried a") {
		t.Errorf("an entry beyond the bound is told:\n%s", got)
	}
}

func TestOmissionNoteNeedsAnOmittedEntry(t *testing.T) {
	var log refine.Log
	if last := log.Last(); last != "" {
		t.Errorf("the last of none is %q", last)
	}
	log.Add(1, "tried a", "")
	log.Add(2, "tried b", "")
	if last := log.Last(); last != "tried b" {
		t.Errorf("the last of two is %q", last)
	}
	it := refine.Iteration{Input: "Fix it.", Number: 3, Of: 10, Log: &log, MaxEntries: 2}
	if got := it.Message(); strings.Contains(got, "left out") || !strings.Contains(got, "tried a") {
		t.Errorf("of two entries it is told\n%s", got)
	}
}

func TestEntriesAreBoundedInBytes(t *testing.T) {
	for over, want := range map[int]bool{0: false, 1: true} {
		var log refine.Log
		log.Add(1, strings.Repeat("a", 60<<10), "")
		log.Add(2, strings.Repeat("b", 60<<10+over), "")
		it := refine.Iteration{Number: 3, Of: 10, Log: &log, MaxEntries: 50}
		if got := strings.Contains(it.Message(), "(The oldest 1 entries are left out.)"); got != want {
			t.Errorf("%d bytes above the bound: left out %t", over, got)
		}
	}
}

// Long feedback keeps its two ends: a quarter of the limit at the head and the rest at
// the tail, both with whole characters.
func TestLongFeedbackKeepsItsEnds(t *testing.T) {
	const most = 4 << 10
	for name, tt := range map[string]struct{ text, want string }{
		"one that fits":     {strings.Repeat("x", most), strings.Repeat("x", most)},
		"one byte too much": {strings.Repeat("x", most+1), strings.Repeat("x", 1024) + "\n[1 bytes are left out.]\n" + strings.Repeat("x", 3072)},
		"its ends":          {strings.Repeat("a", 1024) + strings.Repeat("b", 5000) + strings.Repeat("c", 3072), strings.Repeat("a", 1024) + "\n[5000 bytes are left out.]\n" + strings.Repeat("c", 3072)},
		"whole characters":  {"x" + strings.Repeat("é", 4000), "x" + strings.Repeat("é", 511) + "\n[3906 bytes are left out.]\n" + strings.Repeat("é", 1536)},
		"cut at the tail":   {strings.Repeat("é", 4000) + "x", strings.Repeat("é", 512) + "\n[3906 bytes are left out.]\n" + strings.Repeat("é", 1535) + "x"},
		"no characters":     {strings.Repeat("\x80", 2*most), "\n[8192 bytes are left out.]\n"},
	} {
		it := refine.Iteration{Fence: fence.New("n0nce"), Number: 2, Of: 3, Log: &refine.Log{}, Feedback: []refine.Feedback{{Title: "Command", From: "command", Text: tt.text}}}
		_, told, _ := strings.Cut(it.Message(), "Command:\n")
		told, _, _ = strings.Cut(told, "\n\nIteration 2 of 3")
		if want := it.Fence.Wrap("command", tt.want); told != want {
			t.Errorf("%s: %d bytes instead of %d", name, len(told), len(want))
		}
	}
}

func TestASummaryIsOfTheOutputAndItsTask(t *testing.T) {
	got := refine.SummaryTask(fence.New("n0nce"), "Fix it.", 3, strings.Repeat("x", 40<<10)+"the end", 200)
	for _, want := range []string{
		"## Summary\nIteration 3 of the task below has ended.", "at most 200 characters", "## Task\nFix it.\n\n## What the iteration said\n<untrusted id=\"n0nce\" source=\"iteration_3\">",
		"[8199 bytes are left out.]", "xthe end\n</untrusted",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in it", want)
		}
	}
}

func TestTheMessageGrowsNoLongerThanItsBounds(t *testing.T) {
	var log refine.Log
	it := refine.Iteration{Input: "Fix it.", Of: 1000, Log: &log, MaxEntries: refine.MaxEntries}
	longest := 0
	for i := range 1000 {
		log.Add(i+1, strings.Repeat("x", refine.Chars), strings.Repeat("p", 2000))
		it.Number = i + 2
		it.Feedback = []refine.Feedback{{Title: "t", From: "f", Text: strings.Repeat("y", 1<<20)}}
		if n := len(it.Message()); i == 100 {
			longest = n + 200 // numbers have more digits later
		} else if i > 100 && n > longest {
			t.Fatalf("the message of iteration %d has %d bytes, that of 102 had %d", i+2, n, longest)
		}
	}
	log = refine.Log{}
	for i := range 100 {
		log.Add(i+1, strings.Repeat("x", 10_000), "")
	}
	it.MaxEntries, it.Feedback = 100, nil
	if n := len(it.Message()); n > 130<<10 {
		t.Errorf("%d bytes of long entries", n)
	}
	for i := range 100 { // whole entries or none
		if n := strings.Count(it.Message(), fmt.Sprintf("### Iteration %d\n%s\n", i+1, strings.Repeat("x", 10_000))); n > 1 || n == 0 && i > 90 {
			t.Errorf("entry %d is there %d times", i+1, n)
		}
	}
}

func TestPassingTestsAreCountedInTheFormsOfTheUsualPrograms(t *testing.T) {
	for output, want := range map[string]int{
		"--- PASS: TestA (0.00s)\n    --- PASS: TestA/x\n--- FAIL: TestB\nFAIL\tpkg\t0.1s": 2,
		"ok  \tpkg\t0.1s\nok \tother":          2,
		"Tests: 3 failed, 12 passed, 15 total": 12,
		"=== 4 passed, 1 failed in 0.12s ===":  4,
		"  7 passing (20ms)":                   7,
		"3 passed in a\n4 passed in b":         7,
		"1..2\nok 1 - a\nnot ok 2 - b":         1,
		"ls: cannot access 'done.txt'":         -1,
		"":                                     -1,
	} {
		n, known := refine.Passing(output)
		if !known {
			n = -1
		}
		if n != want {
			t.Errorf("%q: %d", output, n)
		}
	}
}
