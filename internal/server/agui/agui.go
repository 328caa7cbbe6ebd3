// Package agui translates the events of a run into AG-UI 1.0 (docs.ag-ui.com). A
// run and its descendants are one thread, in which a question to a person ends an
// AG-UI run and what follows it is another.
//
// A translation is a pure function of the events so far, so a client that
// reconnects after any event receives the same translation again.
package agui

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/llm"
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

// message adds a complete message of another participant.
func (t *Translator) message(role, id, text string) {
	if text == "" {
		return
	}
	t.emit(nil, Event{Type: "TEXT_MESSAGE_START", MessageID: id, Role: role})
	t.emit(nil, Event{Type: "TEXT_MESSAGE_CONTENT", MessageID: id, Delta: text})
	t.emit(nil, Event{Type: "TEXT_MESSAGE_END", MessageID: id})
}

// speech translates the output of models.
func (t *Translator) speech(a *agent, e *event.Event) {
	id := func(attempt int) string {
		id := fmt.Sprintf("%s-%d-%d", a.run, e.Cycle, attempt)
		if a.again > 0 {
			id += fmt.Sprintf("-again%d", a.again)
		}
		return id
	}
	switch d := e.Data.(type) {
	case event.Text:
		t.think(a, "", "")
		t.appendText(a, id(d.Attempt), d.Text)
	case event.Reasoning:
		t.think(a, id(d.Attempt)+"-reasoning", d.Text)
	case event.TextReset:
		t.takeBack(a)
		a.again++
	case event.ModelAttemptFailed:
		t.takeBack(a)
		a.again = 0
	case event.ModelResponse:
		a.last = ""
		if d.Purpose == "" {
			t.answer(a, id(d.Attempt), d.Parts)
		}
		t.closeMessages(a)
		a.again = 0
	case event.InputReceived:
		if a == t.open[0] {
			t.message("user", fmt.Sprintf("%s-%d", t.run, e.Seq), d.Text)
		}
	}
}

// answer adds the parts of a complete answer that were not streamed.
func (t *Translator) answer(a *agent, id string, parts []llm.Part) {
	whole := llm.Parts(parts).Text()
	if a.thought == "" && a.text == "" {
		for _, p := range parts {
			if r, ok := p.(llm.Reasoning); ok {
				t.think(a, id+"-reasoning", r.Text)
			}
		}
	}
	t.think(a, "", "")
	if a.text != "" && !strings.HasPrefix(whole, a.said.String()) {
		t.takeBack(a)
		id += "-whole"
	}
	rest := strings.TrimPrefix(whole, a.said.String())
	if a.text == "" && rest == "" {
		return
	}
	t.appendText(a, id, rest)
	a.last = a.text
}

// appendText appends to a message and starts it if necessary.
func (t *Translator) appendText(a *agent, id, text string) {
	if a.text == "" {
		a.text = id
		t.emit(a, Event{Type: "TEXT_MESSAGE_START", MessageID: id, Role: "assistant"})
	}
	if text != "" {
		a.said.WriteString(text)
		t.emit(a, Event{Type: "TEXT_MESSAGE_CONTENT", MessageID: a.text, Delta: text})
	}
}

// think appends to a thought, or ends it if id is empty.
func (t *Translator) think(a *agent, id, text string) {
	if a.thought != "" && a.thought != id {
		t.emit(a, Event{Type: "REASONING_MESSAGE_END", MessageID: a.thought})
		t.emit(a, Event{Type: "REASONING_END", MessageID: a.thought})
		a.thought = ""
	}
	if id == "" || text == "" {
		return
	}
	if a.thought == "" {
		a.thought = id
		t.emit(a, Event{Type: "REASONING_START", MessageID: id})
		t.emit(a, Event{Type: "REASONING_MESSAGE_START", MessageID: id, Role: "reasoning"})
	}
	t.emit(a, Event{Type: "REASONING_MESSAGE_CONTENT", MessageID: id, Delta: text})
}

// takeBack ends a message that is void. AG-UI cannot retract text, so the event has
// its own name.
func (t *Translator) takeBack(a *agent) {
	void := a.text
	t.closeMessages(a)
	if void != "" {
		t.emit(a, Event{Type: "CUSTOM", Name: "pawl.text.reset", Value: map[string]string{"messageId": void}})
	}
}

func (t *Translator) closeMessages(a *agent) {
	t.think(a, "", "")
	if a.text != "" {
		t.emit(a, Event{Type: "TEXT_MESSAGE_END", MessageID: a.text})
	}
	a.text = ""
	a.said.Reset()
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
		child.name, child.parent, child.call = d.Name, a.run, d.CallID
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

// childEnds reports how a child run ended, and removes it.
func (t *Translator) childEnds(a *agent, o *event.Outcome) {
	t.end(a.run)
	t.closeMessages(a)
	e := Event{Type: "SUBAGENT_FINISHED", SubagentRunID: a.run, Outcome: &Outcome{Type: "success"}}
	if !o.OK {
		e = Event{Type: "SUBAGENT_ERROR", SubagentRunID: a.run, Message: failure(o), Code: string(o.Reason)}
	} else if o.FinalOutput != "" {
		e.Result = o.FinalOutput
	}
	t.emit(a, e)
	a.ended = true
	t.open = slices.DeleteFunc(t.open, func(other *agent) bool { return other == a })
}

// end finishes the open steps of a run, innermost first.
func (t *Translator) end(run string) {
	for i := len(t.steps) - 1; i >= 0; i-- {
		if s := t.steps[i]; s.owner == run {
			t.finish(t.agentOf(run, ""), s.name)
		}
	}
}

func failure(o *event.Outcome) string {
	if o.Error != nil && o.Error.Message != "" {
		return o.Error.Message
	}
	return "the run ended: " + string(o.Reason)
}

// pause ends AG-UI runs when the run parks or ends.
func (t *Translator) pause(e *event.Event) {
	switch d := e.Data.(type) {
	case event.RunParked:
		interrupts := t.interrupts(&d, fmt.Sprintf("%s@%d", t.run, e.Seq))
		t.suspend(interrupts)
		t.patch("status", "parked")
		t.finished(&Outcome{Type: "interrupt", Interrupts: interrupts}, nil)
	case event.RunCompleted:
		t.over(&d.Outcome)
	}
}

// over reports how the run ended. Descendants that are still open were interrupted.
func (t *Translator) over(o *event.Outcome) {
	for i := len(t.open) - 1; i > 0; i-- {
		t.childEnds(t.open[i], &event.Outcome{Reason: o.Reason})
	}
	t.end(t.run)
	t.closeMessages(t.open[0])
	t.patch("status", o.Status)
	switch {
	case o.Status == event.StatusFailed:
		t.emit(nil, Event{Type: "RUN_ERROR", Message: failure(o), Code: string(o.Reason)})
		t.active = ""
	case o.Status == event.StatusCancelled:
		t.finished(&Outcome{Type: "cancelled"}, nil)
	default:
		t.finished(&Outcome{Type: "success"}, o.FinalOutput)
	}
}

func (t *Translator) finished(o *Outcome, result any) {
	if result == "" {
		result = nil
	}
	t.emit(nil, Event{Type: "RUN_FINISHED", ThreadID: t.run, RunID: t.active, Outcome: o, Result: result})
	t.active = ""
}

// suspend closes what is open while the run is parked.
func (t *Translator) suspend(interrupts []Interrupt) {
	for i := len(t.steps) - 1; i >= 0; i-- {
		if s := t.steps[i]; s.announced {
			t.emit(t.agentOf(s.owner, ""), Event{Type: "STEP_FINISHED", StepName: s.name})
			s.announced = false
		}
	}
	for i := len(t.open) - 1; i >= 0; i-- {
		a := t.open[i]
		t.closeMessages(a)
		if i == 0 || !a.announced {
			continue
		}
		o := &Outcome{Type: "suspended"}
		for _, q := range interrupts {
			if q.SubagentRunID == a.run {
				o.InterruptIDs = append(o.InterruptIDs, q.ID)
			}
		}
		t.emit(a, Event{Type: "SUBAGENT_FINISHED", Outcome: o})
		a.announced = false
	}
}

// interrupts returns the open questions, or else the reason why the run parked.
func (t *Translator) interrupts(d *event.RunParked, id string) (list []Interrupt) {
	for _, q := range t.asked {
		n := Interrupt{ID: q.ID, Reason: string(d.Reason), Message: q.Subject, Metadata: map[string]any{"kind": q.Kind, "digest": q.Digest, "what": q.What}}
		if q.Reason != "" {
			n.Message = q.Subject + ": " + q.Reason
		}
		switch asked := q.What.(type) {
		case event.CallAsked:
			n.ToolCallID = q.ID
		case event.FormAsked:
			n.ToolCallID, n.ResponseSchema = q.ID, asked.Schema
		}
		if q.ExpiresAt != nil {
			n.ExpiresAt = q.ExpiresAt.UTC().Format(time.RFC3339)
		}
		if q.Run != t.run {
			n.SubagentRunID = q.Run
		}
		list = append(list, n)
	}
	if len(list) == 0 {
		list = []Interrupt{{ID: id, Reason: string(d.Reason), Message: d.Detail}}
	}
	return list
}
