package budget_test

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/llm"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func reservation(id string, usd float64) budget.Reservation {
	return budget.Reservation{ID: id, Amount: budget.Amount{USD: usd, Input: 10, Output: 1}}
}

// rows: ALF-77
func TestATrackerIsAValue(t *testing.T) {
	var none budget.Tracker
	first := none.Add(llm.Usage{Input: 3, Output: 1}, llm.Cost{USD: 1, Priced: true})
	_ = first.Add(llm.Usage{Input: 5}, llm.Cost{USD: 2})
	second := first.Add(llm.Usage{Input: 5, Estimated: true}, llm.Cost{USD: 2, Priced: true})
	if none.Calls() != 0 || first.Usage().Input != 3 || first.Cost() != (llm.Cost{USD: 1, Priced: true}) {
		t.Errorf("adding changed what it was added to: %+v %+v", none, first)
	}
	want := llm.Usage{Input: 8, Output: 1, Estimated: true}
	if diff := cmp.Diff(want, second.Usage()); diff != "" || second.Cost() != (llm.Cost{USD: 3, Priced: true}) || second.Calls() != 2 {
		t.Errorf("%s%+v", diff, second)
	}
}

func TestASumIsPricedWhileEveryPartOfItIs(t *testing.T) {
	priced, free := llm.Cost{USD: 1, Priced: true}, llm.Cost{}
	for _, tt := range []struct {
		costs []llm.Cost
		want  bool
	}{
		{nil, false}, {[]llm.Cost{priced}, true}, {[]llm.Cost{priced, priced}, true},
		{[]llm.Cost{priced, free}, false}, {[]llm.Cost{free, priced}, false},
	} {
		var sum budget.Tracker
		for _, c := range tt.costs {
			sum = sum.Add(llm.Usage{}, c)
		}
		if got := sum.Cost().Priced; got != tt.want {
			t.Errorf("%+v: priced %t", tt.costs, got)
		}
	}
}

func TestAReservationIsMadeAndCommittedOnce(t *testing.T) {
	var l budget.Ledger
	must(t, l.Reserve(reservation("a", 1)))
	if err := l.Reserve(reservation("a", 2)); !errors.Is(err, budget.ErrReserved) {
		t.Errorf("reserved twice: %v", err)
	}
	if err := l.Commit("b"); !errors.Is(err, budget.ErrNotReserved) {
		t.Errorf("committed what is not reserved: %v", err)
	}
	if held := l.Held(); held.USD != 1 {
		t.Errorf("held: %+v", held)
	}
	must(t, l.Commit("a"))
	if l.Admission("a").Given() || l.Held() != (budget.Amount{}) {
		t.Errorf("a call that is over holds %+v", l.Held())
	}
}

// A ledger of thousands of reservations holds what it was given, whatever came
// and went, and adds it up as one that was given nothing else.
func TestMoreOfAnythingIsMore(t *testing.T) {
	aside := budget.Amount{USD: 1, Input: 10, Output: 5}
	for _, tt := range []struct {
		used budget.Amount
		want bool
	}{
		{aside, false},
		{budget.Amount{USD: 1 + 1e-12, Input: 10, Output: 5}, false},
		{budget.Amount{USD: 1 + 1e-9}, false}, // what sums of money may be off by
		{budget.Amount{USD: 1.001}, true},
		{budget.Amount{Input: 11}, true},
		{budget.Amount{Output: 6}, true},
	} {
		if got := tt.used.Exceeds(aside); got != tt.want {
			t.Errorf("%+v exceeds %+v: %t", tt.used, aside, got)
		}
	}
}

func TestALedgerHoldsWhatIsReservedAndNotCommitted(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var l budget.Ledger
	open := map[string]budget.Amount{}
	for range 5000 {
		id := strconv.Itoa(r.IntN(500))
		a := budget.Amount{USD: r.Float64(), Input: r.Int64N(100), Output: r.Int64N(100)}
		if _, reserved := open[id]; reserved {
			must(t, l.Commit(id))
			delete(open, id)
		} else {
			must(t, l.Reserve(budget.Reservation{ID: id, Amount: a}))
			open[id] = a
		}
	}
	var alone budget.Ledger
	for _, id := range slices.Sorted(maps.Keys(open)) {
		must(t, alone.Reserve(budget.Reservation{ID: id, Amount: open[id]}))
	}
	if l.Held().Exceeds(alone.Held()) || alone.Held().Exceeds(l.Held()) {
		t.Errorf("held are %+v, and %+v where nothing else came and went", l.Held(), alone.Held())
	}
	for i := range 500 {
		id := strconv.Itoa(i)
		want, is := open[id]
		if got, reserved := l.Reserved(id); got != want || reserved != is || l.Admission(id).Given() != is {
			t.Errorf("%s: %+v (%t), want %+v (%t)", id, got, reserved, want, is)
		}
	}
	for id := range open {
		must(t, l.Commit(id))
	}
	if held := l.Held(); held != (budget.Amount{}) {
		t.Errorf("an account without reservations holds %+v", held)
	}
}
