package view

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// Body is all that one of the events of an entry tells, see [View.Events]: what
// [View.Add] gave for it, with texts whole, and what only a reader of the entry wants.
func (v *View) Body(e *event.Event) []Part {
	parts := append(Skipped(e), v.kept[e.Seq]...)
	switch d := e.Data.(type) {
	case event.ModelResponse:
		for _, p := range d.Parts {
			if t, ok := p.(llm.Reasoning); ok && strings.TrimSpace(t.Text) != "" {
				parts = append(parts, Part{Tone: Quiet, Line: "reasoning", Text: t.Text, Form: Output})
			}
		}
		if d.Purpose != "" {
			parts = append(parts, line(Quiet, "the model was also called for: "+string(d.Purpose)))
		}
	case event.ToolCall:
		parts = append(parts, Part{Tone: Quiet, Line: "arguments", Text: indented(d.Args, d.ArgsText), Form: Value})
	case event.CommandStarted:
		parts = append(parts, Part{Tone: Quiet, Line: "command", Text: strings.Join(d.Argv, " "), Form: Output})
	case event.CommandFinished:
		parts = append(parts, Part{Tone: Quiet, Line: strings.TrimPrefix(commandSaid(nil, d), ": "), Text: d.Output, Form: Output})
	case event.StepFinished:
		// A command has printed it, and of a pass the event behind this one has it.
		if n := v.steps[d.Step]; d.Content != "" && n != nil && n.Kind == Step && n.Run != "" {
			parts = append(parts, prose("content", d.Content))
		}
	case event.Iteration:
		if d.Item != nil {
			parts = append(parts, Part{Tone: Quiet, Line: "item", Text: indented(d.Item, ""), Form: Value})
		}
		if d.Output != "" {
			parts = append(parts, prose("output", d.Output))
		}
	case event.Progress:
		parts = append(parts, prose("learned", d.Learning))
	case event.HistoryCompressed:
		if d.Summary != "" {
			parts = append(parts, prose("summary", d.Summary))
		}
	case event.ModelAttemptFailed:
		if d.PartialText != "" {
			parts = append(parts, prose("what it had said", d.PartialText))
		}
	}
	parts = append(parts, v.tell(e)...)
	kept := parts[:0]
	for _, p := range parts {
		if p.Line = strings.TrimSpace(p.Line); p != (Part{}) {
			kept = append(kept, p)
		}
	}
	return kept
}

// indented is a value as people read it, or a text that is none.
func indented(value json.RawMessage, text string) string {
	var b bytes.Buffer
	if json.Indent(&b, value, "", "  ") != nil {
		return cmp.Or(string(value), text)
	}
	return b.String()
}
