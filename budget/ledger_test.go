package budget_test

import (
	"errors"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/llm"
)

func must(t *testing.T) func(budget.Ledger, error) budget.Ledger {
	return func(l budget.Ledger, err error) budget.Ledger {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
}

func reservation(id string, usd float64) budget.Reservation {
	return budget.Reservation{ID: id, Amount: budget.Amount{USD: usd, Input: 10, Output: 1}}
}

// rows: ALF-77
func TestALedgerIsAValue(t *testing.T) {
	ok := must(t)
	var empty budget.Ledger
	one := ok(empty.Reserve(reservation("a", 1)))
	left := ok(one.Reserve(reservation("b", 2)))
	right := ok(one.Reserve(reservation("c", 4)))
	spent := ok(left.Commit("a", budget.Amount{USD: 0.5}))
	for _, tt := range []struct {
		name        string
		ledger      budget.Ledger
		held, spent float64
	}{
		{"empty", empty, 0, 0}, {"one", one, 1, 0}, {"left", left, 3, 0}, {"right", right, 5, 0}, {"spent", spent, 2, 0.5},
	} {
		if h, s := tt.ledger.Held().USD, tt.ledger.Spent().USD; h != tt.held || s != tt.spent {
			t.Errorf("%s: held %v, spent %v; want %v, %v", tt.name, h, s, tt.held, tt.spent)
		}
	}
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
	l := must(t)(budget.Ledger{}.Reserve(reservation("a", 1)))
	if _, err := l.Reserve(reservation("a", 2)); !errors.Is(err, budget.ErrReserved) {
		t.Errorf("reserved twice: %v", err)
	}
	if _, err := l.Commit("b", budget.Amount{}); !errors.Is(err, budget.ErrNotReserved) {
		t.Errorf("committed what is not reserved: %v", err)
	}
	if held := l.Held(); held.USD != 1 {
		t.Errorf("held: %+v", held)
	}
	l = must(t)(l.Commit("a", budget.Amount{}))
	if l.Admission("a").Given() || l.Held() != (budget.Amount{}) || l.Spent() != (budget.Amount{}) {
		t.Errorf("a call that was not made costs %+v", l.Spent())
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
		{budget.Amount{USD: 1.001}, true},
		{budget.Amount{Input: 11}, true},
		{budget.Amount{Output: 6}, true},
	} {
		if got := tt.used.Exceeds(aside); got != tt.want {
			t.Errorf("%+v exceeds %+v: %t", tt.used, aside, got)
		}
	}
}

// The ids of each pair have the same FNV-1a.
func TestReservationsAreToldApartThatLookAlikeToTheLedger(t *testing.T) {
	for _, pair := range [][2]string{{"8yn0iYCKYHlIj4-BwPqk", "GReLUrM4wMqfg9yzV3KQ"}, {"7mohtcOFVz", "c1E51sSEyx"}} {
		for _, order := range [][2]string{pair, {pair[1], pair[0]}} {
			var l budget.Ledger
			for i, id := range []string{"x", pair[0], "y", pair[1]} {
				l = must(t)(l.Reserve(reservation(id, float64(i+1))))
			}
			if _, err := l.Reserve(reservation(pair[1], 1)); !errors.Is(err, budget.ErrReserved) {
				t.Errorf("%s is reserved twice: %v", pair[1], err)
			}
			l = must(t)(l.Commit(order[0], budget.Amount{}))
			if !l.Admission(order[1]).Given() || l.Admission(order[0]).Given() {
				t.Errorf("%s was committed, and %s is open: %t", order[0], order[1], l.Admission(order[1]).Given())
			}
			l = must(t)(l.Commit(order[1], budget.Amount{}))
			if got := l.Held(); got != (budget.Amount{USD: 1 + 3, Input: 20, Output: 2}) {
				t.Errorf("held %+v after %v", got, order)
			}
		}
	}
}

func TestALedgerHoldsWhatIsReservedAndNotCommitted(t *testing.T) {
	ok, r := must(t), rand.New(rand.NewPCG(1, 2))
	var l budget.Ledger
	open := map[string]budget.Amount{}
	for range 5000 {
		id := strconv.Itoa(r.IntN(500))
		a := budget.Amount{USD: r.Float64(), Input: r.Int64N(100), Output: r.Int64N(100)}
		if _, reserved := open[id]; reserved {
			l = ok(l.Commit(id, budget.Amount{}))
			delete(open, id)
		} else {
			l = ok(l.Reserve(budget.Reservation{ID: id, Amount: a}))
			open[id] = a
		}
	}
	var alone budget.Ledger
	for _, id := range slices.Sorted(maps.Keys(open)) {
		alone = ok(alone.Reserve(budget.Reservation{ID: id, Amount: open[id]}))
	}
	if l.Held() != alone.Held() {
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
		l = ok(l.Commit(id, budget.Amount{}))
	}
	if held := l.Held(); held != (budget.Amount{}) {
		t.Errorf("an account without reservations holds %+v", held)
	}
}

// What a reservation costs grows by a node each time that the number of those
// that are open doubles.
func TestAReservationCostsNoMoreBesideThousands(t *testing.T) {
	ok := must(t)
	each := func(n int) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var l budget.Ledger
		for i := range n {
			l = ok(l.Reserve(reservation("run-"+strconv.Itoa(i)+"/1", 1)))
		}
		for i := range n {
			l = ok(l.Commit("run-"+strconv.Itoa(i)+"/1", budget.Amount{}))
		}
		runtime.ReadMemStats(&after)
		return (after.TotalAlloc - before.TotalAlloc) / uint64(n)
	}
	few, many := each(4000), each(8000)
	t.Logf("%d bytes for each of 4000, %d of 8000", few, many)
	if 4*many > 5*few {
		t.Errorf("each of 8000 reservations allocates %d bytes, of 4000 %d", many, few)
	}
}
