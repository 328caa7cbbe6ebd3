package agent

import (
	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/machine"
	"github.com/pawlrun/pawl/machine/tree"
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
	return record(event.RunTerminatedBy{Reason: event.BudgetReason(why.Setting), Limit: why.Setting, Detail: why.Detail()})
}

// CanKeep implements [machine.Capped]: a cap in money needs the price of every
// model that the run may call. The cap that the run has parked for counts what
// has a price, and may be raised.
func (m *Machine) CanKeep(setting string, value float64) error {
	if !budget.IsMoney(setting) || value <= 0 || m.run.Parked != nil && budget.IsMoney(m.run.Parked.Limit) {
		return nil
	}
	names := m.run.cfg.Unpriced()
	if len(names) == 0 {
		return nil
	}
	return &budget.UnpricedError{Models: names, USD: value}
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

// hold keeps a call from starting for which a limit has no room. It is refused, and
// the run ends once the cycle has settled; where the owner wants to be asked it is
// held, and runs after the raise.
func (s *situation) hold(cfg *Config, c *call, setting string) machine.Action {
	if !cfg.asksAt(setting) {
		return record(c.overBudget(setting))
	}
	s.held = setting
	return nil
}

// awaitsRaise parks the run before the calls that a limit holds, once nothing
// else of the cycle is under way.
func (m *Machine) awaitsRaise(setting string) machine.Action {
	if m.calls.total.running > 0 {
		return nil
	}
	if warning := m.account.warn(&m.run, budget.OfCycles); warning != nil {
		return warning
	}
	return m.run.askForMore(budget.Refusal{Setting: setting}, m.calls.promised(m.run.Spent))
}
