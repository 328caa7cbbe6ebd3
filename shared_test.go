package pawl_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
)

// counted counts who begins to follow the end of a journal.
type counted struct {
	*memory.Store
	followers atomic.Int32
}

func (c *counted) Last(ctx context.Context) (int64, error) {
	c.followers.Add(1)
	return c.Store.Last(ctx)
}

// However many runs there are on a journal, its end is read once for all of them.
func TestAllRunsOfAJournalFollowItTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &counted{Store: memory.New(nil)}
		const runs = 20
		ended := make(chan error, runs)
		for range runs {
			a := pawl.Agent{Model: pawl.Target{
				Name: "scripted/slow", Price: &llm.Price{},
				Client: scripted.New("slow", scripted.Turn{Text: "done", Delay: time.Second}),
			}}
			run, err := a.Start(t.Context(), "go", pawl.Options{Journal: store})
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				var last event.Data
				for e, err := range run.Stream() {
					if err != nil {
						ended <- err
						return
					}
					last = e.Data
				}
				if _, ok := last.(event.RunCompleted); !ok {
					t.Errorf("the last event is %T", last)
				}
				ended <- nil
			}()
		}
		for range runs {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		if n := store.followers.Load(); n != 1 {
			t.Errorf("%d readers followed the journal", n)
		}
	})
}
