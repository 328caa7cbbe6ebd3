package control_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/control"
	"github.com/pawlrun/pawl/engine"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/launch"
	"github.com/pawlrun/pawl/llm/scripted"
)

// distracted is the store of a driver that looks into no inbox.
type distracted struct{ journal.Store }

func (distracted) Inbox(context.Context, string) ([]journal.Command, error) { return nil, nil }

// endsBehind is the store of a sender: a run ends while a command to it rests.
type endsBehind struct {
	journal.Store
	end func()
}

func (s endsBehind) Send(ctx context.Context, c journal.Command) (int64, error) {
	id, err := s.Store.Send(ctx, c)
	s.end()
	return id, err
}

func TestWhoeverSpeaksToARunThatEndsWithoutHearingItIsTold(t *testing.T) {
	for _, c := range []journal.Command{
		{Kind: journal.Input, Text: "one more thing", By: "ann"},
		{Kind: journal.Pause, By: "ann"},
		{Kind: journal.Cancel, By: "ann"},
		{Kind: journal.Raise, Setting: "usd_per_run", Value: 9, By: "ann"},
	} {
		shared, working, done := memory.New(nil), make(chan struct{}), make(chan struct{})
		worker := pawl.Agent{
			Model: pawl.Target{Name: "test/m", Client: scripted.New("test",
				scripted.Turn{ToolCalls: []scripted.Call{{Name: "work", Arguments: []byte("{}")}}}, scripted.Turn{Text: "done"})},
		}
		worker.Tools = append(worker.Tools, pawl.Tool("work", "Works.", func(context.Context, struct{}) (string, error) {
			close(working)
			<-done
			return "ok", nil
		}))
		run, err := worker.Start(t.Context(), "Work.", pawl.Options{Journal: distracted{shared}})
		if err != nil {
			t.Fatal(err)
		}
		<-working
		row, err := shared.Run(t.Context(), run.ID())
		if err != nil {
			t.Fatal(err)
		}
		store := endsBehind{shared, func() {
			close(done)
			if s, err := run.Wait(); err != nil || s.Text() != "done" {
				t.Errorf("%+v, %v", s, err)
			}
		}}
		e := engine.New(store, launch.Machine, engine.Options{})
		if got, err := control.New(store, e).Send(t.Context(), row, c); !errors.Is(err, journal.ErrEnded) {
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
