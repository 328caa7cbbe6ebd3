package cli

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/files/kinds"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/view"
)

// nextStep finds the command that continues a stopped run.
type nextStep struct {
	// pawl is the beginning of every command, see [app.invocation].
	pawl string
	// view is the view of the run.
	view *view.View
	origin
	// pending returns the calls of a run and its descendants that wait for a
	// decision; nil if only events are known.
	pending func(run string) []string
}

// origin is how a run was created, which decides how it continues.
type origin struct {
	// ofProgram reports that a program that embeds Pawl started the run.
	ofProgram bool
	// atEnd reports that runs of its kind cannot continue after their end.
	atEnd bool
	// noRetry reports that runs of its kind are forked, not retried.
	noRetry bool
	// replays is the run that this run replays, if any.
	replays string
	// forms holds the flags that answer the forms of its calls, by the calls.
	forms map[string]string
}

func (o *origin) add(data event.Data) {
	switch d := data.(type) {
	case event.RunStarted:
		k, err := kinds.OfRun(d)
		o.ofProgram, o.replays, o.atEnd = d.Spec == "", d.Replays, err == nil && k.Continue == nil
		o.noRetry = err == nil && k.Name == launch.GoalFiles().Name
	case event.ToolInputRequired:
		if o.forms == nil {
			o.forms = map[string]string{}
		}
		form, _ := d.Question().What.(event.FormAsked)
		o.forms[d.CallID] = fieldFlags(form)
	case event.RunForked:
		o.replays = "" // a fork has tools
	}
}

// waitingRun returns the run that waits, and what it waits for: the run itself, or a
// descendant. A decision about a call is sent to the run itself, which passes it
// on.
func (n *nextStep) waitingRun(run string, d event.RunParked) (string, event.RunParked) {
	if len(d.CallIDs) > 0 || d.Limit != "" {
		return run, d
	}
	if d.Reason == event.ParkApproval && n.pending != nil {
		d.CallIDs = n.pending(run)
		return run, d
	}
	for _, child := range n.view.WaitingRuns() {
		switch c := child.Parked; {
		case c == nil || c.Reason != d.Reason:
		case len(c.CallIDs) > 0:
			d.CallIDs = c.CallIDs
			return run, d
		case c.Limit != "":
			return c.Child, event.RunParked{Reason: c.Reason, Limit: c.Limit, AtLeast: c.AtLeast}
		}
	}
	return run, d
}

// parked returns how a parked run continues.
func (n *nextStep) parked(run string, d event.RunParked) string {
	switch step := n.resumeText(run, d); {
	case n.replays != "":
		return step
	case step == inProgram:
		return "continue " + step
	default:
		return "continue with: " + step
	}
}

// resumeText returns the command that resumes a parked run, or the alternative.
func (n *nextStep) resumeText(run string, d event.RunParked) string {
	command := "runs resume " + run
	if asking, what := n.waitingRun(run, d); what.Reason == event.ParkApproval || what.Reason == event.ParkInput {
		command = resumeCommandOf(asking, what, n.view.Limits)
		if len(what.CallIDs) > 0 {
			command = strings.Replace(command, " --resume", n.forms[what.CallIDs[0]]+" --resume", 1)
		}
	}
	switch step, more := strings.CutSuffix(command, " --resume"); {
	case n.replays != "":
		return notGoingOn(n.replays, n.pawl)
	case n.ofProgram && more:
		return n.pawl + " " + step + ", then " + inProgram
	case n.ofProgram:
		return inProgram
	}
	return n.pawl + " " + command
}

// inProgram is where a run without an agent file continues.
const inProgram = "in the program that started it, which embeds Pawl"

// ended returns how to continue a run that ended before its task was done; "" if
// nothing is left to do.
func (n *nextStep) ended(run string, o event.Outcome) string {
	if (o.Status == event.StatusFailed || o.Status == event.StatusStopped) && n.replays == "" && !n.ofProgram {
		switch seq := n.view.Steps.Redo(o.Step); {
		case seq > 0 && n.noRetry:
			return fmt.Sprintf("continue with: %s runs fork %s --seq %d", n.pawl, run, seq)
		case seq > 0:
			return fmt.Sprintf("continue with: %s runs retry %s", n.pawl, run)
		}
	}
	if o.Completed && o.NextSafeAction == "" || n.replays != "" || n.ofProgram || n.atEnd {
		return ""
	}
	command := "run --continue " + run
	if slices.Contains(budget.Settings(), o.Limit) {
		command += " --limit " + o.Limit + "=" + higher(n.view.Limits, o.Limit, o.AtLeast)
	}
	return "continue with: " + n.pawl + " " + command + ` "Go on."`
}

// resumeCommandOf returns the command that resumes a parked run. If several calls
// wait, it decides the first; the run then parks for the next.
func resumeCommandOf(run string, d event.RunParked, l budget.Limits) string {
	switch {
	case len(d.CallIDs) > 0:
		return "runs approve " + run + " " + strings.TrimPrefix(d.CallIDs[0], run+"-") + " --resume"
	case d.Limit != "":
		return fmt.Sprintf("runs budget %s %s %s --resume", run, d.Limit, higher(l, d.Limit, d.AtLeast))
	case d.Reason == event.ParkInput:
		return "runs input " + run + " - --resume"
	}
	return "runs resume " + run
}

// higher returns a value for a limit that lets a run continue: twice the limit, and
// at least what the run needs.
func higher(l budget.Limits, setting string, atLeast float64) string {
	s, _ := budget.Find(setting)
	is, _ := s.Value(l)
	value := max(2*is, math.Ceil(atLeast*100)/100)
	if s.Kind != budget.Money {
		value = math.Ceil(value)
	}
	return strconv.FormatFloat(value, 'f', -1, 64)
}

// notGoingOn explains why a replay that ended early cannot continue: its record was in
// its process.
func notGoingOn(replays, pawl string) string {
	return "a replay is not resumed; start it again with: " + pawl + " runs replay " + replays + " --live-model"
}
