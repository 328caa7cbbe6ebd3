package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/hook"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/stop"
	"github.com/pawlrun/pawl/tool"
)

// A condition is about what the tool gave, not about the part of it that the
// model is shown.
//
// rows: ALDO-34, ALDO-35
func TestAConditionIsMetByWhatTheModelIsNotShownOfAResult(t *testing.T) {
	filler := strings.Repeat("a line of output\n", 40)
	for name, c := range map[string]struct {
		output   string
		err      error
		contains []string
		met      bool
	}{
		"in the middle of a long output":        {output: filler + "ALL PASSED\n" + filler, contains: []string{"ALL PASSED"}, met: true},
		"in the middle of a failed call's":      {output: filler + "ALL PASSED\n" + filler, err: errors.New("it broke"), contains: []string{"ALL PASSED"}, met: true},
		"at the end, which the model is shown":  {output: filler + "ALL PASSED\n", contains: []string{"ALL PASSED"}, met: true},
		"in a short output":                     {output: "ALL PASSED", met: true},
		"nowhere in a long output":              {output: filler + filler},
		"in the middle, in other letters":       {output: filler + "all passed\n" + filler},
		"in the middle, but for another's text": {output: filler + "UNSOUGHT\n" + filler},
	} {
		t.Run(name, func(t *testing.T) {
			long := toolFunc("long", nil)
			long.Run = func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{Output: c.output}, c.err }
			r := newRig(t).tools(long).turns(scripted.Turn{ToolCalls: calls("long", "{}")}, scripted.Turn{Text: "done"})
			r.cfg.Limits.MaxResultChars = 300
			r.cfg.Conditions = []stop.Condition{
				{Kind: stop.ToolResult, Tool: "other", Match: stop.Match{Contains: "UNSOUGHT"}},
				{Kind: stop.ToolResult, Tool: "long", Match: stop.Match{Contains: "ALL PASSED"}},
			}
			run := r.start(t.Context())
			want := fmt.Sprint(event.ReasonFinalAnswer)
			if c.met {
				want = fmt.Sprint(event.ReasonConditionMet)
			}
			if o := outcome(t, run); string(o.Reason) != want {
				t.Errorf("ended with %s, want %s", o.Reason, want)
			}
			if got := results(r.whole(run.ID)); len(got) != 1 || !slices.Equal(got[0].Contains, c.contains) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// A gate behind a tool has the last word on what a call gave, however long that
// is. A condition is about all of it.
func TestAConditionIsMetByWhatTheModelIsNotShownOfAGatesOutput(t *testing.T) {
	filler := strings.Repeat("a line of output\n", 40)
	for name, c := range map[string]struct {
		output   string
		contains []string
		reason   event.Reason
	}{
		"in the middle of a long output": {filler + "ALL PASSED\n" + filler, []string{"ALL PASSED"}, event.ReasonConditionMet},
		"in a short one":                 {"ALL PASSED", nil, event.ReasonConditionMet},
		"nowhere":                        {filler + filler, nil, event.ReasonFinalAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t).tools(say()).turns(saying("hi")...).hooks(hook.Hook{
				Stage: event.HookAfterTool, Name: "gate", Kind: hook.Gate, Run: answers(hook.Answer{Output: &c.output}),
			})
			r.cfg.Limits.MaxResultChars = 300
			r.cfg.Conditions = []stop.Condition{{Kind: stop.ToolResult, Tool: "say", Match: stop.Match{Contains: "ALL PASSED"}}}
			run := r.start(t.Context())
			if o := outcome(t, run); o.Reason != c.reason {
				t.Errorf("ended with %s, want %s", o.Reason, c.reason)
			}
			if got := heard(r.whole(run.ID)); len(got) != 1 || !slices.Equal(got[0].Contains, c.contains) || len(got[0].Output) > 400 {
				t.Errorf("%+v", got)
			}
			r.replayed(run.ID)
		})
	}
}
