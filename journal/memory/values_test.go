package memory_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/journaltest"
	"github.com/pawlrun/pawl/journal/memory"
)

// The bytes that are made when a run is read are those that another store was given, in a
// fork of it as well, whatever is read first.
func TestValuesBecomeTheSameBytes(t *testing.T) {
	said := func(text string) event.Data { return event.InputReceived{Text: text} }
	fill := func(s journal.Store) {
		a := journaltest.Start(t, s, "a")
		a.Append(t, said("one"), said("two"))
		a.Append(t, said("three"))
		journaltest.Fork(t, s, "b", "a", 2).Append(t, said("other"))
		a.Append(t, said("four"))
	}
	bytes, values := memory.New(nil), memory.NewValues(nil)
	fill(bytes)
	fill(valued{values})
	for _, run := range []string{"b", "a"} {
		want, err := bytes.Records(t.Context(), run, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		got, err := values.Records(t.Context(), run, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("run %s (-bytes +values):\n%s", run, diff)
		}
		row, err := values.Run(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := journal.Verify(t.Context(), values, run, row.Head); err != nil || v.Events != row.Seq {
			t.Errorf("run %s: %+v, %v", run, v, err)
		}
	}
}

// valued hands a store the values of the events that it is given as bytes.
type valued struct{ *memory.Store }

func (v valued) Create(ctx context.Context, row journal.Run, b journal.Batch) (journal.Lease, int64, error) {
	b, err := asValues(b)
	if err != nil {
		return journal.Lease{}, 0, err
	}
	return v.Store.Create(ctx, row, b)
}

func (v valued) Append(ctx context.Context, b journal.Batch) (int64, error) {
	b, err := asValues(b)
	if err != nil {
		return 0, err
	}
	return v.Store.Append(ctx, b)
}

func asValues(b journal.Batch) (journal.Batch, error) {
	b.Head, b.Records = "", slices.Clone(b.Records)
	for i := range b.Records {
		e, err := event.Decode(b.Records[i].Body)
		if err != nil {
			return b, err
		}
		e.Prev = ""
		b.Records[i].Body, b.Records[i].Event = nil, e
	}
	return b, nil
}
