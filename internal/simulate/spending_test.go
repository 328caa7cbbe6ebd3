package simulate_test

import (
	"math"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// spending holds a journal against the promises about money: nothing is called
// without its worst case set aside, a run stays within its caps while reported
// usage stays within its reservation, and otherwise goes beyond by one call,
// says so, and starts nothing more.
type spending struct {
	open  *event.BudgetReserved
	spent budget.Amount
	// exceeded says that the last call exceeded its reservation, lowered that
	// a cap was lowered below what had been spent.
	exceeded bool
	lowered  bool
	overrun  string
	// unsaid is an overrun that is not reported yet.
	unsaid bool
	// most is the highest cap in money so far.
	most float64
	// warned is the share of each limit that was warned of since a limit changed.
	warned map[string]int
}

func (s *spending) event(w *world, data event.Data, limits budget.Limits) {
	s.most = max(s.most, caps(limits).USD)
	switch d := data.(type) {
	case event.BudgetReserved:
		if s.open != nil {
			w.violate("%s is reserved while %s is open", d.ID, s.open.ID)
		}
		s.starts(w, "a reservation")
		s.open, s.exceeded = &d, false
		total := s.spent.Add(budget.Amount{USD: d.USD, Input: d.Input, Output: d.Output})
		if total.Exceeds(caps(limits)) {
			w.violate("%s may bring the run to %+v under %+v", d.ID, total, caps(limits))
		}
	case event.ModelRequested:
		if s.open == nil {
			w.violate("attempt %d is made without a reservation", d.Attempt)
		}
		s.starts(w, "a model call")
	case event.ToolStarted:
		s.starts(w, "a tool call")
	case event.ModelAttemptFailed:
		if d.Class == llm.ClassInterrupted && (d.Usage.Input == 0 || d.Usage.Output == 0 || !d.Usage.Estimated) {
			w.violate("attempt %d was stopped and charged %+v", d.Attempt, d.Usage)
		}
	case event.BudgetCommitted:
		s.commit(w, d, limits)
	case event.BudgetWarning:
		if s.warned[d.Setting] >= d.Percent || d.Used < d.Limit*float64(d.Percent)/100 {
			w.violate("a warning of %d %% of %s after one of %d %%, with %v of %v used", d.Percent, d.Setting, s.warned[d.Setting], d.Used, d.Limit)
		}
		if s.warned == nil {
			s.warned = map[string]int{}
		}
		s.warned[d.Setting] = d.Percent
	case event.BudgetRaised:
		s.warned = nil
		s.raised(limits)
	case event.BudgetOverrun:
		if !s.exceeded {
			w.violate("an overrun of %s by calls that stayed within their reservations", d.Setting)
		}
		s.overrun, s.unsaid = d.Setting, false
		w.seen("budget overrun")
	}
}

func (s *spending) starts(w *world, what string) {
	if s.unsaid {
		w.violate("%s starts after an overrun of which nothing was said", what)
	}
	if s.overrun != "" {
		w.violate("%s starts after an overrun of %s", what, s.overrun)
	}
}

func (s *spending) commit(w *world, d event.BudgetCommitted, limits budget.Limits) {
	if s.open == nil || s.open.ID != d.ID {
		w.violate("%s is committed and not reserved", d.ID)
		return
	}
	used := budget.Amount{USD: d.USD, Input: d.Input, Output: d.Output}
	reserved := budget.Amount{USD: s.open.USD, Input: s.open.Input, Output: s.open.Output}
	s.exceeded = used.Exceeds(reserved)
	if s.exceeded && (w.honest || d.Estimated && misjudged(used, reserved)) {
		w.violate("%s used %+v of %+v", d.ID, used, reserved)
	}
	s.spent, s.open = s.spent.Add(used), nil
	s.within(w, limits)
}

// misjudged reports whether an estimate is to blame for what was used beyond a
// reservation. At least one of its figures was not reported, and that one stays
// within what was set aside; a model may have reported too much of the other.
func misjudged(used, reserved budget.Amount) bool {
	return (used.Input > reserved.Input) == (used.Output > reserved.Output)
}

// within compares what was spent with the caps. A cap that was lowered while
// the run went may lie below what was spent before.
func (s *spending) within(w *world, limits budget.Limits) {
	if s.lowered || !s.spent.Exceeds(caps(limits)) {
		return
	}
	if s.unsaid = s.exceeded; !s.exceeded {
		w.violate("%+v spent under %+v", s.spent, caps(limits))
	}
}

func (s *spending) raised(limits budget.Limits) {
	if s.spent.Exceeds(caps(limits)) {
		s.lowered = true
		return
	}
	s.lowered, s.unsaid, s.overrun = false, false, ""
}

func (s *spending) end(w *world, usage llm.Usage, usd float64) {
	if s.open != nil {
		w.violate("%s is still set aside at the end", s.open.ID)
	}
	if math.Abs(s.spent.USD-usd) > 1e-9 || s.spent.Input != usage.Input || s.spent.Output != usage.Output {
		w.violate("committed %+v, used %+v for %v", s.spent, usage, usd)
	}
}

func caps(l budget.Limits) budget.Amount {
	usd, _ := l.CostCap()
	a := budget.Amount{USD: usd, Input: l.MaxInputTokens, Output: l.MaxOutputTokens}
	if a.USD == 0 {
		a.USD = math.Inf(1)
	}
	if a.Input == 0 {
		a.Input = math.MaxInt64
	}
	if a.Output == 0 {
		a.Output = math.MaxInt64
	}
	return a
}
