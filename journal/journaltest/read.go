package journaltest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/journal"
)

func readContract() []contract {
	return []contract{
		{"a run is found by a prefix that only it has", findByPrefix},
		{"lists filter and page, newest first", listRuns},
		{"records and the tail page", pages},
		{"a tree is read in the order of its commits", readTree},
		{"a run's row holds what was said of it", rowIsKept},
	}
}

func findByPrefix(t *testing.T, s journal.Store, _ *clock) {
	for _, id := range []string{"abc", "abcd", "ax", "a_z", "a%z", "B1"} {
		Start(t, s, id)
	}
	for _, c := range []struct {
		prefix, id string
		err        error
	}{
		{prefix: "abc", id: "abc"},
		{prefix: "abcd", id: "abcd"},
		{prefix: "ax", id: "ax"},
		{prefix: "a_", id: "a_z"},
		{prefix: "a%", id: "a%z"},
		{prefix: "B", id: "B1"},
		{prefix: "b", err: journal.ErrNotFound},
		{prefix: "ab", err: journal.ErrAmbiguous},
		{prefix: "a", err: journal.ErrAmbiguous},
		{prefix: "zz", err: journal.ErrNotFound},
		{prefix: "", err: journal.ErrNotFound},
	} {
		got, err := s.Find(t.Context(), c.prefix)
		if got.ID != c.id || !errors.Is(err, c.err) {
			t.Errorf("find %q: %q, %v; want %q, %v", c.prefix, got.ID, err, c.id, c.err)
		}
	}
}

func listRuns(t *testing.T, s journal.Store, _ *clock) {
	for i, r := range []struct {
		id, parent, kind string
		state            journal.State
	}{
		{"a", "", "Loop", journal.Running}, {"b", "a", "Agent", journal.Parked}, {"c", "", "Agent", journal.Ended},
		{"d", "a", "Loop", journal.Ended}, {"e", "", "Loop", journal.Running},
	} {
		d := &Driver{Store: s}
		b := d.batch(t, r.id, said("first"))
		b.Lease = journal.Lease{Run: r.id, Owner: "owner"}
		b.Status.State, b.Status.Detail, b.Time = r.state, "of "+r.id, Epoch().Add(time.Duration(i)*time.Hour)
		if _, _, err := s.Create(t.Context(), journal.Run{ID: r.id, Parent: r.parent, Kind: r.kind, Name: "n" + r.parent, Created: Epoch()}, b); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name   string
		filter journal.Filter
		want   []string
	}{
		{"all", journal.Filter{}, []string{"e", "d", "c", "b", "a"}},
		{"limit", journal.Filter{Limit: 2}, []string{"e", "d"}},
		{"next page", journal.Filter{Limit: 2, Before: "d"}, []string{"c", "b"}},
		{"last page", journal.Filter{Limit: 2, Before: "b"}, []string{"a"}},
		{"after the last", journal.Filter{Before: "a"}, nil},
		{"one state", journal.Filter{States: []journal.State{journal.Ended}}, []string{"d", "c"}},
		{"two states", journal.Filter{States: []journal.State{journal.Ended, journal.Parked}}, []string{"d", "c", "b"}},
		{"children", journal.Filter{Parent: "a"}, []string{"d", "b"}},
		{"a tree", journal.Filter{Root: "a"}, []string{"d", "b", "a"}},
		{"a part of a tree", journal.Filter{Root: "a", States: []journal.State{journal.Ended}}, []string{"d"}},
		{"roots", journal.Filter{Roots: true}, []string{"e", "c", "a"}},
		{"a kind", journal.Filter{Kind: "Loop"}, []string{"e", "d", "a"}},
		{"a name", journal.Filter{Name: "na"}, []string{"d", "b"}},
		{"a detail", journal.Filter{Detail: "of c"}, []string{"c"}},
		{"a kind and a name", journal.Filter{Kind: "Loop", Name: "n", Limit: 1}, []string{"e"}},
		{"children that ended", journal.Filter{Parent: "a", States: []journal.State{journal.Ended}}, []string{"d"}},
		{"quiet since", journal.Filter{UpdatedBefore: Epoch().Add(2 * time.Hour)}, []string{"b", "a"}},
		{"filter and page", journal.Filter{States: []journal.State{journal.Running}, Before: "e", Limit: 5}, []string{"a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			rows, err := s.Runs(t.Context(), c.filter)
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, r := range rows {
				ids = append(ids, r.ID)
			}
			if !slices.Equal(ids, c.want) {
				t.Errorf("got %v, want %v", ids, c.want)
			}
		})
	}
}

func pages(t *testing.T, s journal.Store, _ *clock) {
	a, b := Start(t, s, "a"), Start(t, s, "b")
	for i := range 10 {
		a.Append(t, said(fmt.Sprint("a", i)))
		b.Append(t, said(fmt.Sprint("b", i)))
	}
	whole := all(t, s, "a", 0)
	for _, page := range []int{1, 3, 11, 100} {
		if diff := cmp.Diff(whole, all(t, s, "a", page)); diff != "" {
			t.Errorf("pages of %d:\n%s", page, diff)
		}
	}
	if got, err := s.Records(t.Context(), "a", 11, 0); err != nil || len(got) != 0 {
		t.Errorf("after the last: %d records, %v", len(got), err)
	}
	if _, err := s.Records(t.Context(), "none", 0, 0); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("records of a run that is not there: %v, want ErrNotFound", err)
	}
	log, err := s.Tail(t.Context(), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	part, err := s.Tail(t.Context(), log[4].Pos, 5)
	if diff := cmp.Diff(log[5:10], part); err != nil || diff != "" {
		t.Errorf("a part of the tail: %v\n%s", err, diff)
	}
	if last, err := s.Last(t.Context()); err != nil || last != log[len(log)-1].Pos {
		t.Errorf("the last pos is %d, %v; want %d", last, err, log[len(log)-1].Pos)
	}
}

func rowIsKept(t *testing.T, s journal.Store, _ *clock) {
	d := &Driver{Store: s}
	b := d.batch(t, "a", said("first"))
	b.Lease = journal.Lease{Run: "a", Owner: "owner", Expiry: Epoch().Add(time.Minute)}
	b.Status = journal.Progress{State: journal.Running, Detail: "starting", Cycles: 1}
	created := Epoch().Add(-time.Second)
	lease, pos, err := s.Create(t.Context(), journal.Run{ID: "a", Parent: "p", Root: "r", Depth: 3, Kind: "Goal", Name: "name", Created: created}, b)
	if err != nil || pos == 0 || lease.Run != "a" || lease.Owner != "owner" || lease.Epoch == 0 {
		t.Fatalf("create: %+v, pos %d, %v", lease, pos, err)
	}
	want := journal.Run{
		ID: "a", Parent: "p", Root: "r", Depth: 3, Kind: "Goal", Name: "name", Created: created, Updated: Epoch(),
		Progress: b.Status, Seq: 1, Head: b.Head, Owner: "owner", Expiry: Epoch().Add(time.Minute),
	}
	if diff := cmp.Diff(want, look(t, s, "a").Row); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
	if _, err := s.Run(t.Context(), "none"); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("a run that is not there: %v, want ErrNotFound", err)
	}
}

func readTree(t *testing.T, s journal.Store, _ *clock) {
	drivers := []*Driver{Start(t, s, "before"), Start(t, s, "a"), Start(t, s, "other")}
	b := journal.Run{ID: "b", Root: "a", Depth: 2}
	drivers = append(drivers, StartBelow(t, s, "b", journal.Run{ID: "a"}), StartBelow(t, s, "c", b))
	for range 3 {
		for _, d := range drivers {
			d.Append(t, said("more"))
		}
	}
	if last, err := s.Last(t.Context()); err != nil || last == 0 {
		t.Errorf("the last pos is %d, %v", last, err)
	}
	all, err := s.Tail(t.Context(), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	roots := map[string]string{"before": "before", "a": "a", "other": "other", "b": "a", "c": "a"}
	for _, r := range all {
		if r.Root != roots[r.Run] {
			t.Errorf("an event of run %s is of the tree of %q", r.Run, r.Root)
		}
	}
	want := slices.DeleteFunc(slices.Clone(all), func(r journal.Record) bool { return r.Run == "before" || r.Run == "other" })
	got, err := s.Tree(t.Context(), "a", 0, 0)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("the tree: %v\n%s", err, diff)
	}
	part, err := s.Tree(t.Context(), "a", got[2].Pos, 4)
	if diff := cmp.Diff(got[3:7], part); err != nil || diff != "" {
		t.Errorf("a part of the tree: %v\n%s", err, diff)
	}
	if _, err := s.Tree(t.Context(), "none", 0, 0); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("a tree that is not there: %v", err)
	}
}
