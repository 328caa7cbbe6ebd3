package budget_test

import (
	"errors"
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
