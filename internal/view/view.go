// Package view folds the events of a run to what people read about it: entries, such as
// a cycle, a call or a step, and texts about each event. The command line and the page
// both use it, so that they show the same.
//
// A view keeps no text of models or tools: the body of an entry is made on demand, from
// the events that [View.Events] names. It does no I/O, and folding events one by one
// gives the same view as folding all at once.
package view

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// Kind is the kind of an entry.
type Kind string

// The kinds of entries.
const (
	Cycle     Kind = "cycle"
	Call      Kind = "call"
	Child     Kind = "child"
	Iteration Kind = "iteration"
	Step      Kind = "step"
	Question  Kind = "question"
	Note      Kind = "note"
	// Run is the kind of the run itself, which is not among its entries.
	Run Kind = "run"
)

// State is the state of an entry; a note has none.
type State string

// The states of entries.
const (
	Running   State = "running"
	Waiting   State = "waiting"
	Done      State = "done"
	Failed    State = "failed"
	Denied    State = "denied"
	Rejected  State = "rejected"
	Skip      State = "skipped"
	Cancelled State = "cancelled"
)

// Entry is the summary of one thing that a run did.
type Entry struct {
	// ID is the number of the event that created the entry; a second entry of the event
	// has the suffix ".2".
	ID     string `json:"id"`
	Kind   Kind   `json:"kind"`
	Parent string `json:"parent,omitempty"`
	// Below counts the child entries, and Failures those of them that failed.
	Below    int    `json:"below,omitempty"`
	Failures int    `json:"failures,omitempty"`
	Name     string `json:"name,omitempty"`
	State    State  `json:"state,omitempty"`
	// Line is the first line of the entry's text.
	Line string `json:"line,omitempty"`
	// Run is the run that the entry represents, and Ref the id of its call, question or
	// step.
	Run string `json:"run,omitempty"`
	Ref string `json:"ref,omitempty"`
	// Start is when the entry began, Seconds how long it took, 0 until it has ended.
	Start   time.Time `json:"start"`
	Seconds float64   `json:"seconds,omitempty"`
	// Usage and Cost are the totals of the model calls of the entry and its
	// descendants.
	Usage llm.Usage `json:"usage,omitzero"`
	Cost  *llm.Cost `json:"cost,omitempty"`
	// Seq is the number of the last event that changed it.
	Seq int64 `json:"seq"`
}

// open reports whether the entry has not ended.
func (n *Entry) open() bool { return n.State == Running || n.State == Waiting }

// Update is what one event adds to a view.
type Update struct {
	// Entry is the entry that the event belongs to, nil if the event shows nothing, and
	// Parts its text.
	Entry *Entry
	Parts []Part
	// Changed are the entries that the event changed.
	Changed []*Entry
}

// View is a fold of the events of one run. The zero value is ready to use.
type View struct {
	// Refused names the settings that this machine cannot enforce, nil for none. Nested
	// reports that the run is shown below its parent.
	Refused func(tier string) []string
	Nested  bool
	// Texts makes the view keep the answers of children, for a reader that shows the
	// run once.
	Texts bool
	// Steps holds the steps of a workflow.
	Steps Steps
	Account
	whole

	entries []*Entry
	byID    map[string]*Entry
	below   map[string][]*Entry
	events  map[string][]int64
	// kept holds texts about steps whose wording depends on the state at that event.
	kept map[int64][]Part
	index
	cycle *Entry
	// position is the current cycle and the number of possible ones.
	position event.CycleStart
	// waiting holds the questions for which the cycle waits, and questions all open
	// ones.
	waiting   map[string]bool
	questions Questions
	// last is the last text of the model.
	last string
	// changes holds all changes of entries, in the order of the events.
	changes []change
}

// Entries returns all entries in order of creation. The caller must not change them.
func (v *View) Entries() []*Entry { return v.entries }

// Below returns the child entries of an entry in order of creation; for "" those
// without a parent.
func (v *View) Below(parent string) []*Entry { return v.below[parent] }

// Since returns the entries that events after seq changed, in the order of their last
// change.
func (v *View) Since(seq int64) []*Entry {
	i, _ := slices.BinarySearchFunc(v.changes, seq+1, func(c change, seq int64) int { return cmp.Compare(c.seq, seq) })
	var changed []*Entry
	for _, c := range v.changes[i:] {
		if c.entry.Seq == c.seq { // a later event has not changed it again
			changed = append(changed, c.entry)
		}
	}
	return changed
}

// index holds entries by the ids of their calls, questions, runs and steps; a pass has
// the id of its step with the pass appended.
type index struct {
	calls, asked, steps map[string]*Entry
	runs                map[string]*ChildRun
	// open holds the calls without a result.
	open map[string]event.ToolCall
}

// Position returns the current cycle, the zero value before the first.
func (v *View) Position() event.CycleStart { return v.position }

// Going returns a call without a result, and reports whether a person was asked about
// it.
func (v *View) Going(id string) (call event.ToolCall, asked, is bool) {
	call, is = v.open[id]
	return call, v.asked[id] != nil, is
}

// change records that an event changed an entry.
type change struct {
	seq   int64
	entry *Entry
}

// Entry returns an entry by its id, nil for none.
func (v *View) Entry(id string) *Entry { return v.byID[id] }

// Events returns the numbers of the events from which the body of an entry is made.
func (v *View) Events(id string) []int64 { return v.events[id] }

// Told returns the entries, in order, that one of these events told something of.
func (v *View) Told(events map[int64]bool) (entries []*Entry) {
	for _, n := range v.entries {
		if slices.ContainsFunc(v.events[n.ID], func(seq int64) bool { return events[seq] }) {
			entries = append(entries, n)
		}
	}
	return entries
}

// Failed returns the entries that failed, in order; one that failed because of entries
// below it is left out.
func (v *View) Failed() []*Entry {
	return v.that(func(n *Entry) bool {
		return n.Kind != Note && n.Kind != Question && n.Failures == 0 && (n.State == Failed || n.State == Denied || n.State == Rejected)
	})
}

// QuestionEntries returns the entries of questions to people, in order.
func (v *View) QuestionEntries() []*Entry {
	return v.that(func(n *Entry) bool { return n.Kind == Question })
}

func (v *View) that(is func(*Entry) bool) (entries []*Entry) {
	for _, n := range v.entries {
		if is(n) {
			entries = append(entries, n)
		}
	}
	return entries
}

// Add folds the run's next event. Live events change nothing.
func (v *View) Add(e *event.Event) Update {
	v.prepare()
	before := len(v.changes)
	v.Steps.Add(e)
	v.Account.add(e.Data)
	at := v.entryFor(e)
	v.itself(e)
	steps := v.Steps.Progress(e)
	if len(steps) > 0 {
		v.kept[e.Seq] = steps
	}
	parts := append(append(Skipped(e), steps...), v.tell(e)...)
	if d, ok := e.Data.(event.ModelResponse); ok && d.Purpose == "" {
		v.last = llm.Parts(d.Parts).Text()
	}
	if at == nil && len(parts) > 0 {
		at = v.note(e, parts)
	}
	if at != nil {
		v.events[at.ID] = append(v.events[at.ID], e.Seq)
		v.touch(at, e)
	}
	if _, ended := e.Data.(event.RunCompleted); ended {
		v.close(e)
	}
	update := Update{Entry: at, Parts: parts}
	for _, c := range v.changes[before:] {
		update.Changed = append(update.Changed, c.entry)
	}
	return update
}

// prepare makes the maps of a view without events.
func (v *View) prepare() {
	if v.byID == nil {
		v.byID, v.below, v.events, v.kept = map[string]*Entry{}, map[string][]*Entry{}, map[string][]int64{}, map[int64][]Part{}
		v.index = index{map[string]*Entry{}, map[string]*Entry{}, map[string]*Entry{}, map[string]*ChildRun{}, map[string]event.ToolCall{}}
		v.ofStep = map[string]*ChildRun{}
		v.waiting = map[string]bool{}
	}
}

// begin adds an entry.
func (v *View) begin(e *event.Event, kind Kind, above *Entry, name string) *Entry {
	id := strconv.FormatInt(e.Seq, 10)
	for n := 2; v.byID[id] != nil; n++ {
		id = fmt.Sprintf("%d.%d", e.Seq, n)
	}
	entry := &Entry{ID: id, Kind: kind, Name: name, Start: e.Time}
	if kind != Note {
		entry.State = Running
	}
	if above != nil {
		entry.Parent = above.ID
		above.Below++
		v.touch(above, e)
	}
	v.byID[id] = entry
	v.entries = append(v.entries, entry)
	v.below[entry.Parent] = append(v.below[entry.Parent], entry)
	v.touch(entry, e)
	return entry
}

// touch records that an event changed an entry.
func (v *View) touch(n *Entry, e *event.Event) {
	if n.Seq != e.Seq {
		n.Seq = e.Seq
		v.changes = append(v.changes, change{e.Seq, n})
	}
}

// end closes an entry, and counts a failure in its parent.
func (v *View) end(n *Entry, e *event.Event, state State) {
	if n == nil || !n.open() {
		return
	}
	n.State, n.Seconds = state, e.Time.Sub(n.Start).Seconds()
	v.touch(n, e)
	if above := v.byID[n.Parent]; above != nil && (state == Failed || state == Denied || state == Rejected) {
		above.Failures++
		v.touch(above, e)
	}
}

// again reopens an entry for another attempt.
func (v *View) again(n *Entry, e *event.Event) {
	if above := v.byID[n.Parent]; above != nil && n.State == Failed {
		above.Failures--
		v.touch(above, e)
	}
	n.State, n.Line, n.Seconds = Running, "", 0
}

// spend adds the cost of a model call to an entry, its ancestors and the run.
func (v *View) spend(n *Entry, e *event.Event, u llm.Usage, c llm.Cost) {
	v.run.spend(u, c)
	for ; n != nil; n = v.byID[n.Parent] {
		n.spend(u, c)
		v.touch(n, e)
	}
}

// close ends all open entries when the run ends.
func (v *View) close(e *event.Event) {
	for _, n := range v.entries {
		if n.open() {
			v.end(n, e, Cancelled)
		}
	}
}

// note adds an entry for an event that no other entry shows.
func (v *View) note(e *event.Event, parts []Part) *Entry {
	n, headed := v.begin(e, Note, v.above(e), ""), false
	for _, p := range parts {
		name := strings.TrimSuffix(strings.TrimSpace(p.Line), ":")
		switch {
		case p.Tone == Bad:
			n.State = Failed
		case n.Line == "" && p.Text != "":
			n.Line = firstLine(p.Text, lineWidth)
		}
		if name != "" && (n.Name == "" || headed && p.Form == "") { // a line says more than a heading
			n.Name, headed = name, p.Form != ""
		}
	}
	return n
}

// lineWidth is the maximum number of columns of a first line.
const lineWidth = 160

// above returns the entry that is the parent of a note about an event, nil for none.
func (v *View) above(e *event.Event) *Entry {
	switch e.Data.(type) {
	case event.RunStarted, event.RunParked, event.RunResumed, event.RunTerminatedBy, event.RunCompleted, event.InputReceived, event.BudgetRaised, event.CancelRequested:
		return nil
	}
	if d, ok := e.Data.(event.Stepped); ok && d.OfStep() != "" {
		return v.at(d.OfStep())
	}
	if v.cycle != nil && e.Cycle > 0 && v.cycle.open() {
		return v.cycle
	}
	return nil
}

// at returns the entry of a step, for a loop that of its last pass, or else the nearest
// ancestor's.
func (v *View) at(step string) *Entry {
	for step != "" {
		if n := v.steps[step+passes]; n != nil {
			return n
		}
		if n := v.steps[step]; n != nil {
			return n
		}
		step = above(step)
	}
	return nil
}

// passes precedes the number of a pass in the id of a step.
const passes = "/pass"

// above returns the step or the pass that contains a step or a pass, "" for none.
func above(step string) string { return step[:max(strings.LastIndexAny(step, ".["), 0)] }
