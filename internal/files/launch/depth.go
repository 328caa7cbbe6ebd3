package launch

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

// tooDeep names the first chain of agents and workflows that max_depth cuts off, of a run
// that nothing else starts; empty where there is none. The agents are pinned.
func (o Options) tooDeep(root *spec.Agent, p plan.Plan) []string {
	if o.started {
		return nil
	}
	deepest := cmp.Or(o.MaxDepth, event.MaxDepth)
	chain := o.chainBelow(root, p.Runs, []string{cmp.Or(root.Identity.Name, p.Name, "this file")}, map[string]bool{}, deepest-1)
	if chain == nil {
		return nil
	}
	return []string{fmt.Sprintf("the chain %s passes max_depth (here %d levels, or what an agent on the way sets): what goes beyond is refused",
		strings.Join(chain, " > "), deepest)}
}

// chainBelow returns the first chain that is longer than the levels that are left. on are
// the files of the chain so far: an agent that offers itself again has no end.
func (o Options) chainBelow(a *spec.Agent, runs map[string]plan.Inner, path []string, on map[string]bool, levels int) []string {
	for _, t := range a.Offers() {
		chain := append(slices.Clone(path), t.Name)
		source, err := t.Source(a.Dir)
		if err != nil {
			continue // is said where the run begins
		}
		switch {
		case levels <= 0:
			return chain
		case on[source]:
			return append(chain, "…")
		}
		left := levels - 1
		if t.MaxDepth != nil {
			left = min(left, *t.MaxDepth-1)
		}
		below, err := o.pinnedFile(source)
		if err != nil {
			continue
		}
		on[source] = true
		found := o.chainBelow(below, nil, chain, on, left)
		if delete(on, source); found != nil {
			return found
		}
	}
	for _, name := range slices.Sorted(maps.Keys(runs)) {
		chain := append(slices.Clone(path), name)
		if levels <= 0 {
			return chain
		}
		w, err := spec.RestoreWorkflow(runs[name].File.Path, []byte(runs[name].File.Text))
		if err != nil {
			continue
		}
		left := levels - 1
		if w.MaxDepth != nil {
			left = min(left, *w.MaxDepth-1)
		}
		root := w.Limits()
		o.offerUses(root)
		if found := o.chainBelow(root, runs[name].Plan.Runs, chain, on, left); found != nil {
			return found
		}
	}
	return nil
}
