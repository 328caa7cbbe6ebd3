package flow

import (
	"slices"

	"github.com/pawlrun/pawl/plan"
)

// graph is a plan with what follows from its edges. All iterations of a loop share
// that of its body.
type graph struct {
	plan  *plan.Plan
	steps []vertex
}

// vertex is a step in its graph; the numbers are places in it.
type vertex struct {
	step             *plan.Step
	deps, dependents []int
	// above are the steps that it waits for, directly or not.
	above bits
	// below is how many steps wait for it, directly or not.
	below int
	// body is the graph of the step's own plan, or of its loop's.
	body *graph
}

// newGraph builds the graph of a plan that was checked.
func newGraph(p *plan.Plan) *graph {
	g := &graph{plan: p, steps: make([]vertex, len(p.Steps))}
	places := make(map[string]int, len(p.Steps))
	for i := range p.Steps {
		places[p.Steps[i].ID] = i
	}
	for i := range p.Steps {
		v := &g.steps[i]
		switch v.step = &p.Steps[i]; {
		case v.step.Plan != nil:
			v.body = newGraph(v.step.Plan)
		case v.step.Loop != nil:
			v.body = newGraph(&v.step.Loop.Body)
		}
		for _, id := range v.step.DependsOn {
			if d := places[id]; !slices.Contains(v.deps, d) {
				v.deps = append(v.deps, d)
				g.steps[d].dependents = append(g.steps[d].dependents, i)
			}
		}
	}
	for _, i := range g.sorted() {
		v := &g.steps[i]
		for _, d := range v.deps {
			v.above.add(d)
			v.above.join(g.steps[d].above)
		}
		v.above.each(func(d int) { g.steps[d].below++ })
	}
	return g
}

// sorted are the places of the steps, each behind those that it waits for.
func (g *graph) sorted() []int {
	var order []int
	left := make([]int, len(g.steps))
	for i := range g.steps {
		if left[i] = len(g.steps[i].deps); left[i] == 0 {
			order = append(order, i)
		}
	}
	for at := 0; at < len(order); at++ {
		for _, d := range g.steps[order[at]].dependents {
			if left[d]--; left[d] == 0 {
				order = append(order, d)
			}
		}
	}
	return order
}

// bits are a set of small numbers.
type bits []uint64

func (b *bits) add(n int) {
	for len(*b) <= n/64 {
		*b = append(*b, 0)
	}
	(*b)[n/64] |= 1 << (n % 64)
}

func (b *bits) join(other bits) {
	for len(*b) < len(other) {
		*b = append(*b, 0)
	}
	for i, w := range other {
		(*b)[i] |= w
	}
}

func (b bits) each(do func(int)) {
	for i, w := range b {
		for n := 0; w != 0; n, w = n+1, w>>1 {
			if w&1 != 0 {
				do(64*i + n)
			}
		}
	}
}
