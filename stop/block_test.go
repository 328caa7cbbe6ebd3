package stop_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/stop"
)

// answer is what a model asks for, each "tool argument".
type answer []string

func asked(calls answer) []stop.PendingCall {
	var out []stop.PendingCall
	for _, c := range calls {
		name, _, _ := strings.Cut(c, " ")
		out = append(out, stop.PendingCall{Tool: name, Digest: c, Works: name == "edit" || name == "make"})
	}
	return out
}

// watch plays answers before a watch as a machine does, and writes down what is
// decided: of each answer the calls that do not run, and what follows.
type watch struct {
	stop.Repetition
	// result is what a call that runs comes to, and tree what the files are then.
	result func(n int, call string) event.ToolResult
	log    []string
}

func (w *watch) play(n int, calls answer) (over bool) {
	all := asked(calls)
	var work stop.Work
	var cycle []stop.Call
	for i, c := range calls {
		name, _, _ := strings.Cut(c, " ")
		settled := stop.Call{Tool: name, Digest: c}
		if d, ok := w.Blocked(all[:i+1]); ok && w.Warned() {
			w.log = append(w.log, fmt.Sprintf("%d blocks %s as %s", n, c, d.Pattern))
			settled.Blocked = stop.Pattern(d.Pattern)
			settled.Result = &event.ToolResult{IsError: true, ErrorType: event.ErrorBlocked, Output: stop.Message(d)}
		} else {
			r := w.result(n, c)
			settled.Result = &r
			facts := event.Facts{}
			if all[i].Works {
				facts.Paths = []event.PathUse{{Path: "f", Write: true}}
			}
			work.Add(&facts, &r, true)
		}
		cycle = append(cycle, settled)
	}
	for _, c := range cycle {
		w.Called(c)
	}
	w.Worked(work)
	d, due := w.Due()
	if !due {
		return false
	}
	w.log = append(w.log, fmt.Sprintf("%d %s %s", n, d.Action, d.Pattern))
	if d.Action == event.StuckNudge {
		w.Nudged(stop.Pattern(d.Pattern))
	}
	return d.Action == event.StuckStop
}

// The middle of the ladder, for the patterns that are about more than one call:
// once, and only what goes on with the pattern.
func TestWhatGoesOnAfterANudgeIsBlockedOnceBeforeTheRunEnds(t *testing.T) {
	failed := func(int, string) event.ToolResult {
		return event.ToolResult{IsError: true, ErrorType: event.ErrorNotFound, Output: "no such file"}
	}
	// same leaves the files unchanged, with any arguments.
	same := func(n int, call string) event.ToolResult {
		r := event.ToolResult{Output: fmt.Sprint(n, call)}
		if strings.HasPrefix(call, "edit") || strings.HasPrefix(call, "make") {
			r.Tree = "t"
		}
		return r
	}
	for _, tt := range []struct {
		name   string
		ask    func(n int) answer
		result func(n int, call string) event.ToolResult
		want   []string
	}{
		{"failures of one tool", func(n int) answer { return answer{fmt.Sprint("read ", n)} }, failed,
			[]string{"5 nudge same_error", "8 blocks read 8 as same_error", "11 stop same_error"}},
		{"failures of one tool, many in an answer", func(n int) answer {
			return answer{fmt.Sprint("read a", n), fmt.Sprint("read b", n), fmt.Sprint("read c", n)}
		}, failed,
			[]string{"2 nudge same_error", "4 blocks read a4 as same_error", "4 blocks read b4 as same_error", "4 blocks read c4 as same_error", "5 stop same_error"}},
		{"another tool beside the one that fails", func(n int) answer {
			if n == 8 {
				return answer{"list .", "read x"}
			}
			return answer{fmt.Sprint("read ", n)}
		}, func(n int, call string) event.ToolResult {
			if call == "list ." {
				return event.ToolResult{Output: "a b"}
			}
			return failed(n, call)
		}, []string{"5 nudge same_error", "8 blocks read x as same_error", "13 nudge same_error", "16 blocks read 16 as same_error", "19 stop same_error"}},
		{"a call that succeeds in time", func(n int) answer { return answer{fmt.Sprint("read ", n)} }, func(n int, call string) event.ToolResult {
			if n == 7 {
				return event.ToolResult{Output: "found"}
			}
			return failed(n, call)
		}, []string{"5 nudge same_error", "12 nudge same_error", "15 blocks read 15 as same_error", "18 stop same_error"}},
		{"the call after the block is the right one", func(n int) answer { return answer{fmt.Sprint("read ", n)} }, func(n int, call string) event.ToolResult {
			if n > 8 {
				return event.ToolResult{Output: fmt.Sprint(n)}
			}
			return failed(n, call)
		}, []string{"5 nudge same_error", "8 blocks read 8 as same_error"}},
		{"edits to no effect", func(n int) answer { return answer{fmt.Sprint("edit ", n)} }, same,
			[]string{"9 nudge unchanged_tree", "14 blocks edit 14 as unchanged_tree", "18 stop unchanged_tree"}},
		{"edits to no effect, beside looks at files", func(n int) answer {
			return answer{fmt.Sprint("read ", n), fmt.Sprint("edit ", n), fmt.Sprint("make ", n)}
		}, same,
			[]string{"9 nudge unchanged_tree", "14 blocks edit 14 as unchanged_tree", "14 blocks make 14 as unchanged_tree", "18 stop unchanged_tree"}},
		{"the model looks and does not edit", func(n int) answer {
			if n > 13 {
				return answer{fmt.Sprint("read ", n)}
			}
			return answer{fmt.Sprint("edit ", n)}
		}, same, []string{"9 nudge unchanged_tree"}},
		{"the edit after the block changes something", func(n int) answer { return answer{fmt.Sprint("edit ", n)} }, func(n int, call string) event.ToolResult {
			r := same(n, call)
			if n > 14 {
				r.Tree = fmt.Sprint(n)
			}
			return r
		}, []string{"9 nudge unchanged_tree", "14 blocks edit 14 as unchanged_tree"}},
		{"a call that is right at times", func(int) answer { return answer{"read a"} }, func(n int, call string) event.ToolResult {
			if n%3 == 0 {
				return event.ToolResult{Output: fmt.Sprint(n)}
			}
			return failed(n, call)
		}, nil},
		{"a tool that works beside the one that fails", func(n int) answer {
			if n == 8 {
				return answer{"edit f", "read x"}
			}
			return answer{fmt.Sprint("read ", n)}
		}, func(n int, call string) event.ToolResult {
			if call == "edit f" {
				return event.ToolResult{Tree: "t"}
			}
			return failed(n, call)
		}, []string{"5 nudge same_error", "8 blocks read x as same_error", "13 nudge same_error", "16 blocks read 16 as same_error", "19 stop same_error"}},
		{"another call of the tool whose one call was warned of", func(n int) answer {
			if n > 3 {
				return answer{fmt.Sprint("read ", n)}
			}
			return answer{"read a"}
		}, func(n int, call string) event.ToolResult {
			if n > 4 {
				return event.ToolResult{Output: fmt.Sprint(n)}
			}
			return failed(n, call)
		}, []string{"3 nudge same_call"}},
		{"another call before the one that was warned of", func(n int) answer {
			if n == 4 {
				return answer{"list .", "read a"}
			}
			return answer{"read a"}
		}, func(n int, call string) event.ToolResult {
			if n == 4 {
				return event.ToolResult{Output: "a"}
			}
			return failed(n, call)
		}, []string{"3 nudge same_call", "7 nudge same_call", "8 blocks read a as same_call", "9 blocks read a as same_call", "9 stop same_call"}},
		{"one call again and again, after different ones that failed alike", func(n int) answer {
			if n > 5 {
				return answer{"look x"}
			}
			return answer{fmt.Sprint("read ", n)}
		}, failed, []string{
			"5 nudge same_error", "8 blocks look x as same_error", "9 nudge same_call",
			"10 blocks look x as same_call", "11 blocks look x as same_call", "11 stop same_call",
		}},
		{"two calls in turn are blocked each time", func(n int) answer { return answer{[]string{"read a", "list ."}[n%2]} }, func(_ int, call string) event.ToolResult {
			return event.ToolResult{Output: call}
		}, []string{
			"6 nudge alternating_calls", "7 blocks list . as alternating_calls", "8 blocks read a as alternating_calls",
			"9 blocks list . as alternating_calls", "10 blocks read a as alternating_calls", "10 stop alternating_calls",
		}},
		{"a third call leaves the circle of two", func(n int) answer {
			if n == 7 {
				return answer{"read b"}
			}
			return answer{[]string{"read a", "list ."}[n%2]}
		}, func(_ int, call string) event.ToolResult {
			return event.ToolResult{Output: call}
		}, []string{
			"6 nudge alternating_calls", "13 nudge alternating_calls", "14 blocks read a as alternating_calls", "15 blocks list . as alternating_calls",
			"16 blocks read a as alternating_calls", "17 blocks list . as alternating_calls", "17 stop alternating_calls",
		}},
		{"one call that says the same again and again", func(int) answer { return answer{"read a"} }, func(int, string) event.ToolResult {
			return event.ToolResult{Output: "x"}
		}, []string{"3 nudge same_call", "4 blocks read a as same_call", "5 blocks read a as same_call", "5 stop same_call"}},
		{"one call that says something new each time", func(int) answer { return answer{"read a"} }, func(n int, _ string) event.ToolResult {
			return event.ToolResult{Output: fmt.Sprint(n)}
		}, nil},
		{"one call again and again is blocked each time", func(int) answer { return answer{"read a"} }, failed,
			[]string{"3 nudge same_call", "4 blocks read a as same_call", "5 blocks read a as same_call", "5 stop same_call"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := watch{result: tt.result}
			for n := 1; n <= 30 && !w.play(n, tt.ask(n)); n++ {
			}
			if got := strings.Join(w.log, "\n"); got != strings.Join(tt.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", got, strings.Join(tt.want, "\n"))
			}
		})
	}
}

// What is blocked is all of an answer that goes on with the circle, from its next call.
func TestABlockedCircleSaysItsCallAndHowOftenItCame(t *testing.T) {
	var r stop.Repetition
	if r.Warned() {
		t.Error("a run that did nothing was warned")
	}
	for n := range 6 {
		name := []string{"read", "list"}[n%2]
		r.Called(stop.Call{Tool: name, Digest: name, Result: &event.ToolResult{Output: name}})
		if _, blocked := r.Blocked(asked(answer{"read"})); blocked {
			t.Fatalf("a call is blocked after %d, without a nudge", n+1)
		}
	}
	d, due := r.Due()
	if want := (event.Stuck{Pattern: "alternating_calls", Tool: "list", Count: 6, Action: event.StuckNudge}); !due || d != want {
		t.Fatalf("due %t: %+v", due, d)
	}
	r.Nudged(stop.AlternatingCalls)
	if !r.Warned() {
		t.Error("a run that was nudged was not warned")
	}
	for _, tt := range []struct {
		calls answer
		tool  string
		count int
	}{
		{answer{"read"}, "read", 7},
		{answer{"read", "list"}, "list", 8},
		{answer{"read", "list", "read"}, "read", 9},
		{answer{"list"}, "", 0},
		{answer{"read", "read"}, "", 0},
		{answer{"read", "list", "edit"}, "", 0},
	} {
		d, blocked := r.Blocked(asked(tt.calls))
		want := event.Stuck{}
		if tt.tool != "" {
			want = event.Stuck{Pattern: "alternating_calls", Tool: tt.tool, Count: tt.count, Action: event.StuckBlock}
		}
		if d != want || blocked != (tt.tool != "") {
			t.Errorf("%v: blocked %t: %+v", tt.calls, blocked, d)
		}
	}
}

// A journal may have a nudge that another version decided on.
func TestANudgeForAnUnknownPatternIsAWarning(t *testing.T) {
	var r stop.Repetition
	r.Nudged("of_another_version")
	if d, due := r.Due(); !r.Warned() || due {
		t.Errorf("warned %t, due %t: %+v", r.Warned(), due, d)
	}
}

func TestEditsAndUnknownCommandsCountAsWork(t *testing.T) {
	command := []event.Command{{Words: []string{"make"}}}
	for _, tt := range []struct {
		name  string
		facts *event.Facts
		want  bool
	}{
		{"nothing is known", nil, false},
		{"reads a file", &event.Facts{Paths: []event.PathUse{{Path: "a"}}, Risk: event.RiskRead}, false},
		{"writes a file", &event.Facts{Paths: []event.PathUse{{Path: "a", Write: true}}, Risk: event.RiskWrite}, true},
		{"writes under a name that is no file's own", &event.Facts{Paths: []event.PathUse{{Path: "a", Write: true, Alias: true}}, Risk: event.RiskWrite}, false},
		{"writes elsewhere", &event.Facts{Paths: []event.PathUse{{Path: "/a", Write: true, Outside: true}}, Risk: event.RiskWrite}, false},
		{"runs a program", &event.Facts{Commands: command, Risk: event.RiskExecute}, true},
		{"runs a harmless one", &event.Facts{Commands: command, Risk: event.RiskRead}, false},
	} {
		if got := stop.Works(tt.facts); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}
