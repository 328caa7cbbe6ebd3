package agent

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/tree"
	"github.com/pawlrun/pawl/llm"
)

// account is the run's side of its ledger: the reservation for the call that is due or
// under way, and what the owner was warned of.
type account struct {
	// id names the open reservation, "" for none.
	id string
	// outdated reports whether a limit was changed before the call began, so that the
	// reservation must be made anew.
	outdated bool
	// settled reports whether charged is the call's true usage, and used the whole of
	// it.
	settled bool
	charged budget.Amount
	used    llm.Usage
	priced  bool
	// exceeded reports whether a call used more than its reservation.
	exceeded bool
	// maxTokens is the output cap of the last call, 0 for none.
	maxTokens int
	warned    budget.Levels
	// draws counts the run's own reservations. refused is the parent's newest refusal,
	// nil for none.
	draws   int
	refused *event.BudgetRefused
}

// defaultOutput is reserved for the answer if no cap is known.
const defaultOutput = 8192

// mostOutput returns the cap on an answer.
func (c *Config) mostOutput() int64 {
	if c.MaxTokens > 0 {
		return int64(c.MaxTokens)
	}
	return defaultOutput
}

// pricedCall returns the worst case of the next call of a target.
func (m *messages) pricedCall(r *run, t Target) budget.Call {
	worst, likely := m.size.tokens(t.Model, m.unreadSize())
	return budget.Call{Input: worst, Likely: likely, Output: r.mostOutput(t, likely), Price: t.Price, KeptLong: r.cfg.Cache == llm.CacheLong}
}

// admit is the one place where a call of the run, for any purpose, is compared with the
// run's own share. [machine.Reserve] compares it with the shares above.
func (r *run) admit(c budget.Call) (budget.Amount, budget.Refusal) {
	a, refusal := budget.Line{r.Share(r.cfg.Limits)}.Admit(c)
	if refusal.Setting != "" {
		refusal.Call = c
	}
	return a, refusal
}

// capsOutput reports whether a request carries the cap of its reservation: the owner's,
// or one on which a budget depends, which may be a parent's, or one with no more room.
// Otherwise the adapter decides the length.
func (r *run) capsOutput(t Target, most int64) bool {
	l := r.cfg.Limits
	money, _ := l.CostCap()
	_, refused := r.rooms[t.Model]
	return r.cfg.MaxTokens > 0 || refused || most < r.cfg.mostOutput() || l.MaxOutputTokens > 0 || money > 0 && t.Price != nil || r.Parent != ""
}

// reserved folds a reservation; capped reports whether the call carries a cap on its
// output.
func (a *account) reserved(d event.BudgetReserved, capped bool) {
	a.id, a.draws, a.refused = d.ID, a.draws+1, nil
	a.exceeded, a.maxTokens = false, 0
	if capped {
		a.maxTokens = int(d.Output)
	}
}

// committed folds the usage of a call, the run's own or a child's.
func (a *account) committed(d event.BudgetCommitted, exceeded bool) {
	a.exceeded = a.exceeded || exceeded
	if d.Run == "" {
		a.id, a.settled, a.outdated = "", false, false
	}
}

// spend adds the cost of a settled call.
func (a *account) spend(r *run, u llm.Usage, c llm.Cost) {
	r.Use(u, c)
	if a.id != "" {
		reserved, _ := r.Ledger.Reserved(a.id)
		a.settled, a.used, a.priced = true, u, c.Priced
		a.charged = budget.Amount{USD: c.USD, Input: u.Input, Output: u.Output}
		a.exceeded = a.charged.Exceeds(reserved)
	}
}

// commitment returns the true usage of a call that was made. A parent adds the whole
// usage to its own sums.
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

// settlement records the consequences of a call that was paid for: the true usage in
// place of the reservation, and the warnings for its owner.
func (a *account) settlement(r *run) machine.Action {
	if r.phase >= phaseEnding {
		return nil
	}
	return together(a.commit(r), a.overrun(r), a.warn(r, budget.OfCalls))
}

// commit records the usage of the answered call, or that the reservation will not be
// used.
func (a *account) commit(r *run) machine.Action {
	switch {
	case a.settled:
		return record(a.commitment(r.Parent != ""))
	case a.outdated:
		return a.giveBack()
	}
	return nil
}

// giveBack gives back the reservation of a call that is not made.
func (a *account) giveBack() machine.Action { return record(event.BudgetCommitted{ID: a.id}) }

// beforeEnd gives back the reservation of a call that will not be made because the run
// is about to end.
func (a *account) beforeEnd(next machine.Action) machine.Action {
	if r, ok := next.(machine.Record); ok && a.id != "" {
		if _, ends := r.Data.(event.RunTerminatedBy); ends {
			return a.giveBack()
		}
	}
	return next
}

// paused parks the run after a pause. A child first gives back its reservation,
// because siblings may wait for it, possibly for a long time.
func (a *account) paused(r *run) machine.Action {
	switch {
	case !r.pause:
		return nil
	case r.Parent != "" && a.id != "":
		return a.giveBack()
	}
	return record(event.RunParked{Reason: event.ParkPaused})
}

func (a *account) overrun(r *run) machine.Action {
	if !a.exceeded || r.Overrun != "" {
		return nil
	}
	w, over := r.cfg.Limits.Overrun(r.Spent)
	if !over {
		return nil
	}
	return record(event.BudgetOverrun{Setting: w.Setting, Used: w.Used, Limit: w.Limit})
}

// warn records the warnings that are due.
func (a *account) warn(r *run, g budget.Group) machine.Action {
	var due []machine.Action
	r.cfg.Limits.Warn(r.Spent, &a.warned, g, func(w budget.Warning) {
		due = append(due, record(event.BudgetWarning{Setting: w.Setting, Used: w.Used, Limit: w.Limit, Percent: w.Percent}))
	})
	return together(due...)
}

func (t Target) cost(u llm.Usage) llm.Cost {
	p := t.Price
	if p == nil {
		return llm.Cost{}
	}
	return llm.Cost{USD: p.Of(u), Priced: true}
}

// setAside records a reservation for which the run's own share has room. A child
// requests it from its parent, once the call is due: the parent's remaining budget
// bounds this one, whatever its own limits are.
func (a *account) setAside(r *run, id string, c budget.Call, most budget.Amount, notBefore time.Time) machine.Action {
	if r.Parent == "" {
		return record(event.BudgetReserved{ID: id, USD: most.USD, Input: most.Input, Output: most.Output})
	}
	c.Output = most.Output
	return machine.Reserve{ID: a.drawID(id), Call: c, NotBefore: notBefore}
}

// drawID returns an id that no other reservation of the run has, so that the parent can
// tell after a crash which of them was used.
func (a *account) drawID(id string) string { return id + "/" + strconv.Itoa(a.draws+1) }

// declined returns the parent's refusal of a reservation, nil while there is none.
func (a *account) declined(id string) *event.BudgetRefused {
	if r := a.refused; r != nil && r.ID == a.drawID(id) {
		return r
	}
	return nil
}

// exhaustedAbove ends the run at a limit of its parent, or parks it if that limit parks
// the parent for a raise: the parent parks with it.
func (r *run) exhaustedAbove(d *event.BudgetRefused) machine.Action {
	above := cmp.Or(d.Run, r.Parent)
	detail := sentence("the budget of run "+r.Parent+", which started this one, has no room", d.Detail)
	if above != r.Parent {
		detail = sentence("the budget of run "+above+", above this one, has no room", d.Detail)
	}
	switch {
	case d.Ask:
		return record(event.RunParked{
			Reason: event.ParkInput, ParentLimit: d.Setting, LimitRun: d.Run, AtLeast: d.AtLeast, Detail: sentence(d.Setting, detail) + "; raise it there and resume that run",
		})
	case r.cfg.conditionOn(d.Setting):
		return record(r.cfg.met(r.cfg.conditionBudget()))
	}
	return record(event.RunTerminatedBy{Reason: event.BudgetReason(d.Setting), Limit: d.Setting, Kind: tree.KindAbove, LimitRun: d.Run, Detail: detail})
}

func (a *account) applyRefused(r *run, d event.BudgetRefused) error {
	if r.Parent == "" || a.id != "" {
		return fmt.Errorf("%w: a refusal of reservation %s, which was not asked for", ErrMisfit, d.ID)
	}
	a.refused = &d
	return nil
}

// exhausted ends the run at a budget without room, or parks it if the limit parks the
// run for a raise. A budget-exhausted condition in the owner's list turns a money stop
// into the condition it names.
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

// asksAt reports whether reaching a limit parks the run. A condition about the limit
// comes first: if it is to end the run, there is no question.
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
