package engine_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/replay"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm/scripted"
)

// Two calls with the same arguments are decided in the other order, a third gets other
// arguments, the question about the fourth expires, and the fifth, which only the
// replay makes, has no decision.
func TestAReplayIsDecidedAboutAsItsRunWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t).gate("work").
			tools(argsTool("work", func(string) {})).
			turns(
				scripted.Turn{ToolCalls: calls("work", `{"to":"1"}`, "work", `{"to":"1"}`, "work", `{"to":"3"}`, "work", `{"to":"4"}`)},
				scripted.Turn{Text: "done"},
			)
		r.cfg.Approve = agent.ApproveWait
		r.cfg.Approvals.Seconds = 60
		run := r.start(t.Context())
		synctest.Wait()
		decide := func(c journal.Command) {
			c.Run, c.By = run.ID, "ada"
			r.send(c)
			synctest.Wait()
		}
		decide(journal.Command{Kind: journal.Approve, CallID: run.ID + "-1-2"})
		decide(journal.Command{Kind: journal.Approve, CallID: run.ID + "-1-3", Args: json.RawMessage(`{"to":"30"}`), Text: "thirty"})
		decide(journal.Command{Kind: journal.Reject, CallID: run.ID + "-1-1", Text: "once is enough"})
		if o := outcome(t, run); !o.OK {
			t.Fatalf("outcome %+v", o)
		}
		first := results(r.whole(run.ID))

		var err error
		if r.env.Ask, err = replay.Decisions(t.Context(), r.Past(), run.ID); err != nil {
			t.Fatal(err)
		}
		r.env.AskInTurn = true
		r.turns(
			scripted.Turn{ToolCalls: calls("work", `{"to":"1"}`, "work", `{"to":"1"}`, "work", `{"to":"3"}`, "work", `{"to":"4"}`)},
			scripted.Turn{ToolCalls: calls("work", `{"to":"5"}`)},
			scripted.Turn{Text: "done"},
		)
		began := time.Now()
		again := r.start(t.Context())
		if o := outcome(t, again); !o.OK {
			t.Fatalf("outcome %+v", o)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("what nobody decided was waited for: %s", took)
		}
		outputs := func(results []event.ToolResult) map[string]string {
			by := map[string]string{}
			for _, res := range results {
				by[res.CallID[len(run.ID):]] = res.Output
			}
			return by
		}
		want := outputs(first)
		want["-2-1"] = outputs(results(r.whole(again.ID)))["-2-1"]
		if diff := cmp.Diff(want, outputs(results(r.whole(again.ID)))); diff != "" {
			t.Errorf("results (-run +replay):\n%s", diff)
		}
		kinds := map[string]string{}
		for _, d := range decisions(r.whole(again.ID)) {
			kinds[d.CallID[len(again.ID):]] += string(d.Kind) + " by " + d.Approver + "; "
		}
		if diff := cmp.Diff(map[string]string{
			"-1-1": "rejected by ada; ",
			"-1-2": "approved by ada; ",
			"-1-3": "edited by ada; approved by ada; ",
			"-1-4": "expired by ; ",
			"-2-1": "approved by replay of " + run.ID + "; ",
		}, kinds); diff != "" {
			t.Errorf("decisions (-want +got):\n%s", diff)
		}
	})
}
