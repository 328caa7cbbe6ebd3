package engine_test

import (
	"testing"
	"testing/synctest"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/llm/scripted"
)

// A child is in the trace of the run that started it, below the span of its call.
func TestATreeIsOneTrace(t *testing.T) {
	for _, traces := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			child := newRig(t).turns(scripted.Turn{Text: "found"})
			r := newRig(t, child.store).turns(scripted.Turn{ToolCalls: calls("ask", task)}, scripted.Turn{Text: "done"}).offers("ask", child)
			r.Engine = engine.New(r.store, newMachine, engine.Options{Observers: []perform.Observer{{Traces: traces}}})
			defer r.Close()
			run := r.start(t.Context())
			if o := outcome(t, run); !o.OK {
				t.Fatalf("%+v", o)
			}
			var callID string
			for _, e := range r.whole(run.ID) {
				if d, ok := e.Data.(event.ChildStarted); ok {
					callID = d.CallID
				}
			}
			got := func(run string) event.Trace { return r.whole(run)[0].Data.(event.RunStarted).Trace }
			want := event.Trace{}
			if traces {
				want = event.NewTrace(run.ID)
			}
			if got(run.ID) != want {
				t.Errorf("traces %v: the root has %+v, want %+v", traces, got(run.ID), want)
			}
			for _, id := range r.children(run.ID) {
				if below := want.Below(run.ID, callID); got(id) != below {
					t.Errorf("traces %v: the child has %+v, want %+v", traces, got(id), below)
				}
			}
			if callID == "" || len(r.children(run.ID)) != 1 {
				t.Error("there is no child")
			}
		})
	}
}
