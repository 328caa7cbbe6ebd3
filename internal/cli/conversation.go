package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/cli/markdown"
	"github.com/pawlrun/pawl/internal/cli/terminal"
	"github.com/pawlrun/pawl/llm"
)

// conversation prints a run as a person reads it: what was said, what was called
// and what came of it. What [progress] tells of an event it tells as well.
type conversation struct {
	out    io.Writer
	screen screen
	next   nextStep
	steps  steps
	work   activity
	// indent stands before every line, for a run that another one started.
	indent string
	// calls are the calls as people know them, by their ids.
	calls map[string]string
	// last is the last text of the model.
	last string
	// step is how the run goes on if nothing else comes.
	step string
}

func newConversation(out io.Writer, s screen, pawl string) *conversation {
	c := &conversation{out: out, screen: s, next: nextStep{pawl: pawl}, calls: map[string]string{}}
	c.next.steps, c.steps.show = &c.steps, pawl
	return c
}

// below is the conversation of a run that this one started.
func (c *conversation) below() shownRun {
	child := newConversation(c.out, c.screen, "")
	child.indent = c.indent + "    "
	return child
}

func (c *conversation) show(e event.Event) error {
	c.next.add(e.Data)
	c.steps.add(&e)
	c.work.add(&e)
	c.step = ""
	notes := append(append(skipped(e), c.steps.notes(e)...), c.notes(e)...)
	if d, ok := e.Data.(event.RunParked); ok && c.indent == "" {
		c.step = c.next.parked(e.Run, d)
	}
	return c.print(notes)
}

// end names the next step of a run of which nothing more has come.
func (c *conversation) end() error {
	if c.step == "" {
		return nil
	}
	step := c.step
	c.step = ""
	return c.print([]note{{plain, step}})
}

func (c *conversation) print(notes []note) error {
	var b strings.Builder
	for _, n := range notes {
		for line := range strings.SplitSeq(n.text, "\n") {
			if line != "" {
				line = c.indent + c.screen.paint(n.style, line)
			}
			b.WriteString(line + "\n")
		}
	}
	_, err := io.WriteString(c.out, b.String())
	return err
}

// notes are what an event means to somebody who reads the whole run.
func (c *conversation) notes(e event.Event) []note {
	switch d := e.Data.(type) {
	case event.RunStarted:
		return append(started(e.Run, d), c.asked(d)...)
	case event.CycleStart:
		return append([]note{{}}, progress(e, &c.next)...)
	case event.ModelResponse:
		return c.answered(d)
	case event.ToolCall:
		c.calls[d.CallID] = label(d)
	case event.ToolResult:
		return c.result(d)
	case event.PolicyDecision:
		if d.Decision == event.DecisionDeny {
			return []note{{yellow, "  denied: " + c.called(d.CallID, "the call") + ", by " + firstLine(strings.TrimSuffix(d.Rule+": "+d.Reason, ": "), 200)}}
		}
	case event.Resolving:
		notes := progress(e, &c.next)
		if why := d.Resolution().Reason; why != "" {
			notes = append(notes, note{faint, "    " + firstLine(why, 200)})
		}
		return notes
	case event.InputReceived:
		return c.block("  input"+by(d.By)+":", said(d))
	case event.Nudge:
		return c.block("  nudge:", d.Text)
	case event.ChildStarted:
		return []note{{faint, "  " + c.called(d.CallID, d.Name) + " is run " + d.Child}}
	case event.RunParked:
		return []note{parkedFor(d)}
	case event.RunTerminatedBy:
		return terminated(d)
	case event.RunCompleted:
		return c.ended(e, d.Outcome)
	}
	return progress(e, &c.next)
}

func by(who string) string {
	if who == "" {
		return ""
	}
	return " by " + firstLine(who, 60)
}

// called is a call as people know it.
func (c *conversation) called(id, otherwise string) string {
	return firstLine(cmp.Or(c.calls[id], otherwise), 100)
}

// asked is what the run was given.
func (c *conversation) asked(d event.RunStarted) []note {
	var notes []note
	if d.From != nil {
		notes = append(notes, note{faint, "continues run " + d.From.Run})
	}
	if d.Input == nil {
		return notes
	}
	words := []string{d.Input.Parts.Text()}
	_, _ = event.MapMedia(event.RunStarted{Input: d.Input}, func(m llm.Media) (llm.Media, error) {
		words = append(words, namesOf([]llm.Media{m})...)
		return m, nil
	})
	return append(notes, c.block("input:", strings.TrimSpace(strings.Join(words, "\n")))...)
}

// answered is an answer of the model, and what it cost.
func (c *conversation) answered(d event.ModelResponse) []note {
	if d.Purpose != "" {
		return nil
	}
	parts := llm.Parts(d.Parts)
	notes := hosted(parts)
	if c.last = parts.Text(); strings.TrimSpace(c.last) != "" {
		notes = append(notes, c.block("", c.last)...)
	}
	return append(notes, note{faint, fmt.Sprintf("  %s: %d tokens in (%d cached), %d out, %s",
		d.Model, d.Usage.Input, d.Usage.CacheRead, d.Usage.Output, money(&d.Cost, d.Usage))})
}

// block is a text under a heading.
func (c *conversation) block(heading, text string) []note {
	var notes []note
	if heading != "" {
		notes = append(notes, note{faint, heading})
	}
	for _, line := range c.lines(strings.TrimSpace(text)) {
		notes = append(notes, note{plain, strings.TrimRight("  "+line, " \t\r")})
	}
	return notes
}

// lines are a text laid out for a terminal, or as it is written for what is not one.
func (c *conversation) lines(text string) []string {
	if !c.screen.terminal {
		return strings.Split(harmless(text), "\n")
	}
	return markdown.Lines(text, c.room("  "), c.screen.colour)
}

// room is how much of a line is left behind what stands before it.
func (c *conversation) room(before string) int {
	return max(c.screen.width()-terminal.Columns(c.indent+before), 1)
}

// How many lines of a result are shown at its beginning and its end, and how wide
// a line is.
const (
	resultHead = 6
	resultTail = 4
	resultLine = 200
)

// result is the beginning and the end of what a call gave.
func (c *conversation) result(d event.ToolResult) []note {
	head, output := note{green, "  ✓ " + c.called(d.CallID, d.Tool)}, d.Output
	if d.IsError {
		head, output = note{red, "  ✗ " + c.called(d.CallID, d.Tool)}, complaint(d.Output)
	}
	notes := []note{head}
	width := resultLine
	if c.screen.terminal {
		width = c.room("    ")
	}
	for _, line := range headAndTail(output, resultHead, resultTail) {
		notes = append(notes, note{faint, "    " + clip(strings.ReplaceAll(harmless(line), "\t", "    "), width)})
	}
	if c.work.edit != nil {
		notes = append(notes, c.work.edit.shown(width+len("    "))...)
	}
	return notes
}

// headAndTail are so many of the first and the last lines of a text.
func headAndTail(text string, head, tail int) []string {
	text = strings.TrimRight(strings.TrimLeft(text, "\r\n"), " \t\r\n")
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	left := len(lines) - head - tail
	if left < 2 { // to say that a line is left out takes one as well
		return lines
	}
	between := "… " + plural(left, "line") + " …"
	return append(append(lines[:head:head], between), lines[len(lines)-tail:]...)
}

// terminated says what ended the run.
func terminated(d event.RunTerminatedBy) []note {
	text := string(d.Reason)
	if d.Index != nil {
		text += fmt.Sprintf(", condition %d", *d.Index+1)
	}
	if kind := strings.TrimSpace(d.Kind + " " + d.Limit); kind != "" {
		text += " (" + kind + ")"
	}
	notes := []note{{}, {bold, "ends by " + text}}
	if d.Detail != "" {
		notes = append(notes, note{yellow, "  " + firstLine(d.Detail, 300)})
	}
	return notes
}

// ended is how the run ended. The answer is not said twice.
func (c *conversation) ended(e event.Event, o event.Outcome) []note {
	var notes []note
	if answer := o.FinalOutput; answer != "" && answer != c.last {
		notes = c.block("answer:", answer)
	}
	if c.indent == "" {
		return append(notes, completed(e, o, &c.next)...)
	}
	return append(notes, completed(e, o, &c.next)[0]) // the rest is about its parent
}
