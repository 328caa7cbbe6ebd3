package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/journal"
)

// waitingRef is a command to the run without an effect yet: the run is parked, or
// its driver has not read it.
type waitingRef struct {
	// Kind is the verb of the command.
	Kind string    `json:"kind"`
	By   string    `json:"by,omitempty"`
	At   time.Time `json:"at"`
	Text string    `json:"text,omitempty"`
	// Files are the names of a message's files.
	Files  []string `json:"files,omitempty"`
	CallID string   `json:"callId,omitempty"`
	Edited bool     `json:"edited,omitempty"`
	// Sealed reports that only the process that drives the run can read the rest.
	Sealed  bool    `json:"sealed,omitempty"`
	Setting string  `json:"setting,omitempty"`
	Value   float64 `json:"value,omitempty"`
}

// unread returns the command that an event delivered to a parked run.
func unread(e *event.Event) waitingRef {
	w := waitingRef{At: e.Time}
	switch d := e.Data.(type) {
	case event.Resolving:
		r := d.Resolution()
		w.Kind, w.By, w.Text, w.CallID, w.Edited = control.Verb(journal.Approve), r.Approver, r.Reason, r.ID, r.Kind == event.ApprovalEdited
		if r.Kind == event.ApprovalRejected || r.Kind == event.ApprovalExpired {
			w.Kind = control.Verb(journal.Reject)
		}
	case event.InputReceived:
		w.Kind, w.By, w.Text, w.Files = control.Verb(journal.Input), d.By, d.Text, view.NamesOf(d.Media)
	case event.BudgetRaised:
		w.Kind, w.By, w.Setting, w.Value = control.Verb(journal.Raise), d.By, d.Setting, d.Value
	}
	return w
}

// sent adds the commands that are still in the run's inbox.
func (p *page) sent(commands []journal.Command) {
	for _, c := range commands {
		p.unread = append(p.unread, waitingRef{
			Kind: control.Verb(c.Kind), By: c.By, At: c.At, Text: c.Text, Files: view.NamesOf(c.Media),
			CallID: c.CallID, Edited: len(c.Args) > 0, Sealed: len(c.Sealed) > 0, Setting: c.Setting, Value: c.Value,
		})
	}
}

// says returns the command in one line.
func (w waitingRef) says() string {
	text := w.Kind
	switch {
	case w.CallID != "":
		text += " " + w.CallID
		if w.Edited {
			text += " with other arguments"
		}
	case w.Setting != "":
		value := none
		if w.Value != budget.None {
			value = strconv.FormatFloat(w.Value, 'f', -1, 64)
		}
		text += " " + w.Setting + " " + value
	}
	if w.By != "" {
		text += " by " + w.By
	}
	words := w.Text
	for _, f := range w.Files {
		words = strings.TrimSpace(words + " [" + f + "]")
	}
	if w.Sealed {
		words = "(only the process that drives the run can read it)"
	}
	if words != "" {
		text += ": " + words
	}
	return firstLine(text, 200)
}

// waiting adds rows for the waiting commands.
func (p *page) waiting(row func(name, value string)) {
	for _, w := range p.unread {
		row("waiting", fmt.Sprintf("not read yet: %s (%s)", w.says(), clock(w.At)))
	}
}
