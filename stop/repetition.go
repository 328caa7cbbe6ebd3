package stop

import (
	"fmt"
	"strings"

	"github.com/pawlrun/pawl/event"
)

// Pattern names a way of going round in circles (FIELD F1).
type Pattern string

// The patterns that [Repetition] knows.
const (
	// SameCall: one call again and again, each time with the same result or
	// each time with an error.
	SameCall Pattern = "same_call"
	// AlternatingCalls: two such calls in turn.
	AlternatingCalls Pattern = "alternating_calls"
	// SameError: different calls, one after the other, that all fail alike.
	SameError Pattern = "same_error"
	// Monologue: the same words again and again without a call.
	Monologue Pattern = "monologue"
	// UnchangedTree: cycles that edit or run commands, after which the working
	// tree is as it was before.
	UnchangedTree Pattern = "unchanged_tree"
)

// patterns in the order in which they are looked at: the one that says most
// about what to change comes first.
var patterns = [...]Pattern{SameCall, AlternatingCalls, SameError, Monologue, UnchangedTree}

// rung says how often in a row a pattern earns a nudge, and how many more times
// after that end the run. Calls in between are kept from running.
type rung struct{ nudge, more int }

// ladder is PRODUCT 6 for one call, and the same in pairs for two. The other
// patterns stop no call, and an honest run comes across them, so they take
// longer.
func (p Pattern) ladder() rung {
	switch p {
	case SameCall:
		return rung{3, 2}
	case AlternatingCalls:
		return rung{6, 4}
	case SameError:
		return rung{5, 5}
	case UnchangedTree:
		return rung{8, 8}
	}
	return rung{10, 2}
}

// Call is a settled call as far as repetition is concerned. Digest identifies
// the tool and the value of its arguments.
type Call struct {
	Tool, Digest string
	Result       *event.ToolResult
}

// Repetition recognises a run that goes round in circles. It sees the settled
// calls and the answers of a run in their order, and is independent of what
// the history still holds, so that no compaction hides a circle. The zero value
// is ready; it is not safe for concurrent use.
type Repetition struct {
	// last and before are the newest two calls.
	last, before Call
	said         string
	count        [len(patterns)]int
	// warned is the count at which a pattern was nudged, 0 for not.
	warned [len(patterns)]int
	// states are the newest states of the working tree.
	states []string
}

// Called takes in a settled call. Calls that are meant to be repeated are not
// to be told of.
func (r *Repetition) Called(c Call) {
	c = r.original(c)
	same, alternating := 1, 1
	switch {
	case alike(r.last, c):
		same = r.count[0] + 1
	case alike(r.before, c):
		alternating = r.count[1] + 1
	case r.last.Result != nil:
		alternating = 2
	}
	r.set(SameCall, same)
	r.set(AlternatingCalls, alternating)
	switch {
	case !c.Result.IsError:
		r.set(SameError, 0)
	case r.last.Result != nil && r.last.Result.IsError && r.last.Result.ErrorType == c.Result.ErrorType:
		r.set(SameError, r.count[2]+1)
	default:
		r.set(SameError, 1)
	}
	r.before, r.last = r.last, c
}

// Answered takes in an answer: its text, and whether it asks for calls.
func (r *Repetition) Answered(text string, calls bool) {
	text = strings.Join(strings.Fields(text), " ")
	switch {
	case calls || text == "":
		r.said = ""
		r.set(Monologue, 0)
		return
	case text != r.said:
		r.said = text
		r.set(Monologue, 1)
		return
	}
	r.set(Monologue, r.count[3]+1)
}

// original is the call that a blocked one repeats: a call that was not run
// continues its circle.
func (r *Repetition) original(c Call) Call {
	if c.Result.ErrorType == event.ErrorBlocked {
		for _, seen := range []Call{r.last, r.before} {
			if seen.Digest == c.Digest {
				return seen
			}
		}
	}
	return c
}

// alike says that b is a again: the same call, and the same result or an error
// both times.
func alike(a, b Call) bool {
	if a.Result == nil || a.Digest != b.Digest || a.Result.IsError != b.Result.IsError {
		return false
	}
	return a.Result.IsError || a.Result.Output == b.Result.Output
}

func (r *Repetition) set(p Pattern, n int) {
	i := p.index()
	r.count[i] = n
	if n < p.ladder().nudge {
		r.warned[i] = 0
	}
}

func (p Pattern) index() int {
	for i, known := range patterns {
		if known == p {
			return i
		}
	}
	return len(patterns) - 1
}

// Due says what the cycle that has settled calls for: a nudge, an end, or,
// when ok is false, nothing.
func (r *Repetition) Due() (d event.Stuck, ok bool) {
	for i, p := range patterns {
		n, ladder := r.count[i], p.ladder()
		d := event.Stuck{Pattern: string(p), Count: n}
		if p != Monologue && p != UnchangedTree {
			d.Tool = r.last.Tool
		}
		switch {
		case r.warned[i] > 0 && n >= r.warned[i]+ladder.more:
			d.Action = event.StuckStop
			return d, true
		case r.warned[i] == 0 && n >= ladder.nudge:
			d.Action = event.StuckNudge
			return d, true
		}
	}
	return event.Stuck{}, false
}

// Nudged notes that the nudge of a pattern was decided on.
func (r *Repetition) Nudged(p Pattern) {
	i := p.index()
	r.warned[i] = max(r.count[i], 1)
}

// Warned says that the model has been told of a circle that it may still be in.
func (r *Repetition) Warned() bool { return r.warned[0]+r.warned[1] > 0 }

// Blocked says whether the last of the calls asked for, in their order, goes
// on with a circle that the model has been told of, and must not run.
func (r *Repetition) Blocked(digests []string) (d event.Stuck, ok bool) {
	for i, p := range patterns[:2] {
		if r.warned[i] == 0 {
			continue
		}
		circle := [2]Call{r.last, r.last}
		if p == AlternatingCalls {
			circle[0] = r.before
		}
		going := true
		for k, digest := range digests {
			going = going && digest == circle[k%2].Digest
		}
		if n := len(digests); going && n > 0 {
			return event.Stuck{
				Pattern: string(p), Tool: circle[(n-1)%2].Tool, Count: r.count[i] + n, Action: event.StuckBlock,
			}, true
		}
	}
	return event.Stuck{}, false
}

// Message is what the model is told: about a nudge as the user's word, about a
// blocked call as its result.
func Message(d event.Stuck) string {
	if d.Action == event.StuckBlock {
		return "this call was not run, because it repeats earlier calls with nothing new in between, and its result is " +
			"above. Do not make it again: use that result, change the arguments, or take another way. " +
			"If it is repeated once more, the run ends"
	}
	switch Pattern(d.Pattern) {
	case SameCall:
		return fmt.Sprintf("You have called %s with the same arguments %d times in a row, and nothing new came of it. "+
			"The same call will not be run again. Use the result that you have, change the arguments, or take another way.", d.Tool, d.Count)
	case AlternatingCalls:
		return "You have made the same two calls in turn several times, and nothing new came of it. " +
			"They will not be run again in this way. Use the results that you have, or take another way."
	case SameError:
		return fmt.Sprintf("Your last %d calls all failed with the same kind of error. "+
			"Read the newest error closely, and change what causes it before you call again.", d.Count)
	case UnchangedTree:
		return fmt.Sprintf("In %d cycles you have edited files or run commands, and the files of the workspace are as they were before: "+
			"the edits failed, changed nothing, or were taken back. Look at a file before you change it, take another way, "+
			"or, if no file has to change any more, finish the task.", d.Count)
	}
	return fmt.Sprintf("You have said the same %d times without calling a tool. "+
		"Take the next step of the task, or say what the task asks you to say when it is done.", d.Count)
}
