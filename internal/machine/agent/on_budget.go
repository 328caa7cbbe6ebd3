package agent

import (
	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/tree"
)

// exhausted ends the run at a budget that has no room, or parks it where its owner
// wants to be asked. A budget-exhausted condition in the owner's list turns a money
// stop into the condition it names.
func (a *account) exhausted(r *run, why budget.Refusal) machine.Action {
	if why.Setting == "" {
		return nil
	}
	switch warning := a.warn(r, budget.OfCycles); {
	case warning != nil:
		return warning
	case r.cfg.conditionOn(why.Setting):
		return record(r.cfg.met(r.cfg.conditionBudget()))
	case r.cfg.asksAt(why.Setting):
		return r.askForMore(why, r.Spent)
	}
	return record(event.RunTerminatedBy{Reason: event.BudgetReason(why.Setting), Limit: why.Setting, Detail: why.Detail(), AtLeast: r.cfg.Limits.AtLeast(why, r.Spent)})
}

// conditionOn reports whether one of the owner's conditions is about a limit.
func (c *Config) conditionOn(setting string) bool {
	return budget.IsMoney(setting) && c.conditionBudget() >= 0
}

// asksAt reports whether reaching a limit parks the run. A condition about the
// limit comes first: what the run was to end by is not asked about.
func (c *Config) asksAt(setting string) bool {
	return c.OnBudget[setting] == BudgetAsk && !c.conditionOn(setting)
}

func (r *run) askForMore(why budget.Refusal, used budget.Spent) machine.Action {
	detail := why.Setting + " is used up"
	if because := why.Detail(); because != "" {
		detail = why.Setting + " leaves no room: " + because
	}
	return record(tree.ParkAt(why.Setting, detail, r.cfg.Limits.AtLeast(why, used)))
}
