package view

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/flow"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

// StepState is the state of a step of a workflow.
type StepState string

// The states of a step. A waiting step has not begun; a parked one has begun and
// waits for a person.
const (
	StepWaiting   StepState = "waiting"
	StepRunning   StepState = "running"
	StepParked    StepState = "parked"
	StepCompleted           = StepState(event.StepStatusCompleted)
	StepFailed              = StepState(event.StepStatusFailed)
	StepSkipped             = StepState(event.StepStatusSkipped)
	StepCancelled           = StepState(event.StepStatusCancelled)
)

// StepLine is the summary of a step of a workflow. A loop is one step, however many
// steps its passes have.
type StepLine struct {
	Step    string    `json:"step"`
	State   StepState `json:"state"`
	Reason  string    `json:"reason,omitempty"`
	Attempt int       `json:"attempt,omitempty"`
	// Iterations is the number of ended passes of the step's loop, FailedItems the
	// number of those in which a step failed; Of is how many passes there are, or may
	// be.
	Iterations  int `json:"iterations,omitempty"`
	FailedItems int `json:"failedItems,omitempty"`
	Of          int `json:"of,omitempty"`
	Spent
	// Seconds is how long the step took, or how long it has run.
	Seconds float64 `json:"seconds,omitempty"`

	Depth   int `json:"-"`
	loop    *plan.Loop
	started time.Time
	// parked counts the children that wait for a person.
	parked int
	// redo is the event before the start of the failed part of the step, 0 if nothing
	// failed.
	redo int64
}

// Steps holds the steps of a workflow, from the events of its run. Its size is that of
// the plan: passes of loops are only counted.
type Steps struct {
	Lines []*StepLine
	byID  map[string]*StepLine
	// begun holds the event before the start of each running step; failing holds the
	// steps that failed in running passes.
	begun   map[string]int64
	failing map[string]bool
	Now     time.Time
	// Ledger is the ledger of a run that is a single refinement loop, nil for others.
	Ledger *Ledger
	// printed holds the output of the commands of running steps, and last that of the
	// step that the last event ended. Show is the command line that shows all of it.
	printed map[string]string
	last    string
	Show    string
}

// Add applies an event of the workflow's own run.
func (s *Steps) Add(e *event.Event) {
	s.Now = e.Time
	if s.Ledger != nil {
		s.Ledger.Add(e.Data)
	}
	switch d := e.Data.(type) {
	case event.RunStarted:
		s.Begin(d)
	case event.ChildStarted:
		s.start(d.Step, e.Seq)
		if d.BeginsStep() {
			s.opened(d.Step, 1, e.Time)
		}
	case event.CommandStarted:
		s.start(d.Step, e.Seq)
	case event.CommandFinished:
		if s.printed != nil && DoesStep(d.ID) {
			s.printed[d.Step] = d.Output
		}
	case event.ConditionEvaluated:
		if l := s.byID[d.Step]; l != nil && l.loop != nil && l.loop.Items != nil && strings.HasSuffix(d.ID, "/items") {
			var items []json.RawMessage
			if json.Unmarshal(d.Value, &items) == nil {
				l.Of = len(items)
			}
		}
	case event.Iteration:
		s.passed(d)
	case event.StepStarted:
		s.opened(d.Step, d.Attempt, e.Time)
	case event.StepFinished:
		s.last = s.printed[d.Step]
		delete(s.printed, d.Step)
		s.finished(d)
	case event.StepSkipped:
		if l := s.byID[d.Step]; l != nil {
			l.State, l.Reason = StepSkipped, d.Reason
		}
	}
}

// Begin reads the plan in the run's first event.
func (s *Steps) Begin(d event.RunStarted) {
	*s = Steps{
		byID: map[string]*StepLine{}, begun: map[string]int64{}, failing: map[string]bool{}, printed: map[string]string{},
		Show: s.Show,
	}
	var c flow.Config
	if d.Machine == flow.Version && json.Unmarshal(d.Config, &c) == nil {
		s.addPlan(&c.Plan, "", 0)
		if c.Plan.Refine {
			s.Ledger = &Ledger{commands: map[string][]string{}, Of: c.Plan.Steps[0].Loop.Max}
		}
	}
}

func (s *Steps) addPlan(p *plan.Plan, prefix string, depth int) {
	for i := range p.Steps {
		step := &p.Steps[i]
		l := &StepLine{Step: prefix + step.ID, State: StepWaiting, Depth: depth, loop: step.Loop}
		if step.Loop != nil && step.Loop.Items != nil {
			l.Of = len(step.Loop.Items.Static)
		}
		s.Lines = append(s.Lines, l)
		s.byID[l.Step] = l
		if step.Plan != nil {
			s.addPlan(step.Plan, l.Step+".", depth+1)
		}
	}
}

// Line returns the line of a step of the plan, nil for none.
func (s *Steps) Line(id string) *StepLine { return s.byID[id] }

// Of returns the line of a step; for a step within a loop it is the loop's.
func (s *Steps) Of(id string) *StepLine {
	for id != "" {
		if l := s.byID[id]; l != nil {
			return l
		}
		id = id[:max(strings.LastIndexAny(id, ".["), 0)]
	}
	return nil
}

func (s *Steps) start(id string, seq int64) {
	if _, again := s.begun[id]; !again && s.byID != nil {
		s.begun[id] = seq - 1
	}
}

func (s *Steps) passed(d event.Iteration) {
	pass := fmt.Sprintf("%s.%d", d.Step, d.Index)
	l := s.byID[d.Step]
	if l == nil {
		return
	}
	l.Iterations++
	if d.MaxIterations > 0 {
		l.Of = d.MaxIterations
	} else {
		pass = fmt.Sprintf("%s[%d]", d.Step, d.Index)
	}
	failed := false
	for id := range s.failing {
		if rest, within := strings.CutPrefix(id, pass); within && (rest == "" || rest[0] == '.') {
			delete(s.failing, id)
			failed = true
		}
	}
	if failed {
		l.FailedItems++
	}
}

func (s *Steps) finished(d event.StepFinished) {
	began, leaf := s.begun[d.Step]
	l := s.Of(d.Step)
	if l == nil {
		return
	}
	if d.Status == event.StepStatusFailed && leaf && (l.redo == 0 || began < l.redo) {
		l.redo = began
	}
	if d.Status != event.StepStatusFailed {
		delete(s.begun, d.Step)
	}
	if l.Step != d.Step {
		if d.Status == event.StepStatusFailed {
			s.failing[d.Step] = true
		}
		return
	}
	l.State, l.Reason = StepState(d.Status), ""
	if !l.started.IsZero() { // a step may fail before it begins
		l.Seconds = s.Now.Sub(l.started).Seconds()
	}
	if d.Error != nil {
		l.Reason = d.Error.Message
	}
}

// Redo returns the event to fork at so that a failed step runs again; 0 if that would
// change nothing.
func (s *Steps) Redo(step string) int64 {
	for _, l := range s.Lines {
		if (l.Step == step || strings.HasPrefix(l.Step, step+".")) && l.State == StepFailed && l.redo > 0 {
			return l.redo
		}
	}
	return 0
}

// opened handles the start of an attempt at a step.
func (s *Steps) opened(step string, attempt int, at time.Time) {
	delete(s.failing, step)
	if l := s.byID[step]; l != nil {
		l.State, l.Reason, l.Attempt, l.Iterations, l.FailedItems, l.redo = StepRunning, "", attempt, 0, 0, 0
		if attempt == 1 {
			l.started = at
		}
	}
}

// At returns the line at a time: a running step is parked if a child of it is.
func (l *StepLine) At(now time.Time) StepLine {
	shown := *l
	if l.State == StepRunning {
		shown.Seconds = now.Sub(l.started).Seconds()
		if l.parked > 0 {
			shown.State = StepParked
		}
	}
	return shown
}

// All returns a copy of the lines.
func (s *Steps) All() []StepLine {
	var all []StepLine
	for _, l := range s.Lines {
		all = append(all, l.At(s.Now))
	}
	return all
}

// Text returns the step in words: its state, its passes, its cost and duration.
func (l StepLine) Text() string {
	word := string(l.State)
	if l.State == StepCompleted {
		word = "done"
	}
	parts := []string{strings.Repeat("  ", l.Depth) + l.mark() + " " + l.Step, word}
	if count := l.count(); count != "" {
		parts = append(parts, count)
	}
	if l.Attempt > 1 {
		parts = append(parts, fmt.Sprintf("attempt %d", l.Attempt))
	}
	if l.Cost != nil {
		parts = append(parts, Money(l.Cost, l.Used))
	}
	if l.Seconds >= 1 {
		parts = append(parts, Lasting(float64(int(l.Seconds))))
	}
	if l.Reason != "" {
		parts = append(parts, firstLine(l.Reason, 200))
	}
	return strings.Join(parts, "  ")
}

func (l StepLine) count() string {
	if l.loop == nil || l.State == StepWaiting || l.State == StepSkipped {
		return ""
	}
	what := "iterations"
	if l.loop.Items != nil {
		what = "items"
	}
	text := fmt.Sprintf("%d/%d %s", l.Iterations, l.Of, what)
	if l.Of == 0 && l.loop.Items == nil {
		text = Plural(l.Iterations, "iteration")
	}
	if l.FailedItems > 0 {
		text += fmt.Sprintf(", %d failed", l.FailedItems)
	}
	return text
}

func (l StepLine) mark() string {
	switch l.State {
	case StepRunning:
		return "▸"
	case StepParked:
		return "?"
	case StepCompleted:
		return "✓"
	case StepFailed, StepCancelled:
		return "✗"
	case StepSkipped:
		return "-"
	}
	return "·"
}

// Tone returns the tone of the step's line.
func (l StepLine) Tone() Tone {
	return map[StepState]Tone{StepWaiting: Quiet, StepSkipped: Quiet, StepParked: Wait, StepCancelled: Wait, StepCompleted: Good, StepFailed: Bad}[l.State]
}
