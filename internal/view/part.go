package view

import "github.com/pawlrun/pawl/internal/view/terminal"

// Part is a piece of the text about an event: a line, a text below it, or both. The
// zero value is an empty line.
type Part struct {
	Tone Tone   `json:"tone,omitempty"`
	Line string `json:"line,omitempty"`
	Text string `json:"text,omitempty"`
	// Form is the layout of Text, empty if there is none.
	Form Form `json:"form,omitempty"`
}

// Tone is the emphasis of a line.
type Tone string

// The tones.
const (
	Plain  Tone = ""
	Strong Tone = "strong"
	Quiet  Tone = "quiet"
	Good   Tone = "good"
	Wait   Tone = "wait"
	Bad    Tone = "bad"
)

// Form is the layout of a text.
type Form string

// The forms: text of a model or a person, output of a tool, and a JSON value.
const (
	Prose  Form = "prose"
	Output Form = "output"
	Value  Form = "value"
)

func line(tone Tone, text string) Part { return Part{Tone: tone, Line: text} }

func harmless(s string) string { return terminal.Harmless(s) }

func firstLine(s string, width int) string { return terminal.FirstLine(s, width) }
