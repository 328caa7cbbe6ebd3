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
)

// nextStep knows the one command that goes on with a run that stopped.
type nextStep struct {
	// pawl is how every command begins, see [app.invocation].
	pawl string
	account
	origin
	// pending are the calls of a run and of all below it that wait for a decision;
	// nil where only events are known.
	pending func(run string) []string
	// parkedChildren are the children that wait for somebody.
	parkedChildren []event.ChildParked
	// steps are those of a workflow, nil where nobody follows them.
	steps *steps
}

// origin is where a run comes from, which decides how it goes on.
type origin struct {
	// ofProgram says that a program which embeds Pawl started the run.
	ofProgram bool
	// atEnd says that a run of its kind is not continued once it has ended.
	atEnd bool
	// noRetry says that a run of its kind is forked and not retried.
	noRetry bool
	// replays is the run of which this one is a replay, if it is one.
	replays string
}

func (o *origin) add(data event.Data) {
	switch d := data.(type) {
	case event.RunStarted:
		k, err := kinds.OfRun(d)
		o.ofProgram, o.replays, o.atEnd = d.Spec == "", d.Replays, err == nil && k.Continue == nil
		o.noRetry = err == nil && k.Name == launch.GoalFiles().Name
	case event.RunForked:
		o.replays = "" // a fork has tools
	}
}

// add takes in what decides which command that is.
func (n *nextStep) add(data event.Data) {
	n.account.add(data)
	n.origin.add(data)
	goesOn := func(child string) {
		n.parkedChildren = slices.DeleteFunc(n.parkedChildren, func(c event.ChildParked) bool { return c.Child == child })
	}
	switch d := data.(type) {
	case event.ChildParked:
		goesOn(d.Child)
		n.parkedChildren = append(n.parkedChildren, d)
	case event.ChildWaiting:
		goesOn(d.Child)
	case event.ChildFinished:
		goesOn(d.Child)
	case event.RunResumed:
		n.parkedChildren = nil
	}
}

// asks is the run that waits for what a parked run waits for, and what that is:
// the run itself, or a run below it. A decision about a call is sent to the run
// itself, which reaches all below it.
func (n *nextStep) asks(run string, d event.RunParked) (string, event.RunParked) {
	if len(d.CallIDs) > 0 || d.Limit != "" {
		return run, d
	}
	if d.Reason == event.ParkApproval && n.pending != nil {
		d.CallIDs = n.pending(run)
		return run, d
	}
	for _, c := range n.parkedChildren {
		switch {
		case c.Reason != d.Reason:
		case len(c.CallIDs) > 0:
			d.CallIDs = c.CallIDs
			return run, d
		case c.Limit != "":
			return c.Child, event.RunParked{Reason: c.Reason, Limit: c.Limit, AtLeast: c.AtLeast}
		}
	}
	return run, d
}

// parked says how a parked run goes on.
func (n *nextStep) parked(run string, d event.RunParked) string {
	switch step := n.takeUp(run, d); {
	case n.replays != "":
		return step
	case step == inProgram:
		return "continue " + step
	default:
		return "continue with: " + step
	}
}

// takeUp is the command that takes a parked run up again, or what there is in
// its place.
func (n *nextStep) takeUp(run string, d event.RunParked) string {
	command := "runs resume " + run
	if asking, what := n.asks(run, d); what.Reason == event.ParkApproval || what.Reason == event.ParkInput {
		command = takeUpCommand(asking, what, n.Limits)
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

// inProgram is where a run goes on that no agent file describes.
const inProgram = "in the program that started it, which embeds Pawl"

// ended says how a run is continued that ended before its task was done; ""
// where it has nothing left to do.
func (n *nextStep) ended(run string, o event.Outcome) string {
	if n.steps != nil && (o.Status == event.StatusFailed || o.Status == event.StatusStopped) && n.replays == "" && !n.ofProgram {
		switch seq := n.steps.Redo(o.Step); {
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
		command += " --limit " + o.Limit + "=" + higher(n.Limits, o.Limit, o.AtLeast)
	}
	return "continue with: " + n.pawl + " " + command + ` "Go on."`
}

// takeUpCommand is the command that takes a parked run up again. Of several
// calls that wait it decides about the first: the run then parks for the next.
func takeUpCommand(run string, d event.RunParked, l budget.Limits) string {
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

// higher is a value for a limit that lets a run go on: twice what it is, and at
// least what the run asks for.
func higher(l budget.Limits, setting string, atLeast float64) string {
	s, _ := budget.Find(setting)
	is, _ := s.Value(l)
	value := max(2*is, math.Ceil(atLeast*100)/100)
	if s.Kind != budget.Money {
		value = math.Ceil(value)
	}
	return strconv.FormatFloat(value, 'f', -1, 64)
}

// notGoingOn is said of a replay that ended early: its record was with its process.
func notGoingOn(replays, pawl string) string {
	return "a replay is not resumed; start it again with: " + pawl + " runs replay " + replays + " --live-model"
}
