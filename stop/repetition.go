package stop

import (
	"fmt"
	"strings"

	"github.com/pawlrun/pawl/event"
)

// Pattern names a kind of repetition.
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

// patterns are in the order of detection: the one that says most about what to change
// comes first.
var patterns = [...]Pattern{SameCall, AlternatingCalls, SameError, Monologue, UnchangedTree}

// rung is how often in a row a pattern earns a nudge, and how many more times end the
// run. Calls in between are blocked: those of a circle all of them, those of the other
// patterns once (see [Repetition.Blocked]).
type rung struct{ nudge, more int }

// ladder returns the default for one call, and the same in pairs for two. The other
// patterns also occur in runs that make progress, so their thresholds are higher.
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

// Call is a settled call, with the properties that detecting repetition needs. Digest
// identifies the tool and the value of its arguments.
type Call struct {
	Tool, Digest string
	Result       *event.ToolResult
	// Blocked is the pattern for which the call was blocked, "" for none.
	Blocked Pattern
}

// Repetition detects a run that repeats itself. It sees the settled calls and
// the answers of a run in their order, not the conversation, so that compaction
// does not hide a repetition. The zero value is ready; it is not safe for
// concurrent use.
type Repetition struct {
	// last and before are the newest two calls.
	last, before Call
	said         string
	count        [len(patterns)]int
	// warned is the count at which a pattern was nudged, 0 for not; blocked reports
	// that calls were blocked for it since then.
	warned  [len(patterns)]int
	blocked [len(patterns)]bool
	// states holds the newest states of the working tree.
	states []string
}

// Called records a settled call. Calls of polling tools must not be recorded. A call
// that was blocked because of other calls neither continues nor breaks a repetition.
func (r *Repetition) Called(c Call) {
	if c.Blocked == SameError || c.Blocked == UnchangedTree {
		r.blocked[c.Blocked.index()] = true
		return
	}
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

// Answered records an answer: its text, and whether it contains calls.
func (r *Repetition) Answered(text string, calls bool) {
	if calls {
		text = "" // an answer with calls is no monologue, so its text does not matter
	}
	switch text = strings.Join(strings.Fields(text), " "); text {
	case "":
		r.said = ""
		r.set(Monologue, 0)
	case r.said:
		r.set(Monologue, r.count[3]+1)
	default:
		r.said = text
		r.set(Monologue, 1)
	}
}

// original returns the call that a blocked one repeats: a blocked call continues its
// circle.
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

// alike reports whether b repeats a: the same call, with the same result or an error
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
		r.warned[i], r.blocked[i] = 0, false
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

// Due returns what must follow the settled cycle: a nudge, the end, or, if ok
// is false, nothing.
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

// Nudged records that a pattern was nudged.
func (r *Repetition) Nudged(p Pattern) {
	i := p.index()
	r.warned[i] = max(r.count[i], 1)
}

// Message returns the text for the model: of a nudge as a user message, of a blocked
// call as its result.
func Message(d event.Stuck) string {
	if d.Action == event.StuckBlock {
		return refusal(d)
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

func refusal(d event.Stuck) string {
	switch Pattern(d.Pattern) {
	case SameError:
		return fmt.Sprintf("this call was not run, because your last %d calls all failed with the same kind of error. "+
			"Read the newest error closely and find out what causes it before you call %s again; that call will be run. "+
			"If the calls go on failing like this, the run ends", d.Count, d.Tool)
	case UnchangedTree:
		return fmt.Sprintf("this call was not run, because in %d cycles your edits and commands have left the files of the workspace as they were. "+
			"Look at the file that has to change and decide what will be different in it, or finish the task if nothing has to change any more. "+
			"Your next edit or command will be run. If the files stay as they are, the run ends", d.Count)
	}
	return "this call was not run, because it repeats earlier calls with nothing new in between, and its result is " +
		"above. Do not make it again: use that result, change the arguments, or take another way. " +
		"If it is repeated once more, the run ends"
}
