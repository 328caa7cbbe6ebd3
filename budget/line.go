package budget

// Share is one run's part in a budget: its own limits, and what it and
// everything that it started have spent and set aside.
type Share struct {
	Limits Limits
	Spent  Spent
	Held   Amount
}

// Below is what of a share bounds the calls of the runs that its run started:
// money, tokens and time. How often a run calls a model, and how large its
// requests are, is each run's own affair.
func (s Share) Below() Share {
	s.Limits.MaxModelTurns, s.Limits.MaxRequestTokens = 0, 0
	return s
}

// Line is what a call draws from: the share of the run that makes it, then that
// of the run which started this one, and so on, the root's last. Whatever calls
// a model for a run (its cycles, retries, summaries, judges and children) draws
// from the same line, so no share in it is overspent (FIELD F3).
type Line []Share

// Admit sets the worst case of a call against what is left of every share, as
// [Limits.Admit] does for one of them: what an ancestor has left bounds a run,
// whatever its own limits say. The amount is to be reserved in each share, or
// none. To wait is only worth it where no share refuses the call for good.
func (l Line) Admit(c Call) (Amount, Refusal) {
	var a Amount
	var waiting Refusal
	for _, s := range l {
		admitted, refusal := s.Limits.Admit(s.Spent, s.Held, c)
		switch {
		case refusal.Setting == "":
			a, c.Output = admitted, admitted.Output
		case !refusal.Wait:
			return Amount{}, refusal
		case waiting.Setting == "":
			waiting = refusal
		}
	}
	if waiting.Setting != "" {
		return Amount{}, waiting
	}
	return a, Refusal{}
}
