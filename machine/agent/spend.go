package agent

import (
	"strconv"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/machine"
)

// account is the run's side of its ledger: what is set aside for the call that
// is due or under way, and what its owner has been told.
type account struct {
	// id names the open reservation, "" for none.
	id string
	// outdated says that a limit was changed before the call began, so that it
	// is to be asked for anew.
	outdated bool
	// settled says that charged is what the call really used, and used the
	// whole of it.
	settled bool
	charged budget.Amount
	used    llm.Usage
	priced  bool
	// exceeded says that a call used more than was set aside for it.
	exceeded bool
	// maxTokens is the output cap that the last call was made with, 0 for none.
	maxTokens int
	warned    budget.Levels
	// draws counts the run's own reservations. refused is the newest answer of
	// the run above that has no room, nil for none.
	draws   int
	refused *event.BudgetRefused
}

// defaultOutput is set aside for the answer where no cap is known.
const defaultOutput = 8192

// pricedCall is the next call of a target at its worst.
func (m *Machine) pricedCall(t Target) budget.Call {
	output := int64(m.cfg.MaxTokens)
	if output <= 0 {
		output = defaultOutput
	}
	m.messages.size.measure(m.messages.history.All(), m.cfg.Tools)
	worst, likely := m.messages.size.tokens(t.Model, m.messages.unreadSize())
	return budget.Call{Input: worst, Likely: likely, Output: output, Price: t.Price, KeptLong: m.cfg.Cache == llm.CacheLong}
}

// refused says which limit has no room for a call of a target.
func (m *Machine) refused(t Target) budget.Refusal {
	if m.account.id != "" {
		// What was set aside is used or given back before anything else is
		// asked for.
		return budget.Refusal{Setting: m.cfg.Limits.BeforeModelCall(m.run.Spent)}
	}
	_, refusal := m.admit(m.pricedCall(t))
	return refusal
}

// admit is the one place where a call of the run is set against the run's own
// share, whatever it is for. The shares above it are asked by [machine.Reserve].
func (m *Machine) admit(c budget.Call) (budget.Amount, budget.Refusal) {
	a, refusal := budget.Line{m.run.Share(m.cfg.Limits)}.Admit(c)
	if refusal.Setting != "" {
		refusal.Call = c
	}
	return a, refusal
}

// reserve sets the next call's worst case aside, or ends the run: a call that
// cannot be paid for is not made (HAR-22).
func (m *Machine) reserve() machine.Action {
	if m.account.id != "" {
		return nil
	}
	call := m.pricedCall(m.target())
	a, refusal := m.admit(call)
	id := strconv.Itoa(m.cycle) + "." + strconv.Itoa(m.model.number)
	switch above := m.account.declined(id); {
	case refusal.Setting != "":
		return m.exhausted(refusal)
	case above != nil:
		return m.exhaustedAbove(above)
	}
	return m.setAside(id, call, a, m.model.notBefore)
}

// capsOutput reports whether requests carry a cap on the answer: the owner's,
// or one that a budget depends on, which may be that of the run above. Else the
// length is left to the adapter.
func (m *Machine) capsOutput() bool {
	l := m.cfg.Limits
	money, _ := l.CostCap()
	return m.cfg.MaxTokens > 0 || l.MaxOutputTokens > 0 || money > 0 && m.target().Price != nil || m.run.Parent != ""
}

// applyBudget takes in an event about the budget: in the run's ledger, which its
// children draw from too, and in the account of its own calls.
func (m *Machine) applyBudget(data event.Data) error {
	switch d := data.(type) {
	case event.BudgetRefused:
		return m.applyRefused(d)
	case event.BudgetReserved:
		if err := m.run.Reserve(d); err != nil || d.Run != "" {
			return err
		}
		m.account.reserved(d, m.capsOutput())
	case event.BudgetCommitted:
		exceeded, err := m.run.Commit(d, m.cfg.Limits)
		m.account.committed(d, exceeded)
		return err
	case event.BudgetWarning:
		m.account.warned = m.account.warned.Warned(d.Setting, d.Percent)
	case event.BudgetOverrun:
		m.run.Overrun = d.Setting
	case event.BudgetRaised:
		m.applyRaised(d)
	}
	return nil
}

// reserved takes in what was set aside for a call; capped says that the call
// carries a cap on its output.
func (a *account) reserved(d event.BudgetReserved, capped bool) {
	a.id, a.draws, a.refused = d.ID, a.draws+1, nil
	a.exceeded, a.maxTokens = false, 0
	if capped {
		a.maxTokens = int(d.Output)
	}
}

// committed takes in what a call used, the run's own or a child's.
func (a *account) committed(d event.BudgetCommitted, exceeded bool) {
	a.exceeded = a.exceeded || exceeded
	if d.Run == "" {
		a.id, a.settled, a.outdated = "", false, false
	}
}

// spent takes in what an answered call cost, of which so much was set aside.
func (a *account) spent(u llm.Usage, c llm.Cost, reserved budget.Amount) {
	a.settled, a.used, a.priced = true, u, c.Priced
	a.charged = budget.Amount{USD: c.USD, Input: u.Input, Output: u.Output}
	a.exceeded = a.charged.Exceeds(reserved)
}

// spend adds what a settled call cost.
func (m *Machine) spend(u llm.Usage, c llm.Cost) {
	m.run.Use(u, c)
	if m.account.id != "" {
		reserved, _ := m.run.Ledger.Reserved(m.account.id)
		m.account.spent(u, c, reserved)
	}
}

// commitment is what a call that was made really used. A run above adds the
// whole usage to its own sums.
func (a *account) commitment(below bool) event.BudgetCommitted {
	d := event.BudgetCommitted{
		ID: a.id, USD: a.charged.USD, Input: a.charged.Input, Output: a.charged.Output, Estimated: a.used.Estimated,
	}
	if below {
		used := a.used
		d.Usage, d.Priced = &used, a.priced
	}
	return d
}

// settlement records what follows from a call that was paid for: the real usage in
// the place of the reservation, and what its owner must know of it.
func (m *Machine) settlement() machine.Action {
	if m.phase >= phaseEnding {
		return nil
	}
	return together(m.settled(), m.overrun(), m.warn(budget.OfCalls))
}

// settled is what the call that was answered used, or that none will be made by what
// was set aside.
func (m *Machine) settled() machine.Action {
	switch a := &m.account; {
	case a.settled:
		return record(a.commitment(m.run.Parent != ""))
	case a.outdated:
		return m.account.giveBack()
	}
	return nil
}

func (m *Machine) overrun() machine.Action {
	if !m.account.exceeded || m.run.Overrun != "" {
		return nil
	}
	w, over := m.cfg.Limits.Overrun(m.run.Spent)
	if !over {
		return nil
	}
	return record(event.BudgetOverrun{Setting: w.Setting, Used: w.Used, Limit: w.Limit})
}

// warn records the warnings that are due.
func (m *Machine) warn(g budget.Group) machine.Action {
	var due []machine.Action
	m.cfg.Limits.Warn(m.run.Spent, &m.account.warned, g, func(w budget.Warning) {
		due = append(due, record(event.BudgetWarning{Setting: w.Setting, Used: w.Used, Limit: w.Limit, Percent: w.Percent}))
	})
	return together(due...)
}

// applyRaised changes a limit. A setting or a value that there is not changes
// nothing: whoever sends it is told, and a running run does not fail by it.
func (m *Machine) applyRaised(d event.BudgetRaised) {
	if err := m.cfg.SetLimit(d.Setting, d.Value); err != nil {
		return
	}
	if d.Setting == m.calls.stopBudget {
		m.calls.stopBudget = ""
	}
	m.account.warned = m.cfg.Limits.Raised(m.run.Spent, m.account.warned)
	m.run.Overrun = "" // said again where it still holds, or another does
	m.account.outdated = m.account.id != "" && !m.account.settled && !m.model.inFlight && !m.compaction.summary.call.inFlight
}

// unreported is what a call is charged whose process is gone.
func (a *account) unreported(l budget.Ledger) llm.Usage {
	return budget.Unreported(l.Admission(a.id).Usage(), llm.Usage{}, 0)
}

func (t Target) cost(u llm.Usage) llm.Cost {
	p := t.Price
	if p == nil {
		return llm.Cost{}
	}
	return llm.Cost{USD: p.Of(u), Priced: true}
}
