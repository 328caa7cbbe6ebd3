package view

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// Body returns the content of one event of an entry, see [View.Events]: the parts that
// [View.Add] returned for it, with complete texts, and details that only the reader of
// the entry needs.
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
		// The command printed the output already, and the next event has that of a
		// pass.
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

// indented returns a value as indented JSON, or the text if it is not JSON.
func indented(value json.RawMessage, text string) string {
	var b bytes.Buffer
	if json.Indent(&b, value, "", "  ") != nil {
		return cmp.Or(string(value), text)
	}
	return b.String()
}
