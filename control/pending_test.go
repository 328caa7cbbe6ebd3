package control_test

import (
	"context"
	"testing"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/control"
	"github.com/pawlrun/pawl/engine"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/launch"
	"github.com/pawlrun/pawl/llm/scripted"
)

// read counts the records that were read.
type read struct {
	journal.Store
	records int
}

func (s *read) Records(ctx context.Context, run string, after int64, limit int) ([]journal.Record, error) {
	found, err := s.Store.Records(ctx, run, after, limit)
	s.records += len(found)
	return found, err
}

// A list asks it of every run that it shows, however long these are.
func TestWhetherARunIsAnsweredIsKnownWithoutReadingIt(t *testing.T) {
	store := &read{Store: memory.New(nil)}
	a := pawl.Agent{
		Model: pawl.Target{Name: "test/m", Client: scripted.New("test",
			scripted.Turn{ToolCalls: []scripted.Call{{Name: "pay", Arguments: []byte("{}")}}}, scripted.Turn{Text: "done"})},
		Approvals: []string{"pay"},
	}
	a.Tools = append(a.Tools, pawl.Tool("pay", "Pays.", func(context.Context, struct{}) (string, error) { return "paid", nil }))
	run, err := a.Start(t.Context(), "Pay.", pawl.Options{Journal: store})
	if err != nil {
		t.Fatal(err)
	}
	s, err := run.Wait()
	if err != nil || s.Status != pawl.StatusParked {
		t.Fatalf("%+v, %v", s, err)
	}
	desk := control.New(store, engine.New(store, launch.Machine, engine.Options{}))
	answered := func() bool {
		t.Helper()
		row, err := store.Run(t.Context(), run.ID())
		if err != nil {
			t.Fatal(err)
		}
		answered, err := desk.Answered(t.Context(), row)
		if err != nil {
			t.Fatal(err)
		}
		return answered
	}
	store.records = 0
	if answered() || store.records != 1 {
		t.Errorf("it is answered, or %d records were read to see that it is not", store.records)
	}
	row, err := store.Run(t.Context(), run.ID())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := desk.Send(t.Context(), row, journal.Command{Kind: journal.Approve, CallID: s.Pending[0].CallID, By: "ann"}); err != nil {
		t.Fatal(err)
	}
	if !answered() {
		t.Error("it still waits")
	}
}
