package flow

import (
	"iter"
	"math/big"
	"slices"

	"github.com/pawlrun/pawl/internal/rules/plan"
)

// graph is a plan with data derived from its edges. All iterations of a loop share the
// graph of its body.
type graph struct {
	plan  *plan.Plan
	steps []vertex
}

// vertex is a step in its graph. Numbers are indexes of vertices.
type vertex struct {
	step             *plan.Step
	deps, dependents []int
	// above is the set of its direct and indirect dependencies, as bits.
	above big.Int
	// below is the number of its direct and indirect dependents.
	below int
	// body is the graph of the step's plan or loop.
	body *graph
}

// waitsFor yields its direct and indirect dependencies.
func (v *vertex) waitsFor() iter.Seq[int] {
	return func(yield func(int) bool) {
		for d := range v.above.BitLen() {
			if v.above.Bit(d) == 1 && !yield(d) {
				return
			}
		}
	}
}

// newGraph builds the graph of a validated plan.
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
			v.above.SetBit(&v.above, d, 1)
			v.above.Or(&v.above, &g.steps[d].above)
		}
		for d := range v.waitsFor() {
			g.steps[d].below++
		}
	}
	return g
}

// sorted returns the indexes of the steps in topological order.
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
