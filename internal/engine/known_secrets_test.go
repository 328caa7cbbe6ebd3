package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

// tellings are messages about a call that contain a secret.
func tellings(call string) map[string]journal.Command {
	args, _ := json.Marshal(map[string]string{"word": password})
	return map[string]journal.Command{
		"an approval with a reason": {Kind: journal.Approve, CallID: call, By: "ann", Text: "use " + password},
		"a rejection":               {Kind: journal.Reject, CallID: call, By: "ann", Text: "not with " + password},
		"other arguments":           {Kind: journal.Approve, CallID: call, By: "ann", Args: args},
	}
}

// keeper is a run whose child has a secret, and a call that a person decides.
// The run itself is at work with another call until release is closed.
func keeper(t *testing.T) (r *rig, release chan struct{}) {
	child := newRig(t).tools(printing("ask", tool.Result{Output: "asked"}, nil)).gate("ask")
	child.env.Secrets = secret.NewRedactor(secret.Secret{Name: "DB", Value: password})
	child.turns(scripted.Turn{ToolCalls: calls("ask", "{}")}, scripted.Turn{Text: "done"})
	release = make(chan struct{})
	r = newRig(t)
	r.cfg.Dispatch = agent.ParallelAll
	r.offers("helper", child, tool.New("hold", "Waits.", func(ctx context.Context, _ struct{}) (string, error) {
		select {
		case <-release:
		case <-ctx.Done():
		}
		return "held", ctx.Err()
	}))
	r.env.Tools = concurrent(t, r.env.Tools)
	offered := r.env.Children["helper"]
	offered.Secrets = child.env.Secrets
	r.env.Children["helper"] = offered
	both := append(calls("helper", `{"task":"ask"}`), calls("hold", "{}")...)
	return r.turns(scripted.Turn{ToolCalls: both}, scripted.Turn{Text: "done"}), release
}

// journals are those of a run and its only child, as they are stored.
func (r *rig) journals(run string) string {
	r.t.Helper()
	return r.journalText(run) + r.journalText(r.children(run)[0])
}

func TestAChildsSecretsStayOutOfADecisionAboutItsCall(t *testing.T) {
	senders := map[string]func(r *rig, run *engine.Run, c journal.Command) error{
		"through its parent's run": func(r *rig, run *engine.Run, c journal.Command) error { return run.Send(r.t.Context(), c) },
		"to its parent": func(r *rig, run *engine.Run, c journal.Command) error {
			c.Run = run.ID
			return r.Send(r.t.Context(), c)
		},
		"to itself": func(r *rig, run *engine.Run, c journal.Command) error {
			c.Run = r.children(run.ID)[0]
			return r.Send(r.t.Context(), c)
		},
	}
	for what := range tellings("") {
		for how, send := range senders {
			for _, live := range []bool{true, false} {
				if !live && how != "through its parent's run" {
					continue // then the sender knows no secrets
				}
				t.Run(fmt.Sprintf("%s %s, live %t", what, how, live), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						r, release := keeper(t)
						run := r.start(t.Context())
						synctest.Wait()
						if !live {
							close(release)
							parkedAs(t, run, event.ParkApproval)
						}
						child := r.children(run.ID)[0]
						if row, err := r.store.Run(t.Context(), child); err != nil || row.State != journal.Parked {
							t.Fatalf("the child is %+v, %v", row, err)
						}
						if err := send(r, run, tellings(child + "-1-1")[what]); err != nil {
							t.Fatal(err)
						}
						if live {
							close(release)
						}
						wait(t, run)
						if text := r.journals(run.ID); strings.Contains(text, "hunter2") || !strings.Contains(text, "${secret:DB}") {
							t.Errorf("the journals:\n%s", text)
						}
					})
				})
			}
		}
	}
}

func TestAParentsDriverTakesItsChildrensSecretsOutOfWhatComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := keeper(t)
		run := r.start(t.Context())
		synctest.Wait()
		r.other().send(journal.Command{Run: run.ID, Kind: journal.Cancel, By: "ann", Text: "away with " + password})
		wait(t, run)
		if text := r.journals(run.ID); strings.Contains(text, "hunter2") || !strings.Contains(text, "away with ${secret:DB}") {
			t.Errorf("the journals:\n%s", text)
		}
	})
}

func TestChildGetsNoMessageThatMayContainUnknownSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, release := keeper(t)
		run := r.start(t.Context())
		close(release)
		parkedAs(t, run, event.ParkApproval)
		child, stranger := r.children(run.ID)[0], r.other()
		before := r.journals(run.ID)
		commands := tellings(child + "-1-1")
		commands["a message"] = journal.Command{Kind: journal.Input, Text: password}
		for what, c := range commands {
			for _, c.Run = range []string{run.ID, child} {
				refused, ok := errors.AsType[*engine.SecretsError](stranger.Send(t.Context(), c))
				if !ok || !slices.Equal(refused.Missing, []string{"DB"}) {
					t.Errorf("%s to %s: %+v", what, c.Run, refused)
				}
			}
		}
		if r.journals(run.ID) != before {
			t.Error("the child was told something")
		}
		short := journal.Command{Run: run.ID, Kind: journal.Reject, CallID: child + "-1-1", By: "ann", Text: "no"}
		if err := stranger.Send(t.Context(), short); err != nil {
			t.Errorf("a call cannot be declined: %v", err)
		}
		farewell := journal.Command{Run: run.ID, Kind: journal.Cancel, By: "ann", Text: password}
		if got, err := stranger.Deliver(t.Context(), farewell, engine.Knowledge{}); err != nil || got.Unsaid == nil {
			t.Errorf("the run is not cancelled without its reason: %+v, %v", got, err)
		}
		if text := r.journals(run.ID); strings.Contains(text, password) {
			t.Errorf("the journals hold the reason:\n%s", text)
		}
	})
}

func TestAStrangerCancelsAParentWithoutSayingWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, release := keeper(t)
		run := r.start(t.Context())
		close(release)
		parkedAs(t, run, event.ParkApproval)
		r.other().send(journal.Command{Run: run.ID, Kind: journal.Cancel, By: "ann"})
		if text := r.journals(run.ID); strings.Count(text, "cancel.requested") != 2 {
			t.Errorf("the journals:\n%s", text)
		}
	})
}

// The sender found the child driven, and its driver has left since.
func TestWhatMayHoldASecretWaitsForADriverThatKnowsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, release := keeper(t)
		run := r.start(t.Context())
		close(release)
		parkedAs(t, run, event.ParkApproval)
		child := r.children(run.ID)[0]
		c := tellings(child + "-1-1")["an approval with a reason"]
		c.Run, c.At = child, time.Now()
		if _, err := r.store.Send(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		r.other().send(journal.Command{Run: child, Kind: journal.Pause, By: "bob"})
		if left, err := r.store.Inbox(t.Context(), child); err != nil || len(left) != 1 || left[0].Kind != journal.Approve {
			t.Fatalf("the inbox holds %+v, %v", left, err)
		}
		wait(t, r.resume(run.ID))
		if text := r.journals(run.ID); strings.Contains(text, "hunter2") || !strings.Contains(text, "use ${secret:DB}") {
			t.Errorf("the journals:\n%s", text)
		}
	})
}
