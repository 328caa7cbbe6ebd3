package budget

// Warning reports that a share of a limit is used up.
type Warning struct {
	Setting string
	Used    float64
	Limit   float64
	// Percent is 50, 80 or 100.
	Percent int
}

// Levels holds the largest share of each limit for which a warning was given.
type Levels [len(settings)]uint8

// Group is a group of limits.
type Group int

// The groups: limits that a model call uses up, and limits that a cycle uses up.
const (
	OfCalls Group = iota
	OfCycles
)

// kinds returns the kinds of a group's limits, in the order of warnings.
func (g Group) kinds() [2]Kind {
	if g == OfCalls {
		return [2]Kind{Money, Tokens}
	}
	return [2]Kind{Count, Time}
}

// share is the used share of a limit.
type share struct {
	setting     string
	used, limit float64
}

// usage is the input for the shares of a group's limits.
type usage struct {
	limits Limits
	spent  Spent
	group  Group
}

// shares yields the used shares of the limits with their indexes.
func (u *usage) shares(yield func(int, share) bool) {
	for _, kind := range u.group.kinds() {
		for i := range settings {
			if x := &settings[i]; x.Kind == kind && !yield(i, share{x.Name, x.used(u.spent), x.of(u.limits)}) {
				return
			}
		}
	}
}

// Warn calls warn for each limit of a group with a larger used share than at the last
// warning. If several levels were passed at once, it reports the largest.
func (l Limits) Warn(s Spent, warned *Levels, g Group, warn func(Warning)) {
	for i, x := range (&usage{l, s, g}).shares {
		if p := x.percent(); p > warned[i] {
			warn(Warning{Setting: x.setting, Used: x.used, Limit: x.limit, Percent: int(p)})
		}
	}
}

// percent returns the largest warning level that has been reached, or 0.
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

// Warned returns the levels with one more warning.
func (v Levels) Warned(setting string, percent int) Levels {
	for i := range settings {
		if settings[i].Name == setting {
			v[i] = uint8(percent)
		}
	}
	return v
}

// Raised returns the levels after a limit changed: shares that are no longer used up
// will cause new warnings.
func (l Limits) Raised(s Spent, v Levels) Levels {
	for _, g := range []Group{OfCalls, OfCycles} {
		for i, x := range (&usage{l, s, g}).shares {
			v[i] = min(v[i], x.percent())
		}
	}
	return v
}

// Overrun returns the limit that the run has exceeded, if there is one.
// Reaching a limit exactly is not an overrun.
func (l Limits) Overrun(s Spent) (Warning, bool) {
	for _, x := range (&usage{l, s, OfCalls}).shares {
		if x.limit > 0 && x.used > x.limit+rounding {
			return Warning{Setting: x.setting, Used: x.used, Limit: x.limit, Percent: 100}, true
		}
	}
	return Warning{}, false
}
