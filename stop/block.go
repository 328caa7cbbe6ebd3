package stop

import "github.com/pawlrun/pawl/event"

// PendingCall is a call that has not run yet, with the properties that detecting repetition
// needs.
type PendingCall struct {
	Tool, Digest string
	// Works reports that the call edits files or runs a command (see [Works]).
	Works bool
}

// Warned reports whether the model has received a nudge for a repetition that may
// continue.
func (r *Repetition) Warned() bool {
	for _, n := range r.warned {
		if n > 0 {
			return true
		}
	}
	return false
}

// Blocked reports whether the last of the requested calls, in their order, must
// not run, because the model got a reminder that it repeats itself and continues:
//
//   - a call that continues a repetition of one call or of two, each time;
//   - when calls have kept failing with the same kind of error for a while after
//     the nudge, the calls of the tool that failed last, in one answer: the model
//     has to read the error, and may then call the tool again;
//   - when the working tree has not changed for a while after the nudge, the
//     calls that edit or run commands, in one answer; reading files continues.
//
// Repeated text without a call cannot be blocked.
func (r *Repetition) Blocked(asked []PendingCall) (d event.Stuck, ok bool) {
	if d, ok := r.circling(asked); ok {
		return d, true
	}
	call := asked[len(asked)-1]
	for _, p := range [...]Pattern{SameError, UnchangedTree} {
		if r.overdue(p) && (p == SameError && call.Tool == r.last.Tool || p == UnchangedTree && call.Works) {
			return event.Stuck{Pattern: string(p), Tool: call.Tool, Count: r.count[p.index()], Action: event.StuckBlock}, true
		}
	}
	return event.Stuck{}, false
}

// overdue reports whether a pattern has continued half the way from its nudge to the
// end of the run, and no call was blocked for it yet.
func (r *Repetition) overdue(p Pattern) bool {
	i := p.index()
	return r.warned[i] > 0 && !r.blocked[i] && r.count[i] >= r.warned[i]+p.ladder().more/2
}

// circling reports whether all of the calls continue a circle.
func (r *Repetition) circling(asked []PendingCall) (d event.Stuck, ok bool) {
	for i, p := range patterns[:2] {
		if r.warned[i] == 0 {
			continue
		}
		circle := [2]Call{r.last, r.last}
		if p == AlternatingCalls {
			circle[0] = r.before
		}
		going := true
		for k := 0; going && k < len(asked); k++ {
			going = asked[k].Digest == circle[k%2].Digest
		}
		if n := len(asked); going {
			return event.Stuck{
				Pattern: string(p), Tool: circle[(n-1)%2].Tool, Count: r.count[i] + n, Action: event.StuckBlock,
			}, true
		}
	}
	return event.Stuck{}, false
}
