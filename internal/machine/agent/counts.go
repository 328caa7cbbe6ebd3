package agent

// counts are how the calls of a cycle stand. They follow the calls that an event
// changes, because to look at all of them after each event takes the square of
// their number.
type counts struct {
	open, unresolved, granted, running, busy, waiting, children, hooks, undecided, behind int
}

func (t *counts) add(o counts, times int) {
	t.open += times * o.open
	t.unresolved += times * o.unresolved
	t.granted += times * o.granted
	t.running += times * o.running
	t.busy += times * o.busy
	t.waiting += times * o.waiting
	t.children += times * o.children
	t.hooks += times * o.hooks
	t.undecided += times * o.undecided
	t.behind += times * o.behind
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}
