package engine_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm/scripted"
)

// One person at one terminal hears one question at a time, in the order of the
// calls, and none about a call that was decided elsewhere meanwhile.
//
// rows: HAR-66
func TestCallsAreAskedAboutInTurn(t *testing.T) {
	for name, c := range map[string]struct {
		elsewhere int // the call that somebody else decides while the first question is open, 0 for none
		want      []string
	}{
		"all at the terminal":                    {0, []string{"1", "2", "3", "4", "5"}},
		"the one that is asked, from elsewhere":  {1, []string{"1", "2", "3", "4", "5"}},
		"one that is to come, decided elsewhere": {3, []string{"1", "2", "4", "5"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var open, ran atomic.Int32
				var heard []string
				var five []scripted.Call
				for range 5 {
					five = append(five, call("work", "{}"))
				}
				r := newRig(t).gate("work").
					tools(toolFunc("work", func(context.Context) (string, error) { ran.Add(1); return "worked", nil })).
					turns(scripted.Turn{ToolCalls: five}, scripted.Turn{Text: "done"}).
					asker(func(ctx context.Context, p event.ToolPendingApproval) (event.ToolApprovalResolved, error) {
						if open.Add(1) != 1 {
							t.Error("two questions are open at once")
						}
						defer open.Add(-1)
						heard = append(heard, p.CallID[len(p.CallID)-1:])
						select {
						case <-ctx.Done():
							return event.ToolApprovalResolved{}, ctx.Err()
						case <-time.After(time.Minute):
							return event.ToolApprovalResolved{Kind: event.ApprovalApproved, Approver: "ann"}, nil
						}
					})
				r.env.AskInTurn = true
				run := r.start(t.Context())
				synctest.Wait()
				if c.elsewhere > 0 {
					r.send(journal.Command{Run: run.ID, Kind: journal.Approve, CallID: fmt.Sprintf("%s-1-%d", run.ID, c.elsewhere), By: "bob"})
				}
				if o := outcome(t, run); !o.OK || ran.Load() != 5 {
					t.Errorf("%d calls ran; outcome %+v", ran.Load(), o)
				}
				if !slices.Equal(heard, c.want) {
					t.Errorf("heard %v, want %v", heard, c.want)
				}
			})
		})
	}
}

// Whoever is asked comes back when the question is over, with an error or with
// what looks like an answer. Neither is one.
func TestAnAnswerToAQuestionThatIsOverIsNone(t *testing.T) {
	for name, late := range map[string]struct {
		kind event.ApprovalKind
		err  error
	}{
		"an error":     {"", context.DeadlineExceeded},
		"a rejection":  {event.ApprovalRejected, nil},
		"an approval":  {event.ApprovalApproved, nil},
		"nothing said": {"", nil},
	} {
		asked := func(ctx context.Context, p event.ToolPendingApproval) (event.ToolApprovalResolved, error) {
			if p.ExpiresAt != nil {
				var cancel context.CancelFunc
				ctx, cancel = context.WithDeadline(ctx, *p.ExpiresAt)
				defer cancel()
			}
			<-ctx.Done()
			return event.ToolApprovalResolved{Kind: late.kind, Approver: "ann"}, late.err
		}
		t.Run(name+" after its time", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, ran := gatedRig(t)
				r.cfg.Approvals.Seconds = 60
				run := r.asker(asked).start(t.Context())
				if o := outcome(t, run); !o.OK || ran.Load() != 0 {
					t.Errorf("%d calls ran; outcome %+v", ran.Load(), o)
				}
				if d := decisions(r.whole(run.ID)); len(d) != 1 || d[0].Kind != event.ApprovalExpired {
					t.Errorf("decisions %+v", d)
				}
			})
		})
		t.Run(name+" after an interruption", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, ran := gatedRig(t)
				run := r.asker(asked).start(t.Context())
				synctest.Wait()
				run.Interrupt()
				parkedAs(t, run, event.ParkInterrupted)
				if d := decisions(r.journal(run.ID)); len(d) != 0 {
					t.Errorf("decisions %+v", d)
				}
				other := r.other()
				other.send(journal.Command{Run: run.ID, Kind: journal.Approve, CallID: run.ID + "-1-1", By: "bob"})
				if o := outcome(t, other.resume(run.ID)); !o.OK || ran.Load() != 1 {
					t.Errorf("%d calls ran; outcome %+v", ran.Load(), o)
				}
			})
		})
	}
}
