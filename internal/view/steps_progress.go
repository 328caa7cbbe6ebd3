package view

import (
	"fmt"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/view/terminal"
)

// tenth reports whether the end of a pass over an item gets a line: the last pass, and
// one in each tenth of them.
func (l *StepLine) tenth() bool {
	return l.Iterations == l.Of || l.Iterations%max(l.Of/10, 1) == 0
}

// begins returns the line about the start of an attempt at a step.
func (s *Steps) begins(step string, attempt int) []Part {
	if l := s.Of(step); l != nil && (l.Step == step || l.loop.Items == nil) {
		return []Part{line(Plain, "▸ "+step+again(attempt))}
	}
	return nil
}

// Progress returns lines about an event of a workflow for an output that is never
// redrawn: the steps, and for a loop over items the failures and the progress.
func (s *Steps) Progress(e *event.Event) []Part {
	if s.Ledger != nil {
		return s.Ledger.Progress(e.Data)
	}
	switch d := e.Data.(type) {
	case event.ChildStarted:
		if d.BeginsStep() {
			return s.begins(d.Step, 1)
		}
	case event.StepStarted:
		return s.begins(d.Step, d.Attempt)
	case event.StepSkipped:
		if l := s.Of(d.Step); l != nil && (l.Step == d.Step || l.loop.Items == nil) {
			return []Part{line(Quiet, "- "+d.Step+" skipped: "+firstLine(d.Reason, 300))}
		}
	case event.StepFinished:
		return append(s.ended(d), s.Printed(e.Run, d)...)
	case event.Iteration:
		if l := s.byID[d.Step]; l != nil && (l.loop.Items == nil || l.tenth()) {
			return []Part{line(Quiet, "  "+d.Step+" "+l.count())}
		}
	case event.Checkpoint:
		return []Part{line(Quiet, "  "+d.Step+" "+CheckpointHead(d))}
	case event.JudgeVerdict:
		text := fmt.Sprintf("  %s judged: %s", d.Step, d.Verdict)
		if d.Failed {
			text = fmt.Sprintf("  %s: the judge gave no verdict", d.Step)
		}
		return []Part{line(Quiet, strings.TrimSuffix(text+", "+firstLine(d.Reason, 200), ", "))}
	}
	return nil
}

func again(attempt int) string {
	if attempt < 2 {
		return ""
	}
	return fmt.Sprintf("  attempt %d", attempt)
}

func (s *Steps) ended(d event.StepFinished) []Part {
	l := s.Of(d.Step)
	switch {
	case l == nil:
		return nil
	case l.Step == d.Step:
		return []Part{line(l.Tone(), strings.TrimSpace(l.At(s.Now).Text()))}
	case d.Status == event.StepStatusFailed:
		why := ""
		if d.Error != nil {
			why = ": " + firstLine(d.Error.Message, 300)
		}
		return []Part{line(Bad, "✗ "+d.Step+" failed"+why)}
	case l.loop.Items == nil:
		return []Part{line(Good, "✓ "+d.Step+" "+string(d.Status))}
	}
	return nil
}

// DoesStep reports whether a command with an id is a step, and not a condition that
// ends a loop.
func DoesStep(id string) bool { return !strings.Contains(id, "/") }

// How many lines of a command's output are shown below its step.
const (
	printedHead  = 4
	printedTail  = 4
	printedWidth = 200
)

// Printed returns the beginning and the end of the output of a step that the last event
// has ended. In a loop only failed items have it.
func (s *Steps) Printed(run string, d event.StepFinished) []Part {
	l := s.Of(d.Step)
	if l == nil || l.Step != d.Step && l.loop.Items != nil && d.Status != event.StepStatusFailed {
		return nil
	}
	lines := HeadAndTail(s.last, printedHead, printedTail)
	cut := len(lines) > 0 && len(lines) <= strings.Count(strings.Trim(s.last, "\r\n"), "\n")
	var parts []Part
	for _, text := range lines {
		text = strings.ReplaceAll(harmless(strings.TrimRight(text, " \r")), "\t", "    ")
		short := terminal.Clip(text, printedWidth)
		cut = cut || short != text
		parts = append(parts, line(Quiet, strings.TrimRight("    "+short, " ")))
	}
	if cut && s.Show != "" {
		parts = append(parts, line(Quiet, fmt.Sprintf("    all of it: %s runs show %s --step %s", s.Show, run, d.Step)))
	}
	return parts
}
