package view

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlrun/pawl/event"
)

// Lane is what a bar of a timeline is about.
type Lane string

// The lanes. Person is a wait for a person, Pause a wait for a time.
const (
	ModelLane  Lane = "model"
	ToolLane   Lane = "tool"
	ChildLane  Lane = "child"
	PersonLane Lane = "person"
	PauseLane  Lane = "pause"
)

// Bar is a span of time in which a run did, or waited for, one thing.
type Bar struct {
	// Seq is the number of the event that began it, and Entry the entry that it belongs
	// to.
	Seq   int64  `json:"seq"`
	Entry string `json:"entry,omitempty"`
	Lane  Lane   `json:"lane"`
	Name  string `json:"name"`
	Cycle int    `json:"cycle,omitempty"`
	// Attempt counts from 1 where there was more than one, or one that failed.
	Attempt int       `json:"attempt,omitempty"`
	Run     string    `json:"run,omitempty"`
	Start   time.Time `json:"start"`
	// End is nil while it goes on.
	End    *time.Time `json:"end,omitempty"`
	Failed bool       `json:"failed,omitempty"`
	// Critical reports that the run would have ended sooner without the bar.
	Critical bool `json:"critical,omitempty"`
}

// Timeline is a fold of the events of one run to bars, in the order of their starts.
// The zero value is ready to use.
type Timeline struct {
	Bars []Bar
	// open holds the places of the bars that go on, by what ends them.
	open map[string]int
	// calls and cycle are the entries of the calls and of the current cycle.
	calls map[string]Bar
	cycle string
	last  time.Time
}

// TimelineTypes returns the types of the events that a timeline reads.
func TimelineTypes() []event.Type {
	var types []event.Type
	for _, d := range event.All() {
		_, asks := d.(event.Asking)
		_, resolves := d.(event.Resolving)
		switch d.(type) {
		case event.CycleStart, event.ModelRequested, event.ModelResponse, event.ModelAttemptFailed, event.ToolCall, event.ToolStarted, event.ToolAttemptFailed,
			event.ToolResult, event.ChildStarted, event.ChildParked, event.ChildWaiting, event.ChildFinished, event.WaitStarted, event.WaitFinished,
			event.CommandStarted, event.CommandFinished, event.RunParked, event.RunResumed, event.RunCompleted:
			types = append(types, d.EventType())
		default:
			if asks || resolves {
				types = append(types, d.EventType())
			}
		}
	}
	return types
}

// Add folds the run's next event.
func (t *Timeline) Add(e *event.Event) {
	if t.open == nil {
		t.open, t.calls = map[string]int{}, map[string]Bar{}
	}
	t.last = e.Time
	if t.asked(e) {
		return
	}
	switch d := e.Data.(type) {
	case event.CycleStart:
		t.cycle = strconv.FormatInt(e.Seq, 10)
	case event.ModelRequested:
		t.end("model", e, false)
		t.begin("model", e, Bar{Entry: t.cycle, Lane: ModelLane, Name: d.Model, Attempt: d.Attempt})
	case event.ModelResponse:
		t.end("model", e, false)
	case event.ModelAttemptFailed:
		t.end("model", e, true)
	case event.ToolCall:
		t.calls[d.CallID] = Bar{Entry: strconv.FormatInt(e.Seq, 10), Lane: ToolLane, Name: firstLine(Label(d), 100)}
	case event.ToolStarted:
		b := t.calls[d.CallID]
		b.Attempt = d.Attempt
		t.begin("call "+d.CallID, e, b)
	case event.ToolAttemptFailed:
		t.end("call "+d.CallID, e, true)
	case event.ToolResult:
		t.end("call "+d.CallID, e, d.IsError)
	case event.CommandStarted:
		t.begin("command "+d.ID, e, Bar{Lane: ToolLane, Name: firstLine(strings.Join(d.Argv, " "), 100)})
	case event.CommandFinished:
		t.end("command "+d.ID, e, d.ExitCode == nil || *d.ExitCode != 0)
	case event.WaitStarted:
		t.begin("wait "+d.ID, e, Bar{Lane: PauseLane, Name: d.ID})
	case event.WaitFinished:
		t.end("wait "+d.ID, e, false)
	case event.RunCompleted:
		for _, what := range slices.Sorted(maps.Keys(t.open)) {
			t.end(what, e, false)
		}
	default:
		t.child(e)
	}
}

// child is [Timeline.Add] for the events about child runs, and for those about the run
// as a whole.
func (t *Timeline) child(e *event.Event) {
	switch d := e.Data.(type) {
	case event.ChildStarted:
		t.begin("child "+d.Child, e, Bar{Entry: strconv.FormatInt(e.Seq, 10), Lane: ChildLane, Name: cmp.Or(d.Step, d.Name, d.Kind), Run: d.Child})
	case event.ChildParked:
		t.begin("asks "+d.Child, e, Bar{Lane: PersonLane, Name: "run " + d.Child, Run: d.Child})
	case event.ChildWaiting:
		if d.Waiting {
			t.begin("asks "+d.Child, e, Bar{Lane: PersonLane, Name: "run " + d.Child, Run: d.Child})
		} else {
			t.end("asks "+d.Child, e, false)
		}
	case event.ChildFinished:
		t.end("asks "+d.Child, e, false)
		t.end("child "+d.Child, e, d.Outcome.Status == event.StatusFailed)
	case event.RunParked:
		if len(t.open) == 0 || d.Limit != "" {
			t.begin("parked", e, Bar{Lane: PersonLane, Name: cmp.Or(d.Limit, d.ParentLimit, string(d.Reason))})
		}
	case event.RunResumed:
		t.end("parked", e, false)
	}
}

// asked handles the events about questions to people, and reports whether e is one.
func (t *Timeline) asked(e *event.Event) bool {
	switch d := e.Data.(type) {
	case event.Asking:
		q := d.Question()
		t.begin("question "+q.ID, e, Bar{Entry: strconv.FormatInt(e.Seq, 10), Lane: PersonLane, Name: cmp.Or(q.Subject, string(q.Kind))})
	case event.Resolving:
		t.end("question "+d.Resolution().ID, e, false)
	default:
		return false
	}
	return true
}

func (t *Timeline) begin(what string, e *event.Event, b Bar) {
	if _, goes := t.open[what]; goes {
		return
	}
	b.Seq, b.Start, b.Cycle = e.Seq, e.Time, e.Cycle
	if b.Attempt == 1 {
		b.Attempt = 0
	}
	t.open[what] = len(t.Bars)
	t.Bars = append(t.Bars, b)
}

func (t *Timeline) end(what string, e *event.Event, failed bool) {
	i, goes := t.open[what]
	if !goes {
		return
	}
	delete(t.open, what)
	at := e.Time
	t.Bars[i].End, t.Bars[i].Failed = &at, failed
}

// MarkCritical marks the bars on the critical path: from the end of the run backwards,
// the bar that ended last before the one behind it began.
func (t *Timeline) MarkCritical() {
	ends := func(b *Bar) time.Time {
		if b.End == nil {
			return t.last
		}
		return *b.End
	}
	order := make([]int, len(t.Bars))
	for i := range order {
		order[i] = i
	}
	// Of bars that ended together, the one that began first explains the most time. One
	// that ended as it began hides none of them.
	brief := func(i int) int {
		if ends(&t.Bars[i]).After(t.Bars[i].Start) {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(ends(&t.Bars[b]).Compare(ends(&t.Bars[a])), cmp.Compare(brief(a), brief(b)), t.Bars[a].Start.Compare(t.Bars[b].Start))
	})
	at := t.last
	for _, i := range order {
		b := &t.Bars[i]
		if ends(b).After(at) {
			continue
		}
		b.Critical, at = true, b.Start
	}
}
