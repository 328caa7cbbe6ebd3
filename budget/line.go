package budget

// Share is one run's part of a budget: its own limits, and what it and
// everything that it started have spent and reserved.
type Share struct {
	Limits Limits
	Spent  Spent
	Held   Amount
}

// Below returns the part of a share that limits the runs which its run started:
// money, tokens and time. The number of model calls and the size of requests
// are limited per run.
func (s Share) Below() Share {
	s.Limits.MaxModelTurns, s.Limits.MaxRequestTokens = 0, 0
	return s
}

// Line is the list of shares that a call uses: that of the run that makes it,
// then that of the run which started this one, and so on up to the root.
// Everything that calls a model for a run (its cycles, retries, summaries,
// judges and children) uses the same line, so that no share is overspent.
type Line []Share

// Admit checks the worst case of a call against the rest of every share, as
// [Limits.Admit] does for one: what is left of an ancestor's budget limits a
// run, whatever its own limits are. Reserve the amount in each share, or in
// none. It is worth waiting only if no share refuses the call for good.
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
