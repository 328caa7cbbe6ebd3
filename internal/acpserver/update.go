package acpserver

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/coder/acp-go-sdk"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/internal/view/terminal"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool/fs"
)

// translator translates the events of one run to updates of a session. The same events
// give the same text, live or from the journal.
type translator struct {
	run, dir string
	// text and thought count the bytes of the current answer that were sent.
	text, thought strings.Builder
	// windows are the context windows of the models, and spent the cost of the run so far.
	windows map[string]int
	spent   float64
	// calls holds the calls that were sent.
	calls map[string]*sentCall
	// terminals reports that the client shows terminals whose output it is sent.
	terminals bool
	// steps are those of a workflow, and plan what was sent of them.
	steps view.Steps
	plan  []acp.PlanEntry
}

func newTranslator(run, dir string) *translator {
	return &translator{run: run, dir: dir, calls: map[string]*sentCall{}}
}

// translate returns the updates for an event. history includes the user's messages,
// which a client already shows during a live turn.
func (t *translator) translate(e *event.Event, history bool) (updates []acp.SessionUpdate) {
	switch d := e.Data.(type) {
	case event.RunStarted:
		t.windows = windowsOf(d)
		if history && d.Input != nil {
			updates = messages(d.Input.Parts.Text())
		}
	case event.InputReceived:
		if history {
			updates = messages(d.Text)
		}
		if d.Mode != "" {
			updates = append(updates, acp.SessionUpdate{CurrentModeUpdate: &acp.SessionCurrentModeUpdate{CurrentModeId: acp.SessionModeId(d.Mode)}})
		}
	case event.Text:
		updates = t.append(&t.text, d.Text, acp.UpdateAgentMessageText)
	case event.Reasoning:
		updates = t.append(&t.thought, d.Text, acp.UpdateAgentThoughtText)
	case event.TextReset, event.ModelAttemptFailed:
		// A client cannot take text back, so the next attempt is a new paragraph.
		if t.text.Len() > 0 {
			updates = []acp.SessionUpdate{acp.UpdateAgentMessageText("\n\n")}
		}
		t.reset()
	case event.ModelResponse:
		if d.Purpose == "" {
			updates = append(t.answer(d.Parts), t.usage(&d)...)
		}
		t.reset()
	case event.ToolCall:
		updates = []acp.SessionUpdate{t.call(&d)}
	case event.ToolOutput:
		updates = t.printed(&d)
	case event.ToolResult:
		updates = []acp.SessionUpdate{t.result(&d)}
	}
	return append(updates, t.planned(e)...)
}

// planned returns the update with the steps of a workflow, if the event changes one.
func (t *translator) planned(e *event.Event) []acp.SessionUpdate {
	t.steps.Add(e)
	var entries []acp.PlanEntry
	for _, l := range t.steps.All() {
		status := acp.PlanEntryStatusCompleted
		switch l.State {
		case view.StepWaiting:
			status = acp.PlanEntryStatusPending
		case view.StepRunning, view.StepParked:
			status = acp.PlanEntryStatusInProgress
		}
		text := strings.Repeat("  ", l.Depth) + l.Step
		if status == acp.PlanEntryStatusCompleted && l.State != view.StepCompleted {
			text += " (" + string(l.State) + ")"
		}
		entries = append(entries, acp.PlanEntry{Content: terminal.Harmless(text), Priority: acp.PlanEntryPriorityMedium, Status: status})
	}
	if reflect.DeepEqual(entries, t.plan) {
		return nil
	}
	t.plan = entries
	return []acp.SessionUpdate{acp.UpdatePlan(entries...)}
}

// windowsOf returns the context windows of a run's models.
func windowsOf(d event.RunStarted) map[string]int {
	var c agent.Config
	windows := map[string]int{}
	if json.Unmarshal(d.Config, &c) == nil {
		for _, t := range c.Targets {
			windows[t.Model] = t.ContextWindow
		}
	}
	return windows
}

// usage returns the update with the tokens in the context, if the window is known, and the
// cost of the run.
func (t *translator) usage(d *event.ModelResponse) []acp.SessionUpdate {
	t.spent += d.Cost.USD
	window := t.windows[d.Model]
	if window == 0 {
		return nil
	}
	u := &acp.SessionUsageUpdate{Size: window, Used: int(d.Usage.Input + d.Usage.Output)}
	if d.Cost.Priced {
		u.Cost = &acp.Cost{Amount: t.spent, Currency: "USD"}
	}
	return []acp.SessionUpdate{{UsageUpdate: u}}
}

func messages(text string) []acp.SessionUpdate {
	if text == "" {
		return nil
	}
	return []acp.SessionUpdate{acp.UpdateUserMessageText(text)}
}

func (t *translator) reset() {
	t.text.Reset()
	t.thought.Reset()
}

func (t *translator) append(to *strings.Builder, text string, update func(string) acp.SessionUpdate) []acp.SessionUpdate {
	if text == "" {
		return nil
	}
	to.WriteString(text)
	return []acp.SessionUpdate{update(terminal.Harmless(text))}
}

// answer returns the parts of a complete answer that were not sent live.
func (t *translator) answer(parts []llm.Part) (updates []acp.SessionUpdate) {
	var thought strings.Builder
	for _, p := range parts {
		if r, is := p.(llm.Reasoning); is {
			thought.WriteString(r.Text)
		}
	}
	if t.thought.Len() == 0 {
		updates = append(updates, t.append(&t.thought, thought.String(), acp.UpdateAgentThoughtText)...)
	}
	whole, sent := llm.Parts(parts).Text(), t.text.String()
	if rest, continues := strings.CutPrefix(whole, sent); continues {
		return append(updates, t.append(&t.text, rest, acp.UpdateAgentMessageText)...)
	}
	return append(updates, t.append(&t.text, "\n\n"+whole, acp.UpdateAgentMessageText)...)
}

// call returns the update that shows a call: a new one, or one that a person changed.
func (t *translator) call(d *event.ToolCall) acp.SessionUpdate {
	c := t.shown(d.Tool, d.Describe, d.Args, d.ArgsText)
	id := acp.ToolCallId(d.CallID)
	sent := t.calls[d.CallID]
	t.calls[d.CallID] = &sentCall{kind: c.kind, terminal: t.terminals && c.kind == acp.ToolKindExecute}
	if sent != nil {
		return acp.UpdateToolCall(id, acp.WithUpdateTitle(c.title), acp.WithUpdateRawInput(c.input), acp.WithUpdateContent(c.content), acp.WithUpdateLocations(c.locations))
	}
	start := acp.StartToolCall(id, c.title, acp.WithStartKind(c.kind), acp.WithStartStatus(acp.ToolCallStatusPending),
		acp.WithStartRawInput(c.input), acp.WithStartContent(c.content), acp.WithStartLocations(c.locations))
	if t.calls[d.CallID].terminal {
		start.ToolCall.Content = []acp.ToolCallContent{acp.ToolTerminalRef(d.CallID)}
		start.ToolCall.Meta = map[string]any{"terminal_info": map[string]any{"terminal_id": d.CallID, "cwd": t.dir}}
	}
	return start
}

// shownCall is a call as a client shows it.
type shownCall struct {
	title     string
	kind      acp.ToolKind
	input     any
	content   []acp.ToolCallContent
	locations []acp.ToolCallLocation
}

// kindOf returns the protocol's kind of a call by its arguments, so that tools of
// programs and MCP servers have one as well.
func kindOf(values map[string]any) acp.ToolKind {
	for _, k := range []struct {
		argument string
		kind     acp.ToolKind
	}{{"command", acp.ToolKindExecute}, {"url", acp.ToolKindFetch}, {"pattern", acp.ToolKindSearch}, {"query", acp.ToolKindSearch}, {"path", acp.ToolKindRead}} {
		if asText(values[k.argument]) != "" {
			return k.kind
		}
	}
	return acp.ToolKindOther
}

// shown describes a call. A change of a file is shown as a difference, and every
// invisible character is marked.
func (t *translator) shown(tool, describe string, args json.RawMessage, invalid string) shownCall {
	c := shownCall{title: tool, input: invalid}
	var values map[string]any
	if len(args) > 0 && json.Unmarshal(args, &values) == nil {
		c.input = values
	}
	c.kind = kindOf(values)
	command, path := asText(values["command"]), asText(values["path"])
	switch {
	case command != "":
		c.title = command
	case path != "":
		c.title = tool + " " + path
	case describe != "":
		c.title = describe
	}
	c.title = terminal.Marked(c.title)
	if path != "" {
		c.locations = []acp.ToolCallLocation{{Path: t.absolute(path)}}
	}
	if change, known := fs.ChangeOf(tool, args); known {
		diff := acp.ToolDiffContent(t.absolute(change.Path), change.New)
		if !change.Overwrite {
			diff = acp.ToolDiffContent(t.absolute(change.Path), change.New, change.Old)
		}
		c.kind, c.content = acp.ToolKindEdit, []acp.ToolCallContent{diff}
	}
	return c
}

func asText(v any) string {
	text, _ := v.(string)
	return text
}

func (t *translator) absolute(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(t.dir, path)
}
