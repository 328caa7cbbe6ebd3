package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/rules/plan"
	"github.com/pawlrun/pawl/llm"
)

// ledger holds the iterations of a run that is one refinement loop, in their order.
type ledger struct {
	lines []*iterationLine
	byRun map[string]*iterationLine
	// commands are the commands under way that look at an iteration, by their ids.
	commands map[string][]string
	// of is how many iterations there may be.
	of int
}

func newLedger(of *plan.Loop) *ledger {
	return &ledger{byRun: map[string]*iterationLine{}, commands: map[string][]string{}, of: of.Max}
}

// iterationLine is one of them.
type iterationLine struct {
	Iteration int `json:"iteration"`
	// Run is the run that did it, and Exit why that ended, empty while it goes.
	Run    string       `json:"run,omitempty"`
	Exit   event.Reason `json:"exit,omitempty"`
	Failed bool         `json:"failed,omitempty"`
	// Tree identifies what the workspace held at its end.
	Tree string `json:"tree,omitempty"`
	// Learning is what the log keeps of it.
	Learning string `json:"learning,omitempty"`
	// Judged is what commands, expressions, judges and people said of it.
	Judged []string `json:"judged,omitempty"`
	spent
}

// add takes in an event of the loop's own run.
func (l *ledger) add(data event.Data) {
	switch d := data.(type) {
	case event.ChildStarted:
		if _, index, found := strings.Cut(d.Step, "."); found && d.BeginsStep() {
			if n, err := strconv.Atoi(index); err == nil {
				i := l.at(n + 1)
				i.Run, l.byRun[d.Child] = d.Child, i
			}
		}
	case event.ChildFinished:
		if i := l.byRun[d.Child]; i != nil {
			i.Exit, i.Failed = d.Outcome.Reason, !d.Outcome.OK
		}
	case event.BudgetCommitted:
		if i := l.byRun[d.Run]; i != nil && d.Usage != nil {
			i.spend(*d.Usage, llm.Cost{USD: d.USD, Priced: d.Priced})
		}
	case event.Iteration:
		i := l.at(d.Number)
		l.of, i.Tree = d.MaxIterations, d.Tree
		if d.Exit != "" {
			i.Exit = d.Exit
		}
	case event.Progress:
		l.at(d.Number).Learning = d.Learning
	case event.CommandStarted:
		l.commands[d.ID] = d.Argv
	case event.CommandFinished:
		l.judged(commandSaid(l.commands[d.ID], d))
		delete(l.commands, d.ID)
	case event.ConditionEvaluated:
		l.judged(expressionSaid(d))
	case event.JudgeVerdict:
		l.judged(judgeSaid(d))
	case event.ReviewResolved:
		l.judged(reviewSaid(d))
	}
}

// at is an iteration by its number, from 1.
func (l *ledger) at(number int) *iterationLine {
	for len(l.lines) < number {
		l.lines = append(l.lines, &iterationLine{Iteration: len(l.lines) + 1})
	}
	return l.lines[max(number, 1)-1]
}

// judged adds what was said of the last iteration.
func (l *ledger) judged(said string) {
	if n := len(l.lines); n > 0 && said != "" {
		l.lines[n-1].Judged = append(l.lines[n-1].Judged, said)
	}
}

// ended are the iterations that have.
func (l *ledger) ended() (n int) {
	for _, i := range l.lines {
		if i.Exit != "" {
			n++
		}
	}
	return n
}

// count is how far a loop is.
func (l *ledger) count(number int) string {
	if l.of == 0 {
		return strconv.Itoa(number)
	}
	return fmt.Sprintf("%d/%d", number, l.of)
}

// ring is how far the loop is at a glance (RON-32): full is one that had all of its
// iterations.
func (l *ledger) ring() string {
	const rings = "○◔◑◕●"
	n, quarters := l.ended(), 0
	if n > 0 && l.of > 0 {
		quarters = min(max(4*n/l.of, 1), 4)
	}
	return string([]rune(rings)[quarters]) + " " + l.count(n)
}

// learned is the last thing that the log was told.
func (l *ledger) learned() string {
	for _, i := range slices.Backward(l.lines) {
		if i.Learning != "" {
			return firstLine(i.Learning, 100)
		}
	}
	return ""
}

// short is as much of a tree's hash as tells two of them apart.
func (i *iterationLine) short() string {
	hash := i.Tree[strings.LastIndexByte(i.Tree, ':')+1:]
	return hash[:min(len(hash), 10)]
}

// said is the iteration in one line, and below it one for each that judged it.
func (i *iterationLine) said(number string) (lines []string) {
	parts := []string{number}
	if i.Exit != "" {
		parts = append(parts, string(i.Exit))
	}
	for _, part := range []string{i.Run, i.short()} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if i.Cost != nil {
		parts = append(parts, money(i.Cost, i.used))
	}
	if i.Learning != "" {
		parts = append(parts, firstLine(i.Learning, 80))
	}
	lines = append(lines, strings.Join(parts, "  "))
	for _, judged := range i.Judged {
		lines = append(lines, "    "+firstLine(judged, 160))
	}
	return lines
}

func commandSaid(argv []string, d event.CommandFinished) string {
	how := cmp.Or(d.Error, "did not run")
	switch {
	case d.Signal != "":
		how = "was ended by " + d.Signal
	case d.ExitCode != nil:
		how = fmt.Sprintf("exited with %d", *d.ExitCode)
	}
	return strings.Join(argv, " ") + ": " + how
}

func expressionSaid(d event.ConditionEvaluated) string {
	return d.Expression + ": " + cmp.Or(d.Error, string(d.Value))
}

func judgeSaid(d event.JudgeVerdict) string {
	if d.Failed {
		return strings.TrimSuffix("the judge gave no verdict: "+d.Reason, ": ")
	}
	return strings.TrimSuffix("judged: "+string(d.Verdict)+", "+d.Reason, ", ")
}

func reviewSaid(d event.ReviewResolved) string {
	text := d.LoopID + " " + string(d.Kind)
	if d.Approver != "" {
		text += " by " + d.Approver
	}
	return strings.TrimSuffix(text+": "+d.Reason, ": ")
}

// live is the line of a loop that is drawn again and again.
func (l *ledger) live(all stepLine, k ink) note {
	parts := []string{l.ring()}
	if bar := k.part(l.ended(), l.of); bar != "" && all.State == stepRunning {
		parts = append(parts, bar)
	}
	if all.State == stepParked {
		parts = append(parts, string(all.State))
	}
	if all.Cost != nil {
		parts = append(parts, money(all.Cost, all.used))
	}
	if all.Seconds >= 1 {
		parts = append(parts, lasting(float64(int(all.Seconds))))
	}
	if learned := l.learned(); learned != "" {
		parts = append(parts, learned)
	}
	return note{all.style(), strings.Join(parts, "  ")}
}

// notes are the lines about an event where nothing is drawn again: an iteration that
// begins, what it came to, and who judged it how.
func (l *ledger) notes(data event.Data) []note {
	switch d := data.(type) {
	case event.ChildStarted:
		if i := l.byRun[d.Child]; i != nil {
			return []note{{plain, "▸ iteration " + l.count(i.Iteration)}}
		}
	case event.Progress:
		i := l.at(d.Number)
		st, mark := green, "✓"
		if i.Failed {
			st, mark = red, "✗"
		}
		return []note{{st, i.said(fmt.Sprintf("%s iteration %s", mark, l.count(i.Iteration)))[0]}}
	case event.Checkpoint:
		return []note{{faint, "  " + d.Step + " " + checkpointHead(d)}}
	case event.CommandFinished, event.ConditionEvaluated, event.JudgeVerdict:
		if n := len(l.lines); n > 0 && len(l.lines[n-1].Judged) > 0 {
			return []note{{faint, "  " + firstLine(l.lines[n-1].Judged[len(l.lines[n-1].Judged)-1], 160)}}
		}
	}
	return nil
}
