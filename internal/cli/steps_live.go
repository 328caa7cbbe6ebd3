package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/internal/view"
)

// The types of the view.
type (
	steps         = view.Steps
	stepLine      = view.StepLine
	stepState     = view.StepState
	iterationLine = view.IterationLine
)

// liveSteps returns at most most lines of a live tree, with the activity of the steps'
// runs. If the steps do not fit, it shows those in progress and those that failed, and
// counts the others.
func liveSteps(s *steps, most int, k ink, work *activity) []note {
	switch {
	case s.Ledger != nil:
		return bounded(append([]note{liveLoop(s.Ledger, s.Lines[0].At(s.Now), k)}, work.below(work.root, k, "  ", everyRun)...), most)
	case len(s.Lines) == 0:
		return bounded(work.below(work.root, k, "", everyRun), most)
	}
	all, rest := s.All(), map[stepState]int{}
	if over := len(all) - max(most, 2) + 1; len(all) > most {
		all = slices.DeleteFunc(all, func(l stepLine) bool {
			drop := over > 0 && l.State != view.StepRunning && l.State != view.StepFailed && l.State != view.StepParked
			if drop {
				over--
				rest[l.State]++
			}
			return drop
		})
		for len(all) > max(most-1, 1) {
			rest[all[len(all)-1].State]++
			all = all[:len(all)-1]
		}
	}
	var notes []note
	more := 0
	for _, l := range all {
		text, below := l.Text(), work.of(s, l.Step)
		if bar := k.part(l.Iterations, l.Of); bar != "" && l.State == view.StepRunning {
			text += "  " + bar
		}
		indent := strings.Repeat("  ", l.Depth+1)
		var under []note
		if len(below) == 1 && below[0].child.Of == l.Step {
			text += "  " + below[0].summary(k, l.Cost == nil, work.now)
			under = work.below(below[0], k, indent, everyRun)
		} else {
			under = work.below(work.root, k, indent, func(w *working) bool { return slices.Contains(below, w) })
		}
		notes = append(notes, note{toneStyle(l.Tone()), strings.TrimRight(text, " ")})
		if room := most - len(all) - 1 - more; room > 0 && len(under) > 0 {
			under = bounded(under, room)
			more += len(under)
			notes = append(notes, under...)
		}
	}
	var counted []string
	for _, state := range []stepState{view.StepCompleted, view.StepRunning, view.StepParked, view.StepWaiting, view.StepFailed, view.StepSkipped, view.StepCancelled} {
		if n := rest[state]; n > 0 {
			counted = append(counted, fmt.Sprintf("%d %s", n, state))
		}
	}
	if len(counted) > 0 {
		notes = append(notes, note{faint, "  and " + strings.Join(counted, ", ")})
	}
	return notes
}

// bounded returns at most most lines, the last of which counts those left out.
func bounded(notes []note, most int) []note {
	most = max(most, 1)
	if len(notes) <= most {
		return notes
	}
	left := len(notes) - most + 1
	return append(notes[:most-1:most-1], note{faint, fmt.Sprintf("  and %d more at work", left)})
}

// ring shows the progress of the loop: a full ring means that it used all
// of its iterations.
func ring(l *view.Ledger) string {
	const rings = "○◔◑◕●"
	n, quarters := l.Ended(), 0
	if n > 0 && l.Of > 0 {
		quarters = min(max(4*n/l.Of, 1), 4)
	}
	return string([]rune(rings)[quarters]) + " " + l.Count(n)
}

// learned returns the last entry of the log.
func learned(l *view.Ledger) string {
	for _, i := range slices.Backward(l.Lines) {
		if i.Learning != "" {
			return firstLine(i.Learning, 100)
		}
	}
	return ""
}

// liveLoop returns the live line of a loop.
func liveLoop(l *view.Ledger, all stepLine, k ink) note {
	parts := []string{ring(l)}
	if bar := k.part(l.Ended(), l.Of); bar != "" && all.State == view.StepRunning {
		parts = append(parts, bar)
	}
	if all.State == view.StepParked {
		parts = append(parts, string(all.State))
	}
	if all.Cost != nil {
		parts = append(parts, money(all.Cost, all.Used))
	}
	if all.Seconds >= 1 {
		parts = append(parts, lasting(float64(int(all.Seconds))))
	}
	if text := learned(l); text != "" {
		parts = append(parts, text)
	}
	return note{toneStyle(all.Tone()), strings.Join(parts, "  ")}
}
