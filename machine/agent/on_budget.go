package agent

import (
	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/machine"
	"github.com/pawlrun/pawl/machine/tree"
)

// exhausted ends the run at a budget, or parks it where its owner wants to be
// asked. A budget-exhausted condition in the owner's list turns a money stop
// into the condition it names.
func (m *Machine) exhausted(r budget.Refusal) machine.Action {
	switch warning := m.warnOfCycles(); {
	case warning != nil:
		return warning
	case m.cfg.conditionOn(r.Setting):
		return m.conditionMet(m.cfg.conditionBudget())
	case m.cfg.asksAt(r.Setting):
		return m.askForMore(r)
	}
	return m.terminate(event.RunTerminatedBy{Reason: event.BudgetReason(r.Setting), Limit: r.Setting, Detail: r.Detail()})
}

// CanKeep implements [machine.Capped]: a cap in money needs the price of every
// model that the run may call. The cap that the run has parked for counts what
// has a price, and may be raised.
func (m *Machine) CanKeep(setting string, value float64) error {
	if !budget.IsMoney(setting) || value <= 0 || m.run.Parked != nil && budget.IsMoney(m.run.Parked.Limit) {
		return nil
	}
	names := m.cfg.Unpriced()
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

func (m *Machine) askForMore(r budget.Refusal) machine.Action {
	detail := r.Setting + " is used up"
	if why := r.Detail(); why != "" {
		detail = r.Setting + " leaves no room: " + why
	}
	return record(tree.ParkAt(r.Setting, detail, m.cfg.Limits.AtLeast(r, m.granted())))
}

// hold keeps a call from starting for which a limit has no room. It is refused, and
// the run ends once the cycle has settled; where the owner wants to be asked it is
// held, and runs after the raise.
func (m *Machine) hold(c *call, setting string, s *situation) machine.Action {
	if !m.cfg.asksAt(setting) {
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
	if warning := m.warnOfCycles(); warning != nil {
		return warning
	}
	return m.askForMore(budget.Refusal{Setting: setting})
}
