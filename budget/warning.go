package budget

// Warning says that a share of a limit is used up.
type Warning struct {
	Setting string
	Used    float64
	Limit   float64
	// Percent is 50, 80 or 100.
	Percent int
}

// Levels are the shares of each limit for which a warning was given.
type Levels [len(settings)]uint8

// Group says which limits to look at.
type Group int

// The groups: what a model call uses up, and what a cycle does.
const (
	OfCalls Group = iota
	OfCycles
)

// kinds are those of a group's limits, in the order in which it warns.
func (g Group) kinds() [2]Kind {
	if g == OfCalls {
		return [2]Kind{Money, Tokens}
	}
	return [2]Kind{Count, Time}
}

// share is how much of a limit has been used.
type share struct {
	setting     string
	used, limit float64
}

// usage is what is to be looked at of a group's limits.
type usage struct {
	limits Limits
	spent  Spent
	group  Group
}

// shares are what of the limits has been used, by their places.
func (u *usage) shares(yield func(int, share) bool) {
	for _, kind := range u.group.kinds() {
		for i := range settings {
			if x := &settings[i]; x.Kind == kind && !yield(i, share{x.Name, x.used(u.spent), x.of(u.limits)}) {
				return
			}
		}
	}
}

// Warn calls warn for each limit of a group of which a larger share is used
// than was warned of. If several shares were passed at once, it reports the
// largest.
func (l Limits) Warn(s Spent, warned *Levels, g Group, warn func(Warning)) {
	for i, x := range (&usage{l, s, g}).shares {
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
	for i := range settings {
		if settings[i].Name == setting {
			v[i] = uint8(percent)
		}
	}
	return v
}

// Raised returns the levels after a limit changed: there will be new warnings
// for shares that are no longer used up.
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
