package budget

// Warning says that a share of a limit is used up.
type Warning struct {
	Setting string
	Used    float64
	Limit   float64
	// Percent is 50, 80 or 100.
	Percent int
}

// Levels are the shares of each limit that were warned of already.
type Levels [limitCount]uint8

// limitCount is the number of limits that are used up over a run's life.
const limitCount = 8

// Group says which limits to look at.
type Group int

// The groups: what a model call uses up, and what a cycle does.
const (
	OfCalls Group = iota
	OfCycles
)

// share is how much of a limit has been used.
type share struct {
	setting     string
	used, limit float64
}

// shares lists the limits of a run; a limit of 0 is none. The order is fixed,
// because [Levels] are kept by place.
func (l Limits) shares(s Spent) [limitCount]share {
	return [limitCount]share{
		{"usd_per_run", s.USD, l.USDPerRun},
		{"max_total_cost", s.USD, l.MaxTotalCost},
		{"max_input_tokens", float64(s.Input), float64(l.MaxInputTokens)},
		{"max_output_tokens", float64(s.Output), float64(l.MaxOutputTokens)},
		{"max_cycles", float64(s.Cycles), float64(l.MaxCycles)},
		{"max_model_turns", float64(s.Turns), float64(l.MaxModelTurns)},
		{"max_tool_calls", float64(s.ToolCalls), float64(l.MaxToolCalls)},
		{"max_wall_time_seconds", s.Active.Seconds(), l.MaxWallSeconds},
	}
}

// ofCalls is how many of the shares, from the first, [OfCalls] is about.
const ofCalls = 4

// Warn calls warn for each limit of a group of which a larger share has been
// used than was warned of. Where several shares were passed at once it tells of
// the largest.
func (l Limits) Warn(s Spent, warned *Levels, g Group, warn func(Warning)) {
	for i, x := range l.shares(s) {
		if (i < ofCalls) != (g == OfCalls) {
			continue
		}
		if p := x.percent(); p > warned[i] {
			warn(Warning{Setting: x.setting, Used: x.used, Limit: x.limit, Percent: int(p)})
		}
	}
}

// percent is the largest of the shares to warn of that has been used, or 0.
func (x share) percent() uint8 {
	switch used := x.used * 100; {
	case x.limit <= 0 || used < x.limit*50:
		return 0
	case x.used >= x.limit:
		return 100
	case used >= x.limit*80:
		return 80
	}
	return 50
}

// Warned returns the levels with one more warning given.
func (v Levels) Warned(setting string, percent int) Levels {
	for i, x := range (Limits{}).shares(Spent{}) {
		if x.setting == setting {
			v[i] = uint8(percent)
		}
	}
	return v
}

// Raised returns the levels after a limit changed: shares that are not used up
// any more are warned of again.
func (l Limits) Raised(s Spent, v Levels) Levels {
	for i, x := range l.shares(s) {
		v[i] = min(v[i], x.percent())
	}
	return v
}

// Overrun is the limit on what calls use up that the run has gone beyond, if
// there is one. To reach a limit exactly is no overrun.
func (l Limits) Overrun(s Spent) (Warning, bool) {
	shares := l.shares(s)
	for _, x := range shares[:ofCalls] {
		if x.limit > 0 && x.used > x.limit+rounding {
			return Warning{Setting: x.setting, Used: x.used, Limit: x.limit, Percent: 100}, true
		}
	}
	return Warning{}, false
}
