package budget_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/llm"
)

func TestEveryShareOfALineHasToHaveRoomForACall(t *testing.T) {
	call := budget.Call{Input: 2000, Output: 8000, Price: thousands}
	share := func(usd, spent, held float64) budget.Share {
		return budget.Share{Limits: budget.Limits{USDPerRun: usd}, Spent: budget.Spent{USD: spent}, Held: budget.Amount{USD: held}}
	}
	tokens := budget.Share{Limits: budget.Limits{MaxOutputTokens: 9000}, Spent: budget.Spent{Output: 5000}}
	for _, tt := range []struct {
		name   string
		line   budget.Line
		want   budget.Amount
		refuse budget.Refusal
	}{
		{"alone", budget.Line{share(10, 0, 0)}, budget.Amount{USD: 10, Input: 2000, Output: 8000}, budget.Refusal{}},
		{"the parent has less left than the child may spend", budget.Line{share(10, 0, 0), share(12, 5, 0)},
			budget.Amount{USD: 7, Input: 2000, Output: 5000}, budget.Refusal{}},
		{"the child may spend less than the parent has left", budget.Line{share(6, 0, 0), share(100, 0, 0)},
			budget.Amount{USD: 6, Input: 2000, Output: 4000}, budget.Refusal{}},
		{"another kind of limit farther up", budget.Line{share(7, 0, 0), share(100, 0, 0), tokens},
			budget.Amount{USD: 6, Input: 2000, Output: 4000}, budget.Refusal{}},
		{"a limit of the root's that has no room", budget.Line{share(10, 0, 0), share(10, 0, 0), share(10, 8, 0)}, budget.Amount{},
			budget.Refusal{Setting: "usd_per_run", Need: 3.024, Left: 2}},
		{"siblings that hold what would be enough", budget.Line{share(10, 0, 0), share(10, 0, 8)}, budget.Amount{},
			budget.Refusal{Setting: "usd_per_run", Need: 3.024, Left: 2, Wait: true}},
		{"siblings that hold it, and a root without room", budget.Line{share(10, 0, 0), share(10, 0, 8), share(10, 9, 0)}, budget.Amount{},
			budget.Refusal{Setting: "usd_per_run", Need: 3.024, Left: 1}},
		{"a root without room, and siblings that hold it", budget.Line{share(10, 9, 0), share(10, 0, 8)}, budget.Amount{},
			budget.Refusal{Setting: "usd_per_run", Need: 3.024, Left: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, refusal := tt.line.Admit(call)
			if diff := cmp.Diff(tt.want, a, cmpFloats) + cmp.Diff(tt.refuse, refusal, cmpFloats); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTurnsAndTheSizeOfRequestsBoundNoRunBelow(t *testing.T) {
	s := budget.Share{
		Limits: budget.Limits{MaxModelTurns: 3, MaxRequestTokens: 10, MaxWallSeconds: 60, USDPerRun: 10},
		Spent:  budget.Spent{Turns: 3, USD: 1},
	}
	call := budget.Call{Input: 2000, Output: 1, Likely: 2000, Price: thousands}
	if _, refusal := (budget.Line{s}).Admit(call); refusal.Setting != "max_model_turns" {
		t.Errorf("its own call: %+v", refusal)
	}
	if _, refusal := (budget.Line{s.Below()}).Admit(call); refusal.Setting != "" {
		t.Errorf("a child's call: %+v", refusal)
	}
	for setting, change := range map[string]func(*budget.Share){
		"max_wall_time_seconds": func(s *budget.Share) { s.Spent.Active = time.Minute },
		"usd_per_run":           func(s *budget.Share) { s.Spent.USD = 10 },
	} {
		used := s
		change(&used)
		if _, refusal := (budget.Line{used.Below()}).Admit(call); refusal.Setting != setting {
			t.Errorf("with %s used up: %+v", setting, refusal)
		}
	}
}

func TestOnlyAnOpenReservationIsAnAdmission(t *testing.T) {
	var l budget.Ledger
	must(t, l.Reserve(reservation("a", 1)))
	a := l.Admission("a")
	if !a.Given() || a.Usage() != (llm.Usage{Input: 10, Output: 1}) || !a.Equal(l.Admission("a")) || a.Equal(budget.Admission{}) {
		t.Errorf("%+v", a)
	}
	must(t, l.Reserve(reservation("b", 1)))
	if other := l.Admission("b"); other.Equal(a) || (budget.Admission{}).Equal(a) {
		t.Errorf("another reservation, or none, is %+v", a)
	}
	must(t, l.Commit("a"))
	for name, none := range map[string]budget.Admission{"zero": {}, "another id": l.Admission("c"), "committed": l.Admission("a")} {
		if none.Given() || none.Usage() != (llm.Usage{}) || !none.Equal(budget.Admission{}) {
			t.Errorf("%s: %+v", name, none)
		}
	}
}

// node is a run of a tree: the root, a child, a child of a child, or a judge,
// which is a child as far as money goes.
type node struct {
	parent *node
	limits budget.Limits
	ledger budget.Ledger
	spent  budget.Amount
	// over is what calls under this node used beyond what was set aside for them,
	// since the last one of them began: no more than those under way can.
	over budget.Amount
	// open are the calls under way in the tree below, this node included.
	open int
}

func (n *node) line() (l budget.Line) {
	for ; n != nil; n = n.parent {
		l = append(l, budget.Share{
			Limits: n.limits, Spent: budget.Spent{USD: n.spent.USD, Input: n.spent.Input, Output: n.spent.Output}, Held: n.ledger.Held(),
		})
	}
	return l
}

// flying is a call under way.
type flying struct {
	by *node
	budget.Reservation
}

// tree is a run with everything that it started. Its calls overlap, and come to
// their ends in any order: some use what was set aside and some less, some are
// never made, and in a tree of liars some use more.
type tree struct {
	t     *testing.T
	r     *rand.Rand
	seed  uint64
	price *llm.Price
	liars bool
	nodes []*node
	calls []flying
	ids   int
	// used is what every call really used, by the node that made it.
	used map[*node]budget.Amount
	// What was come across, so that a seed that proves nothing is seen.
	waited, bounded, atOnce int
}

func (tr *tree) grow() {
	root := &node{limits: budget.Limits{
		USDPerRun: 0.5 + tr.r.Float64(), MaxInputTokens: 40_000 + tr.r.Int64N(200_000), MaxOutputTokens: 20_000 + tr.r.Int64N(60_000),
	}}
	tr.nodes = []*node{root}
	for range 6 {
		child := &node{parent: tr.nodes[tr.r.IntN(len(tr.nodes))]}
		if tr.r.IntN(3) > 0 { // else it has no limit but its ancestors'
			child.limits.USDPerRun = root.limits.USDPerRun * (0.1 + 2*tr.r.Float64())
		}
		tr.nodes = append(tr.nodes, child)
	}
}

// begin makes a call if every share has room for it.
func (tr *tree) begin() {
	n := tr.nodes[tr.r.IntN(len(tr.nodes))]
	call := budget.Call{Input: 1 + tr.r.Int64N(9000), Output: 1 + tr.r.Int64N(8192), Price: tr.price}
	line := n.line()
	a, refusal := line.Admit(call)
	if own, alone := line[:1].Admit(call); alone.Setting == "" && (refusal.Setting != "" || a.Output < own.Output) {
		tr.bounded++
	}
	if refusal.Setting != "" {
		if refusal.Wait {
			tr.waited++
		}
		return
	}
	tr.ids++
	f := flying{by: n, Reservation: budget.Reservation{ID: fmt.Sprint("call ", tr.ids), Amount: a}}
	for up := n; up != nil; up = up.parent {
		must(tr.t, up.ledger.Reserve(f.Reservation))
		up.open, up.over = up.open+1, budget.Amount{}
	}
	tr.calls = append(tr.calls, f)
	tr.atOnce = max(tr.atOnce, len(tr.calls))
}

// end settles one of the calls under way.
func (tr *tree) end() {
	if len(tr.calls) == 0 {
		return
	}
	i := tr.r.IntN(len(tr.calls))
	f := tr.calls[i]
	tr.calls = slices.Delete(tr.calls, i, i+1)
	var used, over budget.Amount
	if tr.r.IntN(10) > 0 { // else it was not made, and is given back
		used = budget.Amount{Input: tr.r.Int64N(f.Input + 1), Output: tr.r.Int64N(f.Output + 1)}
		if tr.liars && tr.r.IntN(4) == 0 {
			used.Output = 2*f.Output + 1
		}
		used.USD = tr.price.Of(llm.Usage{Input: used.Input, Output: used.Output, CacheWrite: tr.r.Int64N(used.Input + 1)})
	}
	if used.Exceeds(f.Amount) {
		if !tr.liars {
			tr.t.Fatalf("seed %d: %+v was set aside for what can be billed as %+v", tr.seed, f.Amount, used)
		}
		over = budget.Amount{USD: max(used.USD-f.USD, 0), Output: max(used.Output-f.Output, 0)}
	}
	tr.used[f.by] = tr.used[f.by].Add(used)
	for up := f.by; up != nil; up = up.parent {
		must(tr.t, up.ledger.Commit(f.ID))
		up.spent = up.spent.Add(used)
		up.over = up.over.Add(over)
		up.open--
	}
}

// holds fails unless every promise about money is kept.
func (tr *tree) holds() {
	tr.t.Helper()
	for i, n := range tr.nodes {
		spent, held := n.spent, n.ledger.Held()
		if n.open == 0 && held != (budget.Amount{}) {
			tr.t.Fatalf("seed %d: node %d holds %+v and has no call under way", tr.seed, i, held)
		}
		// What was set aside and what was spent stay within the cap, but for what
		// the calls under way used beyond it; then nothing starts any more.
		room := caps(n.limits).Add(n.over)
		if spent.Add(held).Exceeds(room) {
			tr.t.Fatalf("seed %d: node %d has spent %+v and holds %+v under %+v, %+v beyond reservations", tr.seed, i, spent, held, caps(n.limits), n.over)
		}
		// A run's spend is its own calls' and that of all runs below it.
		var below budget.Amount
		for maker, used := range tr.used {
			for up := maker; up != nil; up = up.parent {
				if up == n {
					below = below.Add(used)
				}
			}
		}
		if below.Exceeds(spent) || spent.Exceeds(below) {
			tr.t.Fatalf("seed %d: node %d has %+v on its account, and its tree used %+v", tr.seed, i, spent, below)
		}
	}
}

func caps(l budget.Limits) budget.Amount {
	a := budget.Amount{USD: l.USDPerRun, Input: l.MaxInputTokens, Output: l.MaxOutputTokens}
	if a.USD == 0 {
		a.USD = 1e9
	}
	if a.Input == 0 {
		a.Input = 1e15
	}
	if a.Output == 0 {
		a.Output = 1e15
	}
	return a
}

// Runs, their children, grandchildren and judges draw from one budget concurrently:
// together they never overspend, and each spend is on the account of every ancestor.
func TestATreeOfRunsNeverSpendsMoreThanAnyOfThemMay(t *testing.T) {
	price := &llm.Price{Input: 3, Output: 15, CacheWrite: 3.75, Long: &llm.LongPrice{Over: 5000, Input: 6, Output: 22.5, CacheWrite: 7.5}}
	waited, bounded := 0, 0
	for seed := range uint64(300) {
		tr := &tree{t: t, r: rand.New(rand.NewPCG(seed, 5)), seed: seed, price: price, liars: seed%3 == 0, used: map[*node]budget.Amount{}}
		tr.grow()
		for range 300 {
			if tr.r.IntN(5) < 3 {
				tr.begin()
			} else {
				tr.end()
			}
			tr.holds()
		}
		for len(tr.calls) > 0 {
			tr.end()
		}
		tr.holds()
		if tr.ids == 0 || tr.atOnce < 2 {
			t.Errorf("seed %d proves nothing: %d calls, %d at once", seed, tr.ids, tr.atOnce)
		}
		waited, bounded = waited+tr.waited, bounded+tr.bounded
	}
	if waited == 0 || bounded == 0 {
		t.Errorf("nobody waited (%d) or was bounded by an ancestor (%d)", waited, bounded)
	}
}
