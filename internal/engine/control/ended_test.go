package control_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/machine/versions"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm/scripted"
)

// distracted is the store of a driver that never reads its inbox.
type distracted struct{ journal.Store }

func (distracted) Inbox(context.Context, string) ([]journal.Command, error) { return nil, nil }

// behindSender is the store of a sender: an event happens to a run after a command to
// it was queued and before the sender checks.
type behindSender struct {
	journal.Store
	happens func()
}

func (s behindSender) Send(ctx context.Context, c journal.Command) (int64, error) {
	id, err := s.Store.Send(ctx, c)
	s.happens()
	return id, err
}

// atWork starts a run, and returns when its only call has begun. The call and the run
// end when done is closed.
func atWork(t *testing.T, store journal.Store, done <-chan struct{}) *pawl.Run {
	t.Helper()
	working := make(chan struct{})
	worker := pawl.Agent{
		Model: pawl.Target{Name: "test/m", Client: scripted.New("test",
			scripted.Turn{ToolCalls: []scripted.Call{{Name: "work", Arguments: []byte("{}")}}}, scripted.Turn{Text: "done"})},
	}
	worker.Tools = append(worker.Tools, pawl.Tool("work", "Works.", func(context.Context, struct{}) (string, error) {
		close(working)
		<-done
		return "ok", nil
	}))
	run, err := worker.Start(t.Context(), "Work.", pawl.Options{Journal: store})
	if err != nil {
		t.Fatal(err)
	}
	<-working
	return run
}

func TestWhoeverSpeaksToARunThatEndsWithoutHearingItIsTold(t *testing.T) {
	for _, c := range []journal.Command{
		{Kind: journal.Input, Text: "one more thing", By: "ann"},
		{Kind: journal.Pause, By: "ann"},
		{Kind: journal.Cancel, By: "ann"},
		{Kind: journal.Raise, Setting: "max_cycles", Value: 9, By: "ann"},
	} {
		shared, done := memory.New(nil), make(chan struct{})
		run := atWork(t, distracted{shared}, done)
		row, err := shared.Run(t.Context(), run.ID())
		if err != nil {
			t.Fatal(err)
		}
		store := behindSender{shared, func() {
			close(done)
			if s, err := run.Wait(); err != nil || s.Text() != "done" {
				t.Errorf("%+v, %v", s, err)
			}
		}}
		e := engine.New(store, versions.Make, engine.Options{})
		if got, err := control.New(store, e).Send(t.Context(), row, byAnn(c)); !errors.Is(err, journal.ErrEnded) {
			t.Errorf("%s: %+v, %v; want ErrEnded", c.Kind, got, err)
		}
		if left, err := shared.Inbox(t.Context(), run.ID()); err != nil || len(left) > 0 {
			t.Errorf("%s: there rests %+v, %v", c.Kind, left, err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// soonDistracted is the store of a driver that stops reading its inbox after a time.
type soonDistracted struct {
	journal.Store
	now atomic.Bool
}

func (s *soonDistracted) Inbox(ctx context.Context, run string) ([]journal.Command, error) {
	if s.now.Load() {
		return nil, nil
	}
	return s.Store.Inbox(ctx, run)
}

// endsMeanwhile is the store of a sender: a run ends while the sender waits for the
// driver to take its command.
type endsMeanwhile struct {
	journal.Store
	end func()
}

func (s endsMeanwhile) Watch(ctx context.Context) <-chan struct{} {
	s.end()
	return s.Store.Watch(ctx)
}

// Two senders with the same name, such as clients of one server, are distinguished.
// Both have read the row of the run before either sends.
func TestWhatWasNotHeardIsNotTakenForWhatWas(t *testing.T) {
	for name, ending := range map[string]func(journal.Store, func()) journal.Store{
		"behind it": func(s journal.Store, end func()) journal.Store { return behindSender{s, end} },
		"meanwhile": func(s journal.Store, end func()) journal.Store { return endsMeanwhile{s, end} },
	} {
		for _, c := range []journal.Command{
			{Kind: journal.Input, Text: "one more thing", By: "ann"},
			{Kind: journal.Cancel, By: "ann"},
			{Kind: journal.Raise, Setting: "max_cycles", Value: 9, By: "ann"},
		} {
			t.Run(string(c.Kind)+", the run ends "+name, func(t *testing.T) { sendTwice(t, c, ending) })
		}
	}
}

// sendTwice sends a command twice to a run that takes the first one and ends before it
// reads its inbox again.
func sendTwice(t *testing.T, c journal.Command, ending func(journal.Store, func()) journal.Store) {
	t.Helper()
	shared, done := memory.New(nil), make(chan struct{})
	driver := &soonDistracted{Store: shared}
	run := atWork(t, driver, done)
	row, err := shared.Run(t.Context(), run.ID())
	if err != nil {
		t.Fatal(err)
	}
	first := engine.New(shared, versions.Make, engine.Options{})
	defer first.Close()
	if got, err := control.New(shared, first).Send(t.Context(), row, byAnn(c)); err != nil || !got.Taken {
		t.Fatalf("first: %+v, %v", got, err)
	}
	driver.now.Store(true)
	store := ending(shared, func() {
		close(done)
		if _, err := run.Wait(); err != nil {
			t.Error(err)
		}
	})
	second := engine.New(store, versions.Make, engine.Options{})
	defer second.Close()
	got, err := control.New(store, second).Send(t.Context(), row, byAnn(c))
	switch {
	case c.Kind == journal.Cancel && (err != nil || got.State != journal.Ended):
		t.Errorf("second: %+v, %v; the run is cancelled as it asks", got, err)
	case c.Kind != journal.Cancel && !errors.Is(err, journal.ErrEnded):
		t.Errorf("second: %+v, %v; want ErrEnded", got, err)
	}
}
