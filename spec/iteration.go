package spec

import (
	"fmt"
	"reflect"
	"slices"
)

func (it *Iteration) validate(r *report, a *Agent, o Options) {
	it.Settings.validate(r, "iteration")
	a.onlyOnce(r)
	if c := a.Effective().Compact; it.SummaryStrategy != "" && c != nil && c.Strategy != "" {
		r.at("iteration.summary_strategy", "summary_strategy or compact.strategy, one of the two", "both are given")
	}
	if path := "iteration.termination_conditions"; r.has(path) && !r.reported(path) && len(it.TerminationConditions) == 0 {
		r.at(path, "at least one condition", "is an empty list")
	}
	for i, c := range it.TerminationConditions {
		c.validate(r, conditionPath(i), a, o)
	}
	if a.Composite != nil {
		r.at("composite", "iteration or composite, one of the two",
			"composite is given together with iteration: the one is a team of agents, the other a single agent")
	}
}

func conditionPath(i int) string { return fmt.Sprintf("iteration.termination_conditions[%d]", i) }

// onlyOnce reports a setting that stands at the top level and in the iteration
// block. Two cycle caps are no conflict: the smaller one holds.
func (a *Agent) onlyOnce(r *report) {
	top, inner := reflect.ValueOf(a.Settings), reflect.ValueOf(a.Iteration.Settings)
	fields := fieldsOf(top.Type())
	for _, key := range sortedKeys(fields) {
		index := fields[key]
		if key != "max_cycles" && !top.FieldByIndex(index).IsZero() && !inner.FieldByIndex(index).IsZero() {
			r.at(key, key+" or iteration."+key, "both are given")
		}
	}
}

func (c Condition) validate(r *report, path string, a *Agent, o Options) {
	var uses []string
	switch c.Kind {
	case "text-includes":
		uses = []string{"text"}
		if c.Text == "" {
			missing(r, path+".text", "the text to look for")
		}
	case "tool-result":
		uses = []string{"tool", "match"}
		c.validateTool(r, path, a, o)
	case "budget-exhausted":
	case "":
		missing(r, path+".kind", "one of text-includes, tool-result, budget-exhausted")
		return
	default:
		return // another kind is reported already
	}
	given := map[string]bool{"text": c.Text != "", "tool": c.Tool != "", "match": c.Match != nil}
	for _, key := range []string{"text", "tool", "match"} {
		if given[key] && !slices.Contains(uses, key) {
			r.at(path+"."+key, "no such key", "a %s condition does not have it", c.Kind)
		}
	}
}

func (c Condition) validateTool(r *report, path string, a *Agent, o Options) {
	if c.Tool == "" {
		missing(r, path+".tool", "the name of a tool")
	} else {
		a.Tools.usable(r, path+".tool", c.Tool, o)
	}
	switch {
	case r.reported(path + ".match.exit_code"), r.reported(path + ".match.contains"):
	case c.Match == nil || c.Match.ExitCode == nil && c.Match.Contains == "":
		missing(r, path+".match", "exit_code, contains, or both")
	default:
		within(r, path+".match.exit_code", c.Match.ExitCode, 0, 255)
	}
}
