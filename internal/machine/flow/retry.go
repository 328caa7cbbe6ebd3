package flow

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
)

// Errors of [Retry.Begin].
var (
	// ErrNothingFailed is returned for a run without a failed or cancelled step.
	ErrNothingFailed = errors.New("flow: no step of the run failed or was cancelled")
	// ErrNoStep is returned for a step that has not begun.
	ErrNoStep = errors.New("flow: the run has begun no such step")
)

// Retry determines which results a second try at a workflow keeps. Build it by adding
// the events of an ended run, in order.
type Retry struct {
	steps map[string]*retried
	// pass is the index of the last pass of each loop that has no items, by the loop's
	// step.
	pass      map[string]int
	late      bool
	again     []string
	started   map[string]event.ChildStarted
	finished  map[string]event.ChildFinished
	commands  map[string]command
	values    map[string]event.ConditionEvaluated
	decisions map[string]event.ReviewResolved
	waits     map[string]event.WaitStarted
	// iterations contains the iterations of observed loops, by the loop's step and the
	// index.
	iterations map[string]map[int]event.Iteration
}

// retried is the state of a step at the end of the run. seq is the number of its first
// event.
type retried struct {
	seq   int64
	open  bool
	begun bool
	end   event.StepStatus
	class string
}

type command struct {
	started  event.CommandStarted
	finished *event.CommandFinished
}

// NewRetry returns a retry without events.
func NewRetry() *Retry {
	return &Retry{
		steps: map[string]*retried{}, pass: map[string]int{}, started: map[string]event.ChildStarted{}, finished: map[string]event.ChildFinished{},
		commands: map[string]command{}, values: map[string]event.ConditionEvaluated{}, decisions: map[string]event.ReviewResolved{}, waits: map[string]event.WaitStarted{},
		iterations: map[string]map[int]event.Iteration{},
	}
}

// Add adds an event of the run. It does not retain e.
func (r *Retry) Add(e *event.Event) {
	s := r.of(e)
	switch d := e.Data.(type) {
	case event.ChildStarted:
		r.started[d.Action()] = d
		if d.BeginsStep() {
			s.open, s.begun = true, true
		}
	case event.StepStarted:
		s.open, s.begun = true, true
	case event.StepFinished:
		s.open, s.end, s.class = false, d.Status, ""
		if d.Error != nil {
			s.class = d.Error.Class
		}
	case event.StepSkipped:
		s.open, s.end, s.class = false, event.StepStatusSkipped, ""
	case event.ChildFinished:
		r.finished[d.Child] = d
	case event.CommandStarted:
		r.commands[d.ID] = command{started: d}
	case event.CommandFinished:
		r.commands[d.ID] = command{r.commands[d.ID].started, &d}
	case event.ConditionEvaluated:
		r.values[d.ID] = d
	case event.ReviewResolved:
		r.decisions[d.LoopID] = d
	case event.WaitStarted:
		r.waits[d.ID] = d
	case event.Iteration:
		if r.iterations[d.Step] == nil {
			r.iterations[d.Step] = map[int]event.Iteration{}
		}
		r.iterations[d.Step][d.Index], r.pass[d.Step] = d, max(r.pass[d.Step], d.Index)
	case event.RunTerminatedBy:
		r.late = d.Limit == planTimeout
	}
}

// of returns the step that an event belongs to, and creates it at its first event.
func (r *Retry) of(e *event.Event) *retried {
	s := r.steps[e.Step]
	if s == nil {
		s = &retried{seq: e.Seq}
		if e.Step != "" {
			r.steps[e.Step] = s
		}
	}
	return s
}

// Steps returns the ids of the steps that have begun.
func (r *Retry) Steps() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(r.steps)), func(id string) bool { return !r.steps[id].begun })
}

// Begin returns the last event that both tries share and the steps to repeat: those that
// failed, or the named one.
func (r *Retry) Begin(step string) (seq int64, steps []string, err error) {
	r.findPasses()
	if step != "" {
		if s := r.steps[step]; s == nil || !s.begun {
			return 0, nil, ErrNoStep
		}
		r.again = []string{step}
		return max(r.outermost(step).seq-1, 1), r.again, nil
	}
	ids := slices.Sorted(maps.Keys(r.steps))
	failed := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !r.failed(id) })
	for _, id := range failed {
		around := slices.ContainsFunc(failed, func(other string) bool { return inside(other, id) })
		if s := r.steps[id]; !around && s.class != classDependency {
			r.again = append(r.again, id)
			if s.begun || s.end == event.StepStatusFailed {
				steps = append(steps, id)
			}
		}
	}
	if len(r.again) == 0 {
		return 0, nil, ErrNothingFailed
	}
	if r.late { // the plan's time starts over
		return 1, steps, nil
	}
	for _, id := range r.again {
		// The enclosing step starts over, too, with its time; work completed in it is
		// kept.
		if first := r.outermost(id).seq; seq == 0 || first < seq {
			seq = first
		}
	}
	return max(seq-1, 1), steps, nil
}

// findPasses finds the last pass of each loop, whether or not it ended.
func (r *Retry) findPasses() {
	for id := range r.steps {
		for of, index := range passesOf(id) {
			if last, loops := r.pass[of]; loops {
				r.pass[of] = max(last, index)
			}
		}
	}
}

// passesOf returns the enclosing steps whose ids are followed by a number, with that
// number.
func passesOf(id string) map[string]int {
	passes := map[string]int{}
	for i, c := range id {
		if c != '.' {
			continue
		}
		word, _, _ := strings.Cut(id[i+1:], ".")
		word, _, _ = strings.Cut(word, "[")
		if n, err := strconv.Atoi(word); err == nil {
			passes[id[:i]] = n
		}
	}
	return passes
}

// failed reports whether a step contributed to the failure of the run: the step failed,
// its loop did not continue with another pass, and no enclosing step completed.
func (r *Retry) failed(id string) bool {
	bad := func(s *retried) bool {
		return s.open || s.end == event.StepStatusFailed || s.end == event.StepStatusCancelled
	}
	if !bad(r.steps[id]) {
		return false
	}
	for of, index := range passesOf(id) {
		if last, loops := r.pass[of]; loops && index < last {
			return false
		}
	}
	for around := range r.around(id) {
		if !bad(around) {
			return false
		}
	}
	return true
}

// around yields the steps that enclose a step, outermost first.
func (r *Retry) around(id string) func(yield func(*retried) bool) {
	return func(yield func(*retried) bool) {
		for i, c := range id {
			if c != '.' && c != '[' {
				continue
			}
			if s := r.steps[id[:i]]; s != nil && !yield(s) {
				return
			}
		}
	}
}

func (r *Retry) outermost(id string) *retried {
	for s := range r.around(id) {
		return s
	}
	return r.steps[id]
}

// inside reports whether a step is inside another one.
func inside(id, of string) bool {
	return strings.HasPrefix(id, of+".") || strings.HasPrefix(id, of+"[")
}

// repeats reports whether a step, given by its id or its name, is repeated.
func (r *Retry) repeats(id string) bool {
	return slices.ContainsFunc(r.again, func(again string) bool {
		return id == again || inside(id, again) || strings.HasPrefix(id, again+"~")
	})
}

// Kept returns the events of the first try for an action, or nil if there are none or
// the step is repeated.
func (r *Retry) Kept(a machine.Action) []event.Data {
	switch a := a.(type) {
	case machine.Record:
		return kept(a.Data)
	case machine.StartChild:
		return r.child(&a)
	case machine.RunCommand:
		return r.command(&a)
	case machine.Evaluate:
		return r.value(&a)
	case machine.Observe:
		return r.iteration(&a.Iteration)
	case machine.Wait:
		return r.delay(&a)
	case machine.Ask:
		return r.answer(&a)
	}
	return nil
}

func (r *Retry) child(a *machine.StartChild) []event.Data {
	started, known := r.started[a.ID]
	finished, ended := r.finished[started.Child]
	if !known || !ended || r.repeats(a.Step) {
		return nil
	}
	finished.Func = started.Kind == KindFunc
	return []event.Data{started, finished}
}

func (r *Retry) command(a *machine.RunCommand) []event.Data {
	c := r.commands[a.ID]
	switch {
	case c.finished == nil || r.repeats(a.Step):
		return nil
	case c.started.ID == "":
		return []event.Data{*c.finished}
	}
	return []event.Data{c.started, *c.finished}
}

func (r *Retry) value(a *machine.Evaluate) []event.Data {
	if v, known := r.values[a.ID]; known && !r.repeats(a.Step) {
		return []event.Data{v}
	}
	return nil
}

func (r *Retry) iteration(i *event.Iteration) []event.Data {
	before, known := r.iterations[i.Step][i.Index]
	if !known || r.repeats(i.Step) || r.repeatsPass(fmt.Sprint(i.Step, ".", i.Index)) {
		return nil
	}
	return []event.Data{before}
}

// repeatsPass reports whether a step in a pass is repeated.
func (r *Retry) repeatsPass(id string) bool {
	return slices.ContainsFunc(r.again, func(again string) bool { return again == id || inside(again, id) })
}

func (r *Retry) delay(a *machine.Wait) []event.Data {
	w, known := r.waits[a.ID]
	if of, _, delay := strings.Cut(a.ID, "/delay/"); !known || !delay || r.repeats(of) {
		return nil
	}
	return []event.Data{w, event.WaitFinished{ID: w.ID}}
}

func (r *Retry) answer(a *machine.Ask) []event.Data {
	for _, q := range a.Questions {
		if d, known := r.decisions[q.ID]; known && d.Digest == q.Digest && !r.repeats(d.Step) {
			return []event.Data{d}
		}
	}
	return nil
}

// kept returns a decision of the machine unless it parks or ends the run.
func kept(d event.Data) []event.Data {
	switch d.(type) {
	case event.RunParked, event.RunTerminatedBy, event.RunCompleted:
		return nil
	}
	return []event.Data{d}
}
