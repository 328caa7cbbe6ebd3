package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/flow"
	"github.com/pawlrun/pawl/internal/rules/plan"
	"github.com/pawlrun/pawl/llm"
)

// stepState is where a step of a workflow stands.
type stepState string

// The states of a step. One that waits has not begun, one that is parked has
// begun and waits for somebody.
const (
	stepWaiting   stepState = "waiting"
	stepRunning   stepState = "running"
	stepParked    stepState = "parked"
	stepCompleted           = stepState(event.StepStatusCompleted)
	stepFailed              = stepState(event.StepStatusFailed)
	stepSkipped             = stepState(event.StepStatusSkipped)
	stepCancelled           = stepState(event.StepStatusCancelled)
)

// stepLine is a step of a workflow at a glance. A loop is one, however many steps
// its passes have.
type stepLine struct {
	Step    string    `json:"step"`
	State   stepState `json:"state"`
	Reason  string    `json:"reason,omitempty"`
	Attempt int       `json:"attempt,omitempty"`
	// Iterations are the passes of the step's loop that have ended, FailedItems those
	// of them in which a step failed; Of is how many there are, or may be.
	Iterations  int `json:"iterations,omitempty"`
	FailedItems int `json:"failedItems,omitempty"`
	Of          int `json:"of,omitempty"`
	spent
	// Seconds is how long the step took, or how long it has been going.
	Seconds float64 `json:"seconds,omitempty"`

	depth   int
	loop    *plan.Loop
	started time.Time
	// parked are its children that wait for somebody.
	parked map[string]bool
	// redo is the event before what failed of the step began, 0 where nothing did.
	redo int64
}

// steps are those of a workflow, as the events of its run tell of them. Their number
// is that of the steps in the plan: what loops do is counted.
type steps struct {
	lines []*stepLine
	byID  map[string]*stepLine
	// runs are the steps of the children.
	runs map[string]*stepLine
	// begun is the event before that which began a step under way, and failing are
	// those that failed in passes under way.
	begun   map[string]int64
	failing map[string]bool
	now     time.Time
	// ledger is that of a run which is one refinement loop, nil for others.
	ledger *ledger
	// printed is what commands printed whose steps have not ended, and show how the
	// command line is called that shows all of it.
	printed map[string]string
	show    string
}

// add takes in an event of the workflow's own run.
func (s *steps) add(e *event.Event) {
	s.now = e.Time
	if s.ledger != nil {
		s.ledger.add(e.Data)
	}
	switch d := e.Data.(type) {
	case event.RunStarted:
		s.begin(d)
	case event.RunResumed:
		for _, l := range s.lines {
			l.parked = nil
		}
	case event.ChildStarted:
		s.start(d.Step, e.Seq)
		if l := s.of(d.Step); l != nil {
			s.runs[d.Child] = l
		}
		if d.BeginsStep() {
			s.opened(d.Step, 1, e.Time)
		}
	case event.CommandStarted:
		s.start(d.Step, e.Seq)
	case event.CommandFinished:
		if s.printed != nil && doesStep(d.ID) {
			s.printed[d.Step] = d.Output
		}
	case event.ChildParked:
		s.waits(d.Child, true)
	case event.ChildWaiting:
		s.waits(d.Child, d.Waiting)
	case event.ChildFinished:
		s.waits(d.Child, false)
	case event.BudgetCommitted:
		if l := s.runs[d.Run]; l != nil && d.Usage != nil {
			l.spend(*d.Usage, llm.Cost{USD: d.USD, Priced: d.Priced})
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
		s.finished(d)
	case event.StepSkipped:
		if l := s.byID[d.Step]; l != nil {
			l.State, l.Reason = stepSkipped, d.Reason
		}
	}
}

// begin reads the plan that the run's first event pins.
func (s *steps) begin(d event.RunStarted) {
	*s = steps{
		byID: map[string]*stepLine{}, runs: map[string]*stepLine{}, begun: map[string]int64{}, failing: map[string]bool{}, printed: map[string]string{},
		show: s.show,
	}
	var c flow.Config
	if d.Machine == flow.Version && json.Unmarshal(d.Config, &c) == nil {
		s.plan(&c.Plan, "", 0)
		if c.Plan.Refine {
			s.ledger = newLedger(c.Plan.Steps[0].Loop)
		}
	}
}

func (s *steps) plan(p *plan.Plan, prefix string, depth int) {
	for i := range p.Steps {
		step := &p.Steps[i]
		l := &stepLine{Step: prefix + step.ID, State: stepWaiting, depth: depth, loop: step.Loop}
		if step.Loop != nil && step.Loop.Items != nil {
			l.Of = len(step.Loop.Items.Static)
		}
		s.lines = append(s.lines, l)
		s.byID[l.Step] = l
		if step.Plan != nil {
			s.plan(step.Plan, l.Step+".", depth+1)
		}
	}
}

// of is the line of a step, which for one within a loop is the loop's.
func (s *steps) of(id string) *stepLine {
	for id != "" {
		if l := s.byID[id]; l != nil {
			return l
		}
		id = id[:max(strings.LastIndexAny(id, ".["), 0)]
	}
	return nil
}

func (s *steps) start(id string, seq int64) {
	if _, again := s.begun[id]; !again && s.byID != nil {
		s.begun[id] = seq - 1
	}
}

func (s *steps) waits(child string, waiting bool) {
	l := s.runs[child]
	switch {
	case l == nil:
	case !waiting:
		delete(l.parked, child)
	case l.parked == nil:
		l.parked = map[string]bool{child: true}
	default:
		l.parked[child] = true
	}
}

func (s *steps) passed(d event.Iteration) {
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

func (s *steps) finished(d event.StepFinished) {
	began, leaf := s.begun[d.Step]
	l := s.of(d.Step)
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
	l.State, l.Reason = stepState(d.Status), ""
	if !l.started.IsZero() { // a step may fail before it begins
		l.Seconds = s.now.Sub(l.started).Seconds()
	}
	if d.Error != nil {
		l.Reason = d.Error.Message
	}
}

// redo is the event up to which a run is kept whose step failed and shall be done
// again; 0 where doing it again would not change anything.
func (s *steps) redo(step string) int64 {
	for _, l := range s.lines {
		if (l.Step == step || strings.HasPrefix(l.Step, step+".")) && l.State == stepFailed && l.redo > 0 {
			return l.redo
		}
	}
	return 0
}

// opened is for an attempt at a step that begins.
func (s *steps) opened(step string, attempt int, at time.Time) {
	delete(s.failing, step)
	if l := s.byID[step]; l != nil {
		l.State, l.Reason, l.Attempt, l.Iterations, l.FailedItems, l.redo = stepRunning, "", attempt, 0, 0, 0
		if attempt == 1 {
			l.started = at
		}
	}
}

// now is the line as it is shown: a step under way is parked where a child of it is,
// and has been going until now.
func (l *stepLine) at(now time.Time) stepLine {
	shown := *l
	if l.State == stepRunning {
		shown.Seconds = now.Sub(l.started).Seconds()
		if len(l.parked) > 0 {
			shown.State = stepParked
		}
	}
	return shown
}

// all are the lines as they stand.
func (s *steps) all() []stepLine {
	var all []stepLine
	for _, l := range s.lines {
		all = append(all, l.at(s.now))
	}
	return all
}

// said is the step in words: how it stands, its passes, what it cost and took.
func (l stepLine) said() string {
	word := string(l.State)
	if l.State == stepCompleted {
		word = "done"
	}
	parts := []string{strings.Repeat("  ", l.depth) + l.mark() + " " + l.Step, word}
	if count := l.count(); count != "" {
		parts = append(parts, count)
	}
	if l.Attempt > 1 {
		parts = append(parts, fmt.Sprintf("attempt %d", l.Attempt))
	}
	if l.Cost != nil {
		parts = append(parts, money(l.Cost, l.used))
	}
	if l.Seconds >= 1 {
		parts = append(parts, lasting(float64(int(l.Seconds))))
	}
	if l.Reason != "" {
		parts = append(parts, firstLine(l.Reason, 200))
	}
	return strings.Join(parts, "  ")
}

func (l stepLine) count() string {
	if l.loop == nil || l.State == stepWaiting || l.State == stepSkipped {
		return ""
	}
	what := "iterations"
	if l.loop.Items != nil {
		what = "items"
	}
	text := fmt.Sprintf("%d/%d %s", l.Iterations, l.Of, what)
	if l.Of == 0 && l.loop.Items == nil {
		text = plural(l.Iterations, "iteration")
	}
	if l.FailedItems > 0 {
		text += fmt.Sprintf(", %d failed", l.FailedItems)
	}
	return text
}

func (l stepLine) mark() string {
	switch l.State {
	case stepRunning:
		return "▸"
	case stepParked:
		return "?"
	case stepCompleted:
		return "✓"
	case stepFailed, stepCancelled:
		return "✗"
	case stepSkipped:
		return "-"
	}
	return "·"
}

func (l stepLine) style() style {
	return map[stepState]style{
		stepWaiting: faint, stepSkipped: faint, stepParked: yellow, stepCancelled: yellow, stepCompleted: green, stepFailed: red,
	}[l.State]
}

// tenth reports whether a pass is one that is told of where passes are items: of many
// only each tenth part is.
func (l *stepLine) tenth() bool {
	return l.Iterations == l.Of || l.Iterations%max(l.Of/10, 1) == 0
}

// begins is the line about an attempt at a step that begins.
func (s *steps) begins(step string, attempt int) []note {
	if l := s.of(step); l != nil && (l.Step == step || l.loop.Items == nil) {
		return []note{{plain, "▸ " + step + again(attempt)}}
	}
	return nil
}

// notes are the lines about an event of a workflow where nothing is drawn again: the
// steps, of a loop over items the failures and how far it is.
func (s *steps) notes(e event.Event) []note {
	if s.ledger != nil {
		return s.ledger.notes(e.Data)
	}
	switch d := e.Data.(type) {
	case event.ChildStarted:
		if d.BeginsStep() {
			return s.begins(d.Step, 1)
		}
	case event.StepStarted:
		return s.begins(d.Step, d.Attempt)
	case event.StepSkipped:
		if l := s.of(d.Step); l != nil && (l.Step == d.Step || l.loop.Items == nil) {
			return []note{{faint, "- " + d.Step + " skipped: " + firstLine(d.Reason, 300)}}
		}
	case event.StepFinished:
		return append(s.ended(d), s.output(e.Run, d)...)
	case event.Iteration:
		if l := s.byID[d.Step]; l != nil && (l.loop.Items == nil || l.tenth()) {
			return []note{{faint, "  " + d.Step + " " + l.count()}}
		}
	case event.Checkpoint:
		return []note{{faint, "  " + d.Step + " " + checkpointHead(d)}}
	case event.JudgeVerdict:
		text := fmt.Sprintf("  %s judged: %s", d.Step, d.Verdict)
		if d.Failed {
			text = fmt.Sprintf("  %s: the judge gave no verdict", d.Step)
		}
		return []note{{faint, strings.TrimSuffix(text+", "+firstLine(d.Reason, 200), ", ")}}
	}
	return nil
}

func again(attempt int) string {
	if attempt < 2 {
		return ""
	}
	return fmt.Sprintf("  attempt %d", attempt)
}

func (s *steps) ended(d event.StepFinished) []note {
	l := s.of(d.Step)
	switch {
	case l == nil:
		return nil
	case l.Step == d.Step:
		return []note{{l.style(), strings.TrimSpace(l.at(s.now).said())}}
	case d.Status == event.StepStatusFailed:
		why := ""
		if d.Error != nil {
			why = ": " + firstLine(d.Error.Message, 300)
		}
		return []note{{red, "✗ " + d.Step + " failed" + why}}
	case l.loop.Items == nil:
		return []note{{green, "✓ " + d.Step + " " + string(d.Status)}}
	}
	return nil
}

// doesStep reports whether a command is a step, by its id, and not what ends a loop.
func doesStep(id string) bool { return !strings.Contains(id, "/") }

// How many lines of what a command printed are shown under its step.
const (
	printedHead = 4
	printedTail = 4
)

// output is the beginning and the end of what the command of a step printed. In a
// loop it is shown for failed items only.
func (s *steps) output(run string, d event.StepFinished) []note {
	text := s.printed[d.Step]
	delete(s.printed, d.Step)
	l := s.of(d.Step)
	if l == nil || l.Step != d.Step && l.loop.Items != nil && d.Status != event.StepStatusFailed {
		return nil
	}
	lines := headAndTail(text, printedHead, printedTail)
	cut := len(lines) > 0 && len(lines) <= strings.Count(strings.Trim(text, "\r\n"), "\n")
	var notes []note
	for _, line := range lines {
		line = strings.ReplaceAll(harmless(strings.TrimRight(line, " \r")), "\t", "    ")
		short := clip(line, resultLine)
		cut = cut || short != line
		notes = append(notes, note{faint, strings.TrimRight("    "+short, " ")})
	}
	if cut && s.show != "" {
		notes = append(notes, note{faint, fmt.Sprintf("    all of it: %s runs show %s --step %s", s.show, run, d.Step)})
	}
	return notes
}

// tree are the lines of a live tree that has at most so many, with what the runs of the
// steps do now: where the steps do not
// fit, those under way and those that failed are shown, and the others counted.
func (s *steps) tree(most int, k ink, work *activity) []note {
	switch {
	case s.ledger != nil:
		return bounded(append([]note{s.ledger.live(s.lines[0].at(s.now), k)}, work.below(work.root, k, "  ", everyRun)...), most)
	case len(s.lines) == 0:
		return bounded(work.below(work.root, k, "", everyRun), most)
	}
	all, rest := s.all(), map[stepState]int{}
	if over := len(all) - max(most, 2) + 1; len(all) > most {
		all = slices.DeleteFunc(all, func(l stepLine) bool {
			drop := over > 0 && l.State != stepRunning && l.State != stepFailed && l.State != stepParked
			if drop {
				over--
				rest[l.State]++
			}
			return drop
		})
		for len(all) > max(most-1, 1) {
			rest[all[len(all)-1].State]++
			all = all[:len(all)-1]
		}
	}
	var notes []note
	more := 0
	for _, l := range all {
		text, below := l.said(), work.of(s, l.Step)
		if bar := k.part(l.Iterations, l.Of); bar != "" && l.State == stepRunning {
			text += "  " + bar
		}
		indent := strings.Repeat("  ", l.depth+1)
		var under []note
		if len(below) == 1 && below[0].step == l.Step {
			text += "  " + below[0].said(k, l.Cost == nil)
			under = work.below(below[0], k, indent, everyRun)
		} else {
			under = work.below(work.root, k, indent, func(w *working) bool { return slices.Contains(below, w) })
		}
		notes = append(notes, note{l.style(), strings.TrimRight(text, " ")})
		if room := most - len(all) - 1 - more; room > 0 && len(under) > 0 {
			under = bounded(under, room)
			more += len(under)
			notes = append(notes, under...)
		}
	}
	var counted []string
	for _, state := range []stepState{stepCompleted, stepRunning, stepParked, stepWaiting, stepFailed, stepSkipped, stepCancelled} {
		if n := rest[state]; n > 0 {
			counted = append(counted, fmt.Sprintf("%d %s", n, state))
		}
	}
	if len(counted) > 0 {
		notes = append(notes, note{faint, "  and " + strings.Join(counted, ", ")})
	}
	return notes
}

// bounded are at most so many lines, the last of which counts those left out.
func bounded(notes []note, most int) []note {
	most = max(most, 1)
	if len(notes) <= most {
		return notes
	}
	left := len(notes) - most + 1
	return append(notes[:most-1:most-1], note{faint, fmt.Sprintf("  and %d more at work", left)})
}
