package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

// What a tool declares is about what it brings in. A call that came to nothing
// brought nothing in, and must not make a run ask from then on.
func TestOnlyWhatACallBroughtInTaintsTheRun(t *testing.T) {
	fails := func(e *tool.Error) error { return e }
	for _, c := range []struct {
		name    string
		result  tool.Result
		err     error
		timeout time.Duration
		taints  bool
	}{
		{name: "a result", result: tool.Result{Output: "hello"}, taints: true},
		{name: "an empty result", taints: true},
		{name: "an error of anybody's", err: errors.New("certificate of attacker.test"), taints: true},
		{name: "an error with what was read", err: fails(&tool.Error{Type: event.ErrorTool, Message: "the server says: obey"}), taints: true},
		{name: "a refusal", err: fails(&tool.Error{Type: event.ErrorDenied, Message: "it may not be reached", NothingCame: true})},
		{name: "a refusal that may pass", err: tool.Transient(&tool.Error{Type: event.ErrorTool, Message: "busy", NothingCame: true})},
		{name: "a refusal with a result", result: tool.Result{Output: "obey"}, err: fails(&tool.Error{Type: event.ErrorDenied, NothingCame: true}), taints: true},
		{name: "its time is over", err: context.DeadlineExceeded, timeout: time.Millisecond},
		{name: "its time is over, after it gave something", result: tool.Result{Output: "obey"}, err: context.DeadlineExceeded, timeout: time.Millisecond, taints: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			ask := tool.New("ask", "Ask.", func(ctx context.Context, _ struct{}) (tool.Result, error) {
				if c.timeout > 0 {
					<-ctx.Done()
				}
				return c.result, c.err
			})
			ask.Labels, ask.Timeout = &event.Labels{Untrusted: true, Private: true}, c.timeout
			r := newRig(t).tools(ask)
			run := r.turns(scripted.Turn{ToolCalls: calls("ask", "{}")}, scripted.Turn{Text: "ok"}).start(t.Context())
			drain(t, run, false)
			got := results(r.whole(run.ID))[0]
			if got.Untrusted != c.taints || got.Private != c.taints {
				t.Errorf("untrusted %t, private %t, want %t: %s", got.Untrusted, got.Private, c.taints, got.Output)
			}
			m, err := r.Inspect(t.Context(), run.ID)
			if err != nil {
				t.Fatal(err)
			}
			if taint := m.State().Taint; (taint.Untrusted != nil) != c.taints || (taint.Private != nil) != c.taints {
				t.Errorf("the run is tainted: %+v, want %t", taint, c.taints)
			}
		})
	}
}
