package engine_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm/scripted"
)

// A person at a terminal gets one question at a time, in the order of the
// calls, and none about a call that was decided elsewhere meanwhile.
//
// rows: HAR-66
func TestCallsAreAskedAboutInTurn(t *testing.T) {
	for name, c := range map[string]struct {
		elsewhere int // the call that is decided elsewhere while the first question is open, 0 for none
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
					asker(func(ctx context.Context, p event.Question) (event.Resolution, error) {
						if open.Add(1) != 1 {
							t.Error("two questions are open at once")
						}
						defer open.Add(-1)
						heard = append(heard, p.ID[len(p.ID)-1:])
						select {
						case <-ctx.Done():
							return event.Resolution{}, ctx.Err()
						case <-time.After(time.Minute):
							return event.Resolution{Kind: event.ApprovalApproved, Approver: "ann"}, nil
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

// An asker returns when the question is over, with an error or with what looks like an
// answer. Neither counts.
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
		asked := func(ctx context.Context, p event.Question) (event.Resolution, error) {
			if p.ExpiresAt != nil {
				var cancel context.CancelFunc
				ctx, cancel = context.WithDeadline(ctx, *p.ExpiresAt)
				defer cancel()
			}
			<-ctx.Done()
			return event.Resolution{Kind: late.kind, Approver: "ann"}, late.err
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

// What is allowed beside an approval is an event of its own, the same again in a
// replay, and nothing of a fork. Who was offered nothing allows nothing.
//
// rows: HAR-68
func TestWhatIsAllowedBesideAnApprovalIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		build := toolFunc("build", func(context.Context) (string, error) { return "built", nil })
		build.Facts = func(json.RawMessage) event.Facts {
			return event.Facts{Commands: []event.Command{{Words: []string{"go", "build"}}}}
		}
		twice := scripted.Turn{ToolCalls: []scripted.Call{call("build", "{}"), call("plain", "{}")}}
		var asked []string
		r := newRig(t).gate("build", "plain").
			tools(build, toolFunc("plain", func(context.Context) (string, error) { return "done", nil })).
			turns(twice, twice, scripted.Turn{Text: "done"}).
			asker(func(_ context.Context, p event.Question) (event.Resolution, error) {
				asked = append(asked, p.Subject)
				return event.Resolution{Kind: event.ApprovalApproved, Approver: "ann", Remember: true}, nil
			})
		r.env.AskInTurn = true
		run := r.start(t.Context())
		if o := outcome(t, run); !o.OK {
			t.Fatalf("outcome %+v", o)
		}
		if want := []string{"build", "plain", "plain"}; !slices.Equal(asked, want) {
			t.Errorf("asked about %v, want %v", asked, want)
		}
		var added []event.PermissionAdded
		var settled int64
		for _, e := range r.journal(run.ID) {
			switch d := e.Data.(type) {
			case event.ToolResults:
				settled = cmp.Or(settled, e.Seq)
			case event.PermissionAdded:
				added = append(added, d)
			case event.ToolApprovalResolved:
				if d.Remember != strings.HasSuffix(d.CallID, "-1-1") {
					t.Errorf("%s allows more: %t", d.CallID, d.Remember)
				}
			}
		}
		want := []event.PermissionAdded{{CallID: run.ID + "-1-1", Permission: event.Permission{Tool: "build", Command: "go build *"}, By: "ann"}}
		if !slices.Equal(added, want) {
			t.Errorf("recorded is %+v, want %+v", added, want)
		}
		r.replayed(run.ID)
		asked = nil
		fork, _ := r.fork(run.ID, settled, event.RunForked{})
		if outcome(t, r.resume(fork)); !slices.Equal(asked, []string{"build", "plain"}) {
			t.Errorf("the fork asks about %v", asked)
		}
	})
}
