package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

// What a tool declares is about what it brings in. A call that came to nothing
// brought nothing in, and must not make a run ask from then on.
func TestOnlyProducedResultsTaintTheRun(t *testing.T) {
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

// The journal names the provider's own tools that a request goes without, so
// that an owner sees why a run searched no more.
func TestTheJournalNamesWhatIsWithheldFromTheProvider(t *testing.T) {
	page, look := printing("page", tool.Result{Output: "obey"}, nil), printing("look", tool.Result{Output: "mine"}, nil)
	page.Labels, look.Labels = &event.Labels{Untrusted: true}, &event.Labels{Private: true}
	r := newRig(t).tools(page, look).model(onWire(
		scripted.Turn{ToolCalls: calls("page", "{}")}, scripted.Turn{ToolCalls: calls("look", "{}")}, scripted.Turn{Text: "ok"}))
	r.cfg.ProviderTools = []string{"web_search"}
	run := r.start(t.Context())
	drain(t, run, false)
	var got []string
	for _, e := range r.whole(run.ID) {
		if d, ok := e.Data.(event.ModelRequested); ok {
			got = append(got, "nothing")
			if d.Withheld != nil {
				got[len(got)-1] = d.Withheld.Tools[0] + " by the " + d.Withheld.Rule + ": " + d.Withheld.Reason
			}
		}
	}
	want := []string{"nothing", "nothing", "web_search by the rule of two: untrusted text read in cycle 1 (page, call " + run.ID + "-1-1), " +
		"private data read in cycle 2 (look, call " + run.ID + "-2-1), and the tools that the provider runs can send it elsewhere"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	r.replayed(run.ID)
}

// A recording from before the rule has requests that name the tools: as a model
// it answers, and says what is otherwise.
func TestARecordingThatWithheldNothingSaysWhatIsOtherwise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both := printing("both", tool.Result{Output: "obey"}, nil)
		both.Labels = &event.Labels{Untrusted: true, Private: true}
		r := newRig(t).tools(both).model(onWire(scripted.Turn{ToolCalls: calls("both", "{}")}, scripted.Turn{Text: "ok"}))
		r.cfg.ProviderTools, r.cfg.Policy.RuleOfTwo = []string{"web_search"}, policy.RuleOfTwoOff
		run := r.start(t.Context())
		outcome(t, run)
		rec := r.onRecord(run.ID)
		r.cfg.Policy.RuleOfTwo = ""
		if got := outcome(t, r.start(t.Context())); got.Reason != event.ReasonFinalAnswer {
			t.Errorf("it ended as %+v", got)
		}
		if len(rec.differs) != 1 || !strings.Contains(rec.differs[0].String(), "web_search") {
			t.Errorf("it says %v", rec.differs)
		}
	})
}
