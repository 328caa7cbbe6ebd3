package spec

import (
	"fmt"

	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/stop"
)

func (it *Iteration) validate(r *decode.Report, a *Agent, o Options) {
	it.Settings.validate(r, "iteration")
	onlyOnce(r, "iteration", a.Settings, it.Settings, "max_cycles") // the smaller of two cycle caps applies
	if c := a.Effective().Compact; it.SummaryStrategy != "" && c != nil && c.Strategy != "" {
		r.At("iteration.summary_strategy", "summary_strategy or compact.strategy, one of the two", "both are given")
	}
	if path := "iteration.termination_conditions"; r.Has(path) && !r.Reported(path) && len(it.TerminationConditions) == 0 {
		r.At(path, "at least one condition", "is an empty list")
	}
	for i, c := range it.TerminationConditions {
		validateCondition(r, conditionPath(i), c, a, o)
	}
	if a.Composite != nil {
		r.At("composite", "iteration or composite, one of the two",
			"composite is given together with iteration: the one is a team of agents, the other a single agent")
	}
}

func conditionPath(i int) string { return fmt.Sprintf("iteration.termination_conditions[%d]", i) }

func validateCondition(r *decode.Report, path string, c stop.Condition, a *Agent, o Options) {
	c.Check(func(key, expected, format string, args ...any) {
		at := path + "." + key
		switch {
		case format == "is missing" && (r.Reported(at+".exit_code") || r.Reported(at+".contains")):
		case format == "is missing":
			decode.Missing(r, at, expected)
		case !r.Reported(at):
			r.At(at, expected, format, args...)
		}
	})
	if at := path + ".match"; c.Kind.Known() && !c.Kind.Needs("match") && c.Match == (stop.Match{}) && r.Has(at) {
		r.At(at, "no such key", "a %s condition does not have it", c.Kind)
	}
	if c.Kind.Needs("tool") && c.Tool != "" {
		a.Tools.usable(r, path+".tool", c.Tool, o)
	}
}
