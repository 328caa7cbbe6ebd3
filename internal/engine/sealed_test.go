package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/holder"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm/scripted"
)

const doorWord = "open-sesame-4711"

// inboxes keeps what ever rested in an inbox.
type inboxes struct {
	journal.Store
	mu   sync.Mutex
	rows []journal.Command
}

func (s *inboxes) Send(ctx context.Context, c journal.Command) (int64, error) {
	s.mu.Lock()
	s.rows = append(s.rows, c)
	s.mu.Unlock()
	return s.Store.Send(ctx, c)
}

func (s *inboxes) rested(t *testing.T) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, err := json.Marshal(s.rows)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// confidential is a run that waits for a decision about its one call and has a
// secret, which its own driver alone knows.
func confidential(t *testing.T) (*rig, *engine.Run, *inboxes) {
	store := &inboxes{Store: memory.New(nil)}
	r := newRig(t, store).gate("work").
		tools(toolFunc("work", func(context.Context) (string, error) { return "worked", nil })).
		turns(scripted.Turn{ToolCalls: calls("work", "{}")}, scripted.Turn{Text: "done"})
	r.cfg.Approve = agent.ApproveWait
	r.env.Secrets = secret.NewRedactor(secret.Secret{Name: "door", Value: doorWord})
	run := r.start(t.Context())
	synctest.Wait()
	return r, run, store
}

func ownerOf(t *testing.T, r *rig, run string) string {
	t.Helper()
	row, err := r.store.Run(t.Context(), run)
	if err != nil || row.Owner == "" {
		t.Fatalf("the run is driven by %q, %v", row.Owner, err)
	}
	return row.Owner
}

func TestWhatIsSealedToADriverIsReadByItAndRestsNowhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, run, store := confidential(t)
		other := r.other()
		for _, c := range []journal.Command{
			{Run: run.ID, Kind: journal.Input, By: "ann", Text: "the word is " + doorWord},
			{Run: run.ID, Kind: journal.Approve, CallID: run.ID + "-1-1", By: "ann", Text: "with " + doorWord},
		} {
			if got, err := other.Deliver(t.Context(), c, engine.Knowledge{}); err != nil || !got.Sealed {
				t.Fatal(got.Sealed, err)
			}
			synctest.Wait()
		}
		if o := outcome(t, run); !o.OK {
			t.Errorf("outcome %+v", o)
		}
		events := r.whole(run.ID)
		if in := of[event.InputReceived](events); len(in) != 1 || in[0].Text != "the word is ${secret:door}" || in[0].By != "ann" {
			t.Errorf("the run heard %+v", in)
		}
		if d := decisions(events); len(d) != 1 || d[0].Kind != event.ApprovalApproved || d[0].Reason != "with ${secret:door}" {
			t.Errorf("decisions %+v", d)
		}
		if rested := store.rested(t); strings.Contains(rested, "sesame") || strings.Contains(rested, "the word") || strings.Count(rested, `"sealed"`) != 2 {
			t.Errorf("the inbox held %s", rested)
		}
	})
}

// A sender with the values of all secrets that the journal names seals nothing.
func TestWhoKnowsARunsSecretsTellsItPlainly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, run, store := confidential(t)
		knows := engine.Knowledge{Secrets: r.env.Secrets}
		c := journal.Command{Run: run.ID, Kind: journal.Cancel, By: "ann", Text: "away with " + doorWord}
		if got, err := r.other().Deliver(t.Context(), c, knows); err != nil || got.Sealed {
			t.Fatal(got.Sealed, err)
		}
		outcome(t, run)
		if rested := store.rested(t); strings.Contains(rested, "sesame") || !strings.Contains(rested, "away with ${secret:door}") {
			t.Errorf("the inbox held %s", rested)
		}
	})
}

// A run that this process drives is known here with its secrets.
func TestMessageToLocalRunIsStoredRedacted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, run, store := confidential(t)
		r.send(journal.Command{Run: run.ID, Kind: journal.Reject, CallID: run.ID + "-1-1", By: "ann", Text: "not with " + doorWord})
		outcome(t, run)
		if rested := store.rested(t); strings.Contains(rested, "sesame") || !strings.Contains(rested, "not with ${secret:door}") {
			t.Errorf("the inbox held %s", rested)
		}
	})
}

// The heir of a driver that died can read nothing that was for its eyes alone:
// it takes up no decision without its arguments and no message without its
// words, and says how many there were. A cancel counts all the same.
func TestWhatWasSealedToADriverThatDiedIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, run, store := confidential(t)
		owner := ownerOf(t, r, run.ID)
		if err := r.Close(); err != nil { // it parks, and is gone
			t.Fatal(err)
		}
		heir := r.other()
		heir.cfg, heir.env = r.cfg, r.env
		for _, c := range []journal.Command{
			{Kind: journal.Input, Text: "the word is " + doorWord},
			{Kind: journal.Approve, CallID: run.ID + "-1-1", Args: json.RawMessage(`{"word":"` + doorWord + `"}`)},
			{Kind: journal.Approve, CallID: run.ID + "-1-1", Text: "with " + doorWord},
		} {
			c.Run = run.ID
			if err := heir.SendSealed(t.Context(), owner, c); !errors.Is(err, holder.ErrUnread) {
				t.Errorf("%s: %v", c.Kind, err)
			}
		}
		if d := decisions(r.journal(run.ID)); len(d) != 0 {
			t.Errorf("somebody decided: %+v", d)
		}

		// What came before it died waits for the heir.
		sealed := store.rows[len(store.rows)-1]
		if _, err := store.Store.Send(t.Context(), sealed); err != nil {
			t.Fatal(err)
		}
		next, err := heir.Resume(t.Context(), run.ID, func(event.RunStarted) (perform.Env, error) { return heir.env, nil })
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if d := decisions(r.journal(run.ID)); len(d) != 0 {
			t.Errorf("somebody decided: %+v", d)
		}
		resumed := of[event.RunResumed](r.journal(run.ID))
		if len(resumed) != 1 || resumed[0].Unread != 1 {
			t.Errorf("resumed %+v", resumed)
		}
		if err := heir.SendSealed(t.Context(), owner, journal.Command{Run: run.ID, Kind: journal.Cancel, Text: "because of " + doorWord}); err != nil {
			t.Fatal(err)
		}
		if o := outcome(t, next); o.Status != event.StatusCancelled {
			t.Errorf("outcome %+v", o)
		}
		if rested := store.rested(t); strings.Contains(rested, "sesame") {
			t.Errorf("the inbox held %s", rested)
		}
	})
}

// What was sealed with one command opens with no other one.
func TestASealedDecisionIsForItsCallAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, run, store := confidential(t)
		if err := r.other().SendSealed(t.Context(), ownerOf(t, r, run.ID), journal.Command{Run: run.ID, Kind: journal.Input, By: "ann", Text: "yes, go on"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		forged := store.rows[len(store.rows)-1]
		forged.Kind, forged.CallID = journal.Approve, run.ID+"-1-1"
		if _, err := store.Send(t.Context(), forged); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if d := decisions(r.journal(run.ID)); len(d) != 0 {
			t.Errorf("somebody decided: %+v", d)
		}
		r.send(journal.Command{Run: run.ID, Kind: journal.Cancel})
		outcome(t, run)
	})
}

func TestAnOwnerWithoutAKeyIsSentNothingSealed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, run, store := confidential(t)
		for _, owner := range []string{"", "somebody", holder.Process(), "host/1/2/" + strings.Repeat("A", 42), "host/1/2/" + strings.Repeat("A", 43)} {
			err := r.other().SendSealed(t.Context(), owner, journal.Command{Run: run.ID, Kind: journal.Input, Text: doorWord})
			if err == nil || strings.Contains(err.Error(), doorWord) {
				t.Errorf("owner %q: %v", owner, err)
			}
		}
		if len(store.rows) != 0 {
			t.Errorf("the inbox held %s", store.rested(t))
		}
		r.send(journal.Command{Run: run.ID, Kind: journal.Cancel})
		outcome(t, run)
	})
}

// of are the events of one type.
func of[T event.Data](events []event.Event) []T {
	var found []T
	for _, e := range events {
		if d, ok := e.Data.(T); ok {
			found = append(found, d)
		}
	}
	return found
}
