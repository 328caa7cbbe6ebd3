package view

import (
	"fmt"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// tell returns the parts about an event for a person who reads the whole run.
func (v *View) tell(e *event.Event) []Part {
	switch d := e.Data.(type) {
	case event.RunStarted:
		return append(Started(e.Run, d, v.Refused), asked(d)...)
	case event.CycleStart:
		return append([]Part{{}}, Brief(e)...)
	case event.ModelResponse:
		return answered(d)
	case event.ToolResult:
		return []Part{v.result(d)}
	case event.PolicyDecision:
		if d.Decision == event.DecisionDeny {
			return []Part{line(Wait, "  denied: "+v.called(d.CallID, "the call")+", by "+firstLine(strings.TrimSuffix(d.Rule+": "+d.Reason, ": "), 200))}
		}
	case event.Resolving:
		parts := Brief(e)
		if why := d.Resolution().Reason; why != "" {
			parts = append(parts, line(Quiet, "    "+firstLine(why, 200)))
		}
		return parts
	case event.InputReceived:
		by := ""
		if d.By != "" {
			by = " by " + firstLine(d.By, 60)
		}
		return []Part{prose("  input"+by+":", InputText(d))}
	case event.Nudge:
		return []Part{prose("  nudge:", d.Text)}
	case event.ChildStarted:
		return []Part{line(Quiet, "  "+v.called(d.CallID, d.Name)+" is run "+d.Child)}
	case event.RunTerminatedBy:
		return terminated(d)
	case event.RunCompleted:
		return v.ended(d.Outcome)
	}
	return Brief(e)
}

func prose(heading, text string) Part {
	return Part{Tone: Quiet, Line: heading, Text: strings.TrimSpace(text), Form: Prose}
}

// called returns the name of a call for people.
func (v *View) called(id, otherwise string) string {
	if c := v.calls[id]; c != nil {
		return c.Name
	}
	return firstLine(otherwise, 100)
}

// asked returns the input of the run.
func asked(d event.RunStarted) []Part {
	var parts []Part
	if d.From != nil {
		parts = append(parts, line(Quiet, "continues run "+d.From.Run))
	}
	if d.Input == nil {
		return parts
	}
	words := []string{d.Input.Parts.Text()}
	_, _ = event.MapMedia(event.RunStarted{Input: d.Input}, func(m llm.Media) (llm.Media, error) {
		words = append(words, NamesOf([]llm.Media{m})...)
		return m, nil
	})
	return append(parts, prose("input:", strings.Join(words, "\n")))
}

// answered returns an answer of the model, and its cost.
func answered(d event.ModelResponse) []Part {
	if d.Purpose != "" {
		return nil
	}
	answer := llm.Parts(d.Parts)
	parts := Hosted(answer)
	if text := answer.Text(); strings.TrimSpace(text) != "" {
		parts = append(parts, prose("", text))
	}
	return append(parts, line(Quiet, fmt.Sprintf("  %s: %d tokens in (%d cached), %d out, %s",
		d.Model, d.Usage.Input, d.Usage.CacheRead, d.Usage.Output, Money(&d.Cost, d.Usage))))
}

// result returns the result of a call.
func (v *View) result(d event.ToolResult) Part {
	if d.IsError {
		return Part{Tone: Bad, Line: "  ✗ " + v.called(d.CallID, d.Tool), Text: Complaint(d.Output), Form: Output}
	}
	return Part{Tone: Good, Line: "  ✓ " + v.called(d.CallID, d.Tool), Text: d.Output, Form: Output}
}

// terminated returns what ended the run.
func terminated(d event.RunTerminatedBy) []Part {
	text := string(d.Reason)
	if d.Index != nil {
		text += fmt.Sprintf(", condition %d", *d.Index+1)
	}
	if kind := strings.TrimSpace(d.Kind + " " + d.Limit); kind != "" {
		text += " (" + kind + ")"
	}
	parts := []Part{{}, line(Strong, "ends by "+text)}
	if d.Detail != "" {
		parts = append(parts, line(Wait, "  "+firstLine(d.Detail, 300)))
	}
	return parts
}

// ended returns how the run ended. It does not repeat an answer that is the model's
// last text. For a nested run the rest is in its parent.
func (v *View) ended(o event.Outcome) []Part {
	var parts []Part
	if o.FinalOutput != "" && o.FinalOutput != v.last {
		parts = append(parts, prose("answer:", o.FinalOutput))
	}
	end := Ended(o)
	if v.Nested {
		end = end[:1]
	}
	return append(parts, end...)
}
