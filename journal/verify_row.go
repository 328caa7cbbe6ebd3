package journal

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
)

// account computes a run's row from its events. The lease is in no event, and the times
// are not checked: in a row of an older version they are those of the commit, whose
// clock may have been set back, and which may have come much later, after a suspend or
// with only commands.
type account struct {
	parent, root, kind, name string
	depth                    int
	cycles                   int
	// untouched reports that nothing has happened since the run was forked.
	untouched bool
	parked    *event.RunParked
	// unanswered holds the questions with which the run parked and that nothing has
	// answered since.
	unanswered []string
	// asking holds the open questions by id, empty ones for questions of children;
	// retrying reports that an attempt of the cycle failed, so that the run may wait
	// for another.
	asking   map[string]event.Question
	retrying bool
	// asked holds the questions by the numbers of the events that ask them, and children
	// the children without a result.
	asked    map[int64]Wait
	children map[string]bool
	// waits counts the waits that have not ended.
	waits   int
	outcome *event.Outcome
}

// add applies the next event; own reports that the run itself wrote it.
func (a *account) add(e *event.Event, own bool) {
	if own {
		a.parent = e.Parent
	}
	a.untouched = false
	switch d := e.Data.(type) {
	case event.RunStarted:
		a.kind, a.name = d.Kind, d.Name
		if own {
			a.root, a.depth = d.Root, d.Depth
		}
	case event.RunForked:
		a.untouched, a.parked, a.asking, a.waits, a.children = true, nil, nil, 0, nil
	case event.RunParked:
		a.parked, a.unanswered = &d, slices.Clone(d.CallIDs)
	case event.RunResumed, event.CancelRequested:
		a.parked = nil
	case event.CycleStart:
		a.cycles, a.retrying, a.asking = d.Cycle, false, nil
	case event.ModelRetrying, event.ToolAttemptFailed, event.ToolTask:
		a.retrying = true
	case event.WaitStarted:
		a.waits++
	case event.WaitFinished:
		a.waits--
	case event.Asking:
		q := d.Question()
		a.ask(q)
		if a.asked == nil {
			a.asked = map[int64]Wait{}
		}
		a.asked[e.Seq] = Wait{ID: q.ID, Kind: q.Kind, Seq: e.Seq, Digest: q.Digest, ExpiresAt: q.ExpiresAt, Message: q.Message}
	case event.Resolving:
		r := d.Resolution()
		if q := a.asking[r.ID]; q.Counts(r) {
			delete(a.asking, r.ID)
		}
		a.answered(r.ID)
	case event.PermissionAdded: // it may answer others
		a.unanswered = nil
	case event.InputReceived:
		a.unanswered = slices.DeleteFunc(a.unanswered, func(id string) bool { return a.asking[id].Message })
		maps.DeleteFunc(a.asking, func(_ string, q event.Question) bool { return q.Message })
	case event.ChildStarted:
		if a.children == nil {
			a.children = map[string]bool{}
		}
		a.children[d.Child] = true
	case event.ChildWaiting:
		delete(a.asking, d.Child)
		if d.Waiting {
			a.ask(event.Question{ID: d.Child})
		}
	case event.ChildParked:
		delete(a.asking, d.Child)
	case event.ChildFinished:
		delete(a.asking, d.Child)
		delete(a.children, d.Child)
	case event.ToolResult:
		delete(a.asking, d.CallID)
		a.answered(d.CallID)
	case event.RunCompleted:
		a.outcome, a.cycles = &d.Outcome, d.Outcome.Cycles
	}
}

// answered records that a question needs no decision any more.
func (a *account) answered(id string) {
	a.unanswered = slices.DeleteFunc(a.unanswered, func(open string) bool { return open == id })
}

// ask records a question.
func (a *account) ask(q event.Question) {
	if a.asking == nil {
		a.asking = map[string]event.Question{}
	}
	a.asking[q.ID] = q
}

// fault describes an error in a row; the zero value is none.
type fault struct{ what, want, got string }

// check compares a row with the events up to its last one.
func (a *account) check(row Run) fault {
	row = row.Placed()
	switch {
	case row.Kind != a.kind || row.Name != a.name:
		return fault{"it names another agent than the run's first event", a.kind + " " + a.name, row.Kind + " " + row.Name}
	case row.Parent != a.parent:
		return fault{"it names another run that started this one than the run's events", a.parent, row.Parent}
	case row.Root != a.placed(row).Root || row.Depth != a.placed(row).Depth:
		return fault{"it stands elsewhere in a tree than the run's first event says", a.placed(row).Root, row.Root}
	case row.Cycles != a.cycles:
		return fault{"it counts other cycles than the run's events", num(int64(a.cycles)), num(int64(row.Cycles))}
	}
	if can, is := a.rowStates(), (rowState{row.State, row.Detail}); !slices.Contains(can, is) && (a.outcome != nil || !row.WaitsForWorker()) {
		return fault{"the run's state is none that its events lead to", inWords(can), is.String()}
	}
	if f := a.checkWaits(row.Waits); f != (fault{}) {
		return f
	}
	return a.checkOutcome(row.Outcome)
}

// checkWaits compares what the run waits for, nil for unknown. Events alone show which
// questions were asked, but which of them are open only while the run is parked.
func (a *account) checkWaits(w *Waits) fault {
	if w == nil {
		return fault{}
	}
	for _, q := range w.Questions {
		asked := a.asked[q.Seq]
		if got, want := toJSON(q), toJSON(asked); got != want {
			return fault{"it waits for a question that the event does not ask", want, got}
		}
	}
	if a.outcome != nil {
		if len(w.Questions) > 0 {
			return fault{"it waits for a question, and the run has ended", "", w.Questions[0].ID}
		}
		return fault{}
	}
	if a.parked == nil {
		return fault{}
	}
	if got, want := toJSON(w.Parked), toJSON(a.parked); got != want {
		return fault{"it is parked for another reason than the run's events say", want, got}
	}
	for _, id := range a.unanswered {
		if !slices.ContainsFunc(w.Questions, func(q Wait) bool { return q.ID == id }) {
			return fault{"a question with which it parked is missing", id, toJSON(w.Questions)}
		}
	}
	if want := slices.Sorted(maps.Keys(a.children)); !slices.Equal(w.Children, want) {
		return fault{"it waits for other children than the run's events", strings.Join(want, " "), strings.Join(w.Children, " ")}
	}
	return fault{}
}

// toJSON returns a value as its row stores it.
func toJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// placed sets the place of the run in its tree.
func (a *account) placed(row Run) Run {
	return Run{ID: row.ID, Parent: a.parent, Root: a.root, Depth: a.depth}.Placed()
}

// rowState is a state with its detail.
type rowState struct {
	state  State
	detail string
}

// String returns the state as lists show it.
func (s rowState) String() string {
	if s.detail == "" {
		return string(s.state)
	}
	return string(s.state) + " (" + s.detail + ")"
}

// rowStates returns the states that a row may have after the run's events. The events do
// not show whether a running run works or waits, but they show what it could wait for.
func (a *account) rowStates() []rowState {
	switch {
	case a.outcome != nil:
		return []rowState{{Ended, string(a.outcome.Reason)}}
	case a.parked != nil && a.parked.Reason == event.ParkPaused:
		return []rowState{{Paused, string(a.parked.Reason)}}
	case a.parked != nil:
		return []rowState{{Parked, string(a.parked.Reason)}}
	}
	all := []rowState{{Running, ""}}
	if a.untouched {
		all = append(all, rowState{Queued, ""})
	}
	if a.retrying {
		all = append(all, rowState{Waiting, WaitRetry})
	}
	if a.waits > 0 {
		all = append(all, rowState{Waiting, WaitTime})
	}
	if len(a.asking) > 0 {
		all = append(all, rowState{Waiting, string(event.ParkApproval)})
	}
	return all
}

func inWords(all []rowState) string {
	words := make([]string, len(all))
	for i, s := range all {
		words[i] = s.String()
	}
	return strings.Join(words, " or ")
}

// checkOutcome compares the outcome in the row with the run's last event.
func (a *account) checkOutcome(stored json.RawMessage) fault {
	want := ""
	if a.outcome != nil {
		text, err := json.Marshal(a.outcome)
		if err != nil {
			return fault{"the outcome of the run's last event cannot be written: " + err.Error(), "", ""}
		}
		want = string(text)
	}
	if got, err := canonical(stored); err != nil {
		return fault{"the run's outcome cannot be read: " + err.Error(), want, ""}
	} else if got != want {
		return fault{"the run's outcome is not that of its last event", want, string(stored)}
	}
	return fault{}
}

// canonical returns a stored outcome as this version encodes it, "" for none.
func canonical(stored json.RawMessage) (string, error) {
	if len(stored) == 0 {
		return "", nil
	}
	var o event.Outcome
	if err := json.Unmarshal(stored, &o); err != nil {
		return "", err
	}
	text, err := json.Marshal(o)
	return string(text), err
}
