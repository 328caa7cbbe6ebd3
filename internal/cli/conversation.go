package cli

import (
	"io"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/cli/markdown"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/internal/view/terminal"
)

// conversation prints a run for a person: the messages, the calls and their
// results.
type conversation struct {
	out    io.Writer
	screen screen
	next   nextStep
	view   view.View
	edits  edits
	// indent precedes every line of a child run.
	indent string
	// after is the last event that is not printed.
	after int64
	// step is how the run continues if no more events follow.
	step string
}

func newConversation(out io.Writer, s screen, pawl string) *conversation {
	c := &conversation{out: out, screen: s, next: nextStep{pawl: pawl}, view: view.View{Refused: refusedHere}}
	c.next.view, c.view.Steps.Show = &c.view, pawl
	return c
}

// below returns the conversation of a child run.
func (c *conversation) below() shownRun {
	child := newConversation(c.out, c.screen, "")
	child.indent, child.view.Nested = c.indent+"    ", true
	return child
}

func (c *conversation) show(e event.Event) error {
	c.next.origin.add(e.Data)
	c.edits.add(&c.view, &e, "")
	parts := c.view.Add(&e).Parts
	if c.step = ""; c.after > 0 && e.Seq <= c.after {
		return nil
	}
	if c.indent == "" {
		switch d := e.Data.(type) {
		case event.RunParked:
			c.step = c.next.parked(e.Run, d)
		case event.RunCompleted:
			parts = append(parts, goingOn(&e, d.Outcome, &c.next)...)
		}
	}
	if err := c.print(parts); err != nil || c.edits.edit == nil {
		return err
	}
	var b strings.Builder
	for _, n := range c.edits.edit.lines(c.resultWidth() + len("    ")) {
		c.line(&b, n.style, n.text)
	}
	_, err := io.WriteString(c.out, b.String())
	return err
}

// end prints the next step of a run without further events.
func (c *conversation) end() error {
	if c.step == "" {
		return nil
	}
	step := c.step
	c.step = ""
	return c.print([]view.Part{{Line: step}})
}

func (c *conversation) print(parts []view.Part) error {
	var b strings.Builder
	for _, p := range parts {
		if p.Line != "" || p.Form == "" {
			c.line(&b, toneStyle(p.Tone), p.Line)
		}
		switch p.Form {
		case view.Prose:
			for _, line := range c.lines(p.Text) {
				c.line(&b, plain, strings.TrimRight("  "+line, " \t\r"))
			}
		case view.Output:
			width := c.resultWidth()
			for _, line := range view.HeadAndTail(p.Text, resultHead, resultTail) {
				c.line(&b, faint, "    "+clip(strings.ReplaceAll(harmless(line), "\t", "    "), width))
			}
		}
	}
	_, err := io.WriteString(c.out, b.String())
	return err
}

func (c *conversation) line(b *strings.Builder, st style, text string) {
	for line := range strings.SplitSeq(text, "\n") {
		if line != "" {
			line = c.indent + c.screen.paint(st, line)
		}
		b.WriteString(line + "\n")
	}
}

// lines lays out a text for a terminal, or returns it unchanged for other outputs.
func (c *conversation) lines(text string) []string {
	if !c.screen.terminal {
		return strings.Split(harmless(text), "\n")
	}
	return markdown.Lines(text, c.room("  "), c.screen.colour)
}

// room returns how much of a line is left after a prefix.
func (c *conversation) room(before string) int {
	return max(c.screen.width()-terminal.Columns(c.indent+before), 1)
}

// Limits of a result: lines at its beginning and end, and the width of a line.
const (
	resultHead = 6
	resultTail = 4
	resultLine = 200
)

// resultWidth is how wide a line of a result may be.
func (c *conversation) resultWidth() int {
	if c.screen.terminal {
		return c.room("    ")
	}
	return resultLine
}
