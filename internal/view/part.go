package view

import "github.com/pawlrun/pawl/internal/view/terminal"

// Part is one thing that an event tells a reader: a line, a text below it, or both. The
// zero value is an empty line.
type Part struct {
	Tone Tone   `json:"tone,omitempty"`
	Line string `json:"line,omitempty"`
	Text string `json:"text,omitempty"`
	// Form says how Text is laid out, empty where there is none.
	Form Form `json:"form,omitempty"`
}

// Tone is how a line stands out.
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

// Form is how a text is laid out.
type Form string

// The forms: what a model or a person writes, what a tool prints, and a value as JSON.
const (
	Prose  Form = "prose"
	Output Form = "output"
	Value  Form = "value"
)

func line(tone Tone, text string) Part { return Part{Tone: tone, Line: text} }

func harmless(s string) string { return terminal.Harmless(s) }

func firstLine(s string, width int) string { return terminal.FirstLine(s, width) }
