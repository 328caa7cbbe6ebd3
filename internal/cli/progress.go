package cli

import (
	"encoding/json"
	"fmt"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/sandbox"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/view"
)

// note is one line of progress.
type note struct {
	style style
	text  string
}

// The view's texts.
var (
	plural     = view.Plural
	money      = view.Money
	usd        = view.USD
	lasting    = view.Lasting
	reason     = view.Reason
	label      = view.Label
	dollars    = view.Dollars
	request    = view.Request
	cacheBreak = view.CacheBreak
)

func toneStyle(t view.Tone) style {
	return map[view.Tone]style{view.Strong: bold, view.Quiet: faint, view.Good: green, view.Wait: yellow, view.Bad: red}[t]
}

// notesOf returns the lines of parts.
func notesOf(parts []view.Part) []note {
	var notes []note
	for _, p := range parts {
		notes = append(notes, note{toneStyle(p.Tone), p.Line})
	}
	return notes
}

// progress returns the lines that an event shows to a person who watches the run.
// If the run has stopped, they contain the next step.
func progress(e event.Event, next *nextStep) []note {
	parts := view.Brief(&e)
	switch d := e.Data.(type) {
	case event.RunStarted:
		parts = view.Started(e.Run, d, refusedHere)
	case event.RunParked:
		parts = append(parts, view.Part{Line: next.parked(e.Run, d)})
	case event.RunCompleted:
		parts = append(parts, goingOn(&e, d.Outcome, next)...)
	}
	return notesOf(parts)
}

// refusedHere returns the settings that this machine cannot enforce in a sandbox of
// a tier.
func refusedHere(tier string) []string { return notHeld(sandbox.Tier(tier), "network", "filesystem") }

// goingOn returns how to continue an ended run, and its checksum.
func goingOn(e *event.Event, o event.Outcome, next *nextStep) []view.Part {
	var parts []view.Part
	if step := next.ended(e.Run, o); step != "" {
		parts = append(parts, view.Part{Line: step})
	}
	return append(parts, view.Part{Tone: view.Quiet, Line: "journal checksum: " + view.Checksum(e)})
}

// waits reports whether calls wait in the run's process until a decision.
func waits(config json.RawMessage) bool {
	var c struct {
		Approve agent.ApproveMode `json:"approve"`
	}
	return json.Unmarshal(config, &c) == nil && c.Approve == agent.ApproveWait
}

// waitingNote returns until when a question waits, and how to decide it.
func waitingNote(run string, q event.Question, pawl string) string {
	text := "    it waits"
	if q.ExpiresAt != nil {
		text += " until " + clock(*q.ExpiresAt)
	}
	return fmt.Sprintf("%s; decide with: %s runs approve %s %s, or reject it with a --reason", text, pawl, run, q.ID)
}
