package stop_test

import (
	"slices"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/stop"
)

// rows: ALDO-10, ALDO-29..36
func TestConditions(t *testing.T) {
	exit := func(code *int, contains string) stop.Condition {
		return stop.Condition{Kind: stop.ToolResult, Tool: "shell.exec", Match: stop.Match{ExitCode: code, Contains: contains}}
	}
	text := stop.Condition{Kind: stop.TextIncludes, Text: "<done>"}
	money := stop.Condition{Kind: stop.BudgetExhausted}
	ran := func(tool, output string, code *int) *event.ToolResult {
		return &event.ToolResult{Tool: tool, Output: output, ExitCode: code}
	}
	for _, tt := range []struct {
		name       string
		conditions []stop.Condition
		cycle      stop.Cycle
		want       int
	}{
		{"nothing declared", nil, stop.Cycle{Text: "<done>"}, -1},
		{"text is there", []stop.Condition{text}, stop.Cycle{Text: "all <done> now"}, 0},
		{"text in other letters", []stop.Condition{text}, stop.Cycle{Text: "<DONE>"}, -1},
		{"exit code alone", []stop.Condition{exit(new(0), "")}, stop.Cycle{Results: []*event.ToolResult{ran("shell.exec", "x", new(0))}}, 0},
		{"another exit code", []stop.Condition{exit(new(0), "")}, stop.Cycle{Results: []*event.ToolResult{ran("shell.exec", "x", new(1))}}, -1},
		{"a failure that is looked for", []stop.Condition{exit(new(1), "")}, stop.Cycle{Results: []*event.ToolResult{ran("shell.exec", "x", new(1))}}, 0},
		{"no failure where one is looked for", []stop.Condition{exit(new(1), "")}, stop.Cycle{Results: []*event.ToolResult{ran("shell.exec", "x", new(0))}}, -1},
		{"no exit code at all", []stop.Condition{exit(new(0), "")}, stop.Cycle{Results: []*event.ToolResult{ran("shell.exec", "x", nil)}}, -1},
		{"output alone", []stop.Condition{exit(nil, "ok")}, stop.Cycle{Results: []*event.ToolResult{ran("shell.exec", "all ok", new(3))}}, 0},
		{"output that is kept in part, and holds it elsewhere", []stop.Condition{exit(nil, "ok")},
			stop.Cycle{Results: []*event.ToolResult{{Tool: "shell.exec", Output: "a … z", Contains: []string{"done", "ok"}}}}, 0},
		{"output that is kept in part, and holds something else", []stop.Condition{exit(nil, "ok")},
			stop.Cycle{Results: []*event.ToolResult{{Tool: "shell.exec", Output: "a … z", Contains: []string{"not ok"}}}}, -1},
		{"both hold", []stop.Condition{exit(new(0), "ok")}, stop.Cycle{Results: []*event.ToolResult{ran("shell.exec", "ok", new(0))}}, 0},
		{"only the code holds", []stop.Condition{exit(new(0), "ok")}, stop.Cycle{Results: []*event.ToolResult{ran("shell.exec", "no", new(0))}}, -1},
		{"only the output holds", []stop.Condition{exit(new(0), "ok")}, stop.Cycle{Results: []*event.ToolResult{ran("shell.exec", "ok", new(1))}}, -1},
		{"each holds of another call", []stop.Condition{exit(new(0), "ok")},
			stop.Cycle{Results: []*event.ToolResult{ran("shell.exec", "no", new(0)), ran("shell.exec", "ok", new(1))}}, -1},
		{"another failure than the one that is looked for", []stop.Condition{exit(new(1), "")}, stop.Cycle{Results: []*event.ToolResult{ran("shell.exec", "x", new(2))}}, -1},
		{"a tool whose name begins with the one that is named", []stop.Condition{exit(new(0), "")}, stop.Cycle{Results: []*event.ToolResult{ran("shell.exec.dry", "x", new(0))}}, -1},
		{"a tool whose name is the beginning of the one that is named", []stop.Condition{exit(new(0), "")}, stop.Cycle{Results: []*event.ToolResult{ran("shell", "x", new(0))}}, -1},
		{"another tool's result", []stop.Condition{exit(new(0), "")}, stop.Cycle{Results: []*event.ToolResult{ran("other", "x", new(0))}}, -1},
		{"the second of two results", []stop.Condition{exit(new(0), "")},
			stop.Cycle{Results: []*event.ToolResult{ran("shell.exec", "x", new(1)), ran("shell.exec", "x", new(0))}}, 0},
		{"the first of the list wins", []stop.Condition{money, text}, stop.Cycle{Text: "<done>", SpentUSD: 2, LimitUSD: 2}, 0},
		{"the second when the first does not hold", []stop.Condition{money, text}, stop.Cycle{Text: "<done>", SpentUSD: 1, LimitUSD: 2}, 1},
		{"spend exactly at the cap", []stop.Condition{money}, stop.Cycle{SpentUSD: 2, LimitUSD: 2}, 0},
		{"spend below the cap", []stop.Condition{money}, stop.Cycle{SpentUSD: 1.99, LimitUSD: 2}, -1},
		{"no cap, no exhaustion", []stop.Condition{money}, stop.Cycle{SpentUSD: 2}, -1},
		{"a kind that there is not", []stop.Condition{{Kind: "full-moon"}}, stop.Cycle{Text: "x"}, -1},
	} {
		if got := stop.First(tt.conditions, tt.cycle); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestWhatConditionsLookForInTheOutputOfATool(t *testing.T) {
	results := []stop.Condition{
		{Kind: stop.TextIncludes, Text: "<done>"},
		{Kind: stop.ToolResult, Tool: "test", Match: stop.Match{Contains: "ok"}},
		{Kind: stop.ToolResult, Tool: "test", Match: stop.Match{ExitCode: new(0)}},
		{Kind: stop.ToolResult, Tool: "lint", Match: stop.Match{Contains: "clean"}},
		{Kind: stop.ToolResult, Tool: "test", Match: stop.Match{ExitCode: new(1), Contains: "passed"}},
	}
	for tool, want := range map[string][]string{"test": {"ok", "passed"}, "lint": {"clean"}, "other": nil} {
		if got := stop.Sought(results, tool); !slices.Equal(got, want) {
			t.Errorf("of %s: %q, want %q", tool, got, want)
		}
	}
}

// A call that was only asked for proves nothing, though its refusal says the
// very words that are looked for.
//
// rows: HAR-14
func TestOnlyWhatAToolDidIsEvidence(t *testing.T) {
	done := stop.Condition{Kind: stop.ToolResult, Tool: "test", Match: stop.Match{Contains: "ok"}}
	for kind, evidence := range map[event.ErrorType]bool{
		"": true, event.ErrorTool: true, event.ErrorTimeout: true, event.ErrorNotFound: true,
		event.ErrorUnknownTool: false, event.ErrorUnavailable: false, event.ErrorInvalidArgs: false, event.ErrorTruncated: false,
		event.ErrorDenied: false, event.ErrorRejected: false, event.ErrorExpired: false, event.ErrorBlocked: false,
		event.ErrorHookBlocked: false, event.ErrorHookFailed: false, event.ErrorBudget: false, event.ErrorCancelled: false, event.ErrorInDoubt: false,
	} {
		r := &event.ToolResult{CallID: "c1", Tool: "test", Output: "not ok", IsError: kind != "", ErrorType: kind}
		c := stop.Cycle{Results: []*event.ToolResult{r}}
		if got := stop.First([]stop.Condition{done}, c) == 0; got != evidence {
			t.Errorf("%q counts: %t", kind, got)
		}
		if got := done.Evidence(c); (got == r) != evidence {
			t.Errorf("the evidence for %q is %+v", kind, got)
		}
	}
	if got := (stop.Condition{Kind: stop.TextIncludes, Text: "ok"}).Evidence(stop.Cycle{Text: "ok"}); got != nil {
		t.Errorf("a text is no evidence: %+v", got)
	}
}
