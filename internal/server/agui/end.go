package agui

import (
	"fmt"
	"slices"
	"time"

	"github.com/pawlrun/pawl/event"
)

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
