// Package agui translates the events of a run into AG-UI 1.0 (docs.ag-ui.com). A
// run and its descendants are one thread, in which a question to a person ends an
// AG-UI run and what follows it is another.
//
// A translation is a pure function of the events so far, so a client that
// reconnects after any event receives the same translation again.
package agui

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/view"
)

// Version is that of the protocol.
const Version = "1.0"

// Event is an event of AG-UI, with the members of its type.
type Event struct {
	Type            string `json:"type"`
	Timestamp       int64  `json:"timestamp,omitempty"`
	ThreadID        string `json:"threadId,omitempty"`
	RunID           string `json:"runId,omitempty"`
	ParentRunID     string `json:"parentRunId,omitempty"`
	ProtocolVersion string `json:"protocolVersion,omitempty"`

	SubagentRunID       string `json:"subagentRunId,omitempty"`
	ParentSubagentRunID string `json:"parentSubagentRunId,omitempty"`
	ParentToolCallID    string `json:"parentToolCallId,omitempty"`

	MessageID       string  `json:"messageId,omitempty"`
	Role            string  `json:"role,omitempty"`
	Delta           any     `json:"delta,omitempty"`
	ToolCallID      string  `json:"toolCallId,omitempty"`
	ToolCallName    string  `json:"toolCallName,omitempty"`
	ParentMessageID string  `json:"parentMessageId,omitempty"`
	Content         *string `json:"content,omitempty"`
	StepName        string  `json:"stepName,omitempty"`

	Name     string   `json:"name,omitempty"`
	Value    any      `json:"value,omitempty"`
	Snapshot any      `json:"snapshot,omitempty"`
	Message  string   `json:"message,omitempty"`
	Code     string   `json:"code,omitempty"`
	Result   any      `json:"result,omitempty"`
	Outcome  *Outcome `json:"outcome,omitempty"`
}

// Outcome is how an AG-UI run ended: success, cancelled, interrupt, or suspended,
// which is for subagents.
type Outcome struct {
	Type         string      `json:"type"`
	Interrupts   []Interrupt `json:"interrupts,omitempty"`
	InterruptIDs []string    `json:"interruptIds,omitempty"`
}

// Interrupt is a question to a person.
type Interrupt struct {
	ID            string `json:"id"`
	Reason        string `json:"reason"`
	Message       string `json:"message,omitempty"`
	ToolCallID    string `json:"toolCallId,omitempty"`
	ExpiresAt     string `json:"expiresAt,omitempty"`
	SubagentRunID string `json:"subagentRunId,omitempty"`
	// ResponseSchema is the JSON Schema of the answer to a form.
	ResponseSchema json.RawMessage `json:"responseSchema,omitempty"`
	Metadata       map[string]any  `json:"metadata,omitempty"`
}

// Translator translates the events of one run, and those of its descendants if it
// receives them.
type Translator struct {
	run string
	// met reports that an event of the run itself was seen; the events before it
	// are shared with a fork.
	met bool
	// active is the current AG-UI run, empty between two.
	active string
	// agents holds the runs of the tree, and open those that have not ended, the
	// root first.
	agents map[string]*agent
	open   []*agent
	steps  []*step
	calls  map[string]bool
	asked  view.Questions
	cycle  int
	out    []Event
	now    int64
}

// agent is a run of the tree; the first is the root.
type agent struct {
	run, name, parent, call string
	// announced reports that the current AG-UI run has announced the agent.
	announced, ended bool
	// text and thought are the open messages, empty for none. said is the text sent
	// so far. last is the message of the previous answer.
	text, thought, last string
	said                strings.Builder
	// again counts how often the text of the attempt restarted.
	again int
	// output is the result of the run.
	output string
}

type step struct {
	name, owner string
	announced   bool
}

// New returns a translator for a run.
func New(run string) *Translator {
	own := &agent{run: run}
	return &Translator{run: run, agents: map[string]*agent{run: own}, open: []*agent{own}, calls: map[string]bool{}}
}

// Translate translates an event to zero or more AG-UI events, which are valid until
// the next call.
func (t *Translator) Translate(e *event.Event) []Event {
	t.out, t.now = t.out[:0], e.Time.UnixMilli()
	run := e.Run
	if !t.met && run != t.run {
		run = t.run // shared by a fork
	}
	if e.Run == t.run {
		t.met = true
	}
	a := t.agentOf(run, e.Parent)
	if a.ended {
		return nil // an event after the end belongs to another run
	}
	if a == t.open[0] {
		t.life(e)
	}
	t.speech(a, e)
	t.work(a, e)
	t.asked.Add(a.run, e.Data)
	if a == t.open[0] {
		t.pause(e)
	}
	return t.out
}

// agentOf returns a run of the tree. A run that is unknown started before the first
// event of the stream.
func (t *Translator) agentOf(run, parent string) *agent {
	a := t.agents[run]
	if a == nil {
		a = &agent{run: run, parent: parent, name: run}
		t.agents[run], t.open = a, append(t.open, a)
	}
	return a
}

// emit adds an event, unless no AG-UI run is active.
func (t *Translator) emit(a *agent, e Event) {
	if t.active == "" {
		return
	}
	if a != nil && a != t.open[0] {
		t.announce(a)
		e.SubagentRunID = a.run
	}
	e.Timestamp = t.now
	t.out = append(t.out, e)
}

// announce announces a child run in the current AG-UI run.
func (t *Translator) announce(a *agent) {
	if a.announced || t.active == "" {
		return
	}
	a.announced = true
	e := Event{Type: "SUBAGENT_STARTED", Timestamp: t.now, SubagentRunID: a.run, Name: a.name, ParentToolCallID: a.call}
	if a.parent != "" && a.parent != t.run {
		above := t.agentOf(a.parent, "")
		t.announce(above)
		e.ParentSubagentRunID = above.run
	}
	t.out = append(t.out, e)
}

// life starts AG-UI runs: when the run starts, and when it resumes after it parked.
func (t *Translator) life(e *event.Event) {
	id := t.run
	switch d := e.Data.(type) {
	case event.RunStarted:
		t.open[0].name = d.Name
	case event.RunResumed:
		for _, a := range t.open {
			t.closeMessages(a) // a crash interrupted these
		}
		id = fmt.Sprintf("%s@%d", t.run, e.Seq)
	case event.RunCompleted:
		id = fmt.Sprintf("%s@%d", t.run, e.Seq)
	default:
		return
	}
	if t.active != "" {
		return
	}
	t.active = id
	for _, a := range t.open {
		a.announced = false
	}
	t.emit(nil, Event{Type: "RUN_STARTED", ThreadID: t.run, RunID: id, ParentRunID: e.Parent, ProtocolVersion: Version})
	t.emit(nil, Event{Type: "STATE_SNAPSHOT", Snapshot: map[string]any{"status": "running", "cycle": t.cycle}})
	for _, s := range t.steps {
		s.announced = true
		t.emit(t.agentOf(s.owner, ""), Event{Type: "STEP_STARTED", StepName: s.name})
	}
	if d, ok := e.Data.(event.RunStarted); ok && d.Input != nil {
		t.message("user", fmt.Sprintf("%s-%d", t.run, e.Seq), d.Input.Parts.Text())
	}
}

// work translates calls, steps and child runs.
func (t *Translator) work(a *agent, e *event.Event) {
	switch d := e.Data.(type) {
	case event.CycleStart:
		if a == t.open[0] {
			t.cycle = d.Cycle
			t.patch("cycle", d.Cycle)
		}
	case event.ToolCall:
		t.call(a, &d)
	case event.ToolProgress:
		t.emit(a, Event{Type: "CUSTOM", Name: "pawl.tool_call.progress", Value: map[string]any{"toolCallId": d.CallID, "done": d.Done, "total": d.Total, "message": d.Message}})
	case event.ToolResult:
		t.emit(a, Event{Type: "TOOL_CALL_RESULT", MessageID: d.CallID + "-result", ToolCallID: d.CallID, Role: "tool", Content: &d.Output})
	case event.StepStarted:
		t.begin(a, d.Step)
	case event.StepFinished:
		t.begin(a, d.Step)
		t.finish(a, d.Step)
	case event.ChildStarted:
		if d.Step != "" {
			t.begin(a, d.Step)
		}
		child := t.agentOf(d.Child, a.run)
		child.name, child.parent, child.call = d.Name, a.run, cmp.Or(d.CallID, d.During)
		t.announce(child)
	case event.RunCompleted:
		a.output = d.Outcome.FinalOutput
	case event.ChildFinished:
		if child := t.agentOf(d.Child, a.run); !child.ended {
			if d.Behind {
				d.Outcome.FinalOutput = child.output
			}
			t.childEnds(child, &d.Outcome)
		}
	}
}

// call adds a call with its arguments. AG-UI cannot change a call, so a call that
// the approver changed is added beside the original.
func (t *Translator) call(a *agent, d *event.ToolCall) {
	args := string(d.Args)
	if args == "" {
		args = d.ArgsText
	}
	if t.calls[d.CallID] {
		t.emit(a, Event{Type: "CUSTOM", Name: "pawl.tool_call.edited", Value: map[string]string{"toolCallId": d.CallID, "args": args}})
		return
	}
	t.calls[d.CallID] = true
	t.emit(a, Event{Type: "TOOL_CALL_START", ToolCallID: d.CallID, ToolCallName: d.Tool, ParentMessageID: a.last})
	if args != "" {
		t.emit(a, Event{Type: "TOOL_CALL_ARGS", ToolCallID: d.CallID, Delta: args})
	}
	t.emit(a, Event{Type: "TOOL_CALL_END", ToolCallID: d.CallID})
}

// patch replaces a part of the state.
func (t *Translator) patch(key string, value any) {
	t.emit(nil, Event{Type: "STATE_DELTA", Delta: []map[string]any{{"op": "replace", "path": "/" + key, "value": value}}})
}

func (t *Translator) begin(a *agent, name string) {
	for _, s := range t.steps {
		if s.name == name && s.owner == a.run {
			return
		}
	}
	t.steps = append(t.steps, &step{name: name, owner: a.run, announced: t.active != ""})
	t.emit(a, Event{Type: "STEP_STARTED", StepName: name})
}

func (t *Translator) finish(a *agent, name string) {
	t.steps = slices.DeleteFunc(t.steps, func(s *step) bool {
		if s.name != name || s.owner != a.run {
			return false
		}
		if s.announced {
			t.emit(a, Event{Type: "STEP_FINISHED", StepName: name})
		}
		return true
	})
}
