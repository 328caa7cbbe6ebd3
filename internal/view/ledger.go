package view

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

// Ledger holds the iterations of a run that is one refinement loop, in their order.
type Ledger struct {
	Lines []*IterationLine
	// commands are the commands under way that look at an iteration, by their ids.
	commands map[string][]string
	// Of is how many iterations there may be.
	Of int
}

func newLedger(of *plan.Loop) *Ledger {
	return &Ledger{commands: map[string][]string{}, Of: of.Max}
}

// IterationLine is one of them.
type IterationLine struct {
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
	Spent
}

// Add takes in an event of the loop's own run.
func (l *Ledger) Add(data event.Data) {
	switch d := data.(type) {
	case event.ChildStarted:
		if i := l.begins(d); i != nil {
			i.Run = d.Child
		}
	case event.Iteration:
		i := l.at(d.Number)
		l.Of, i.Tree = d.MaxIterations, d.Tree
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

// begins is the iteration that a run begins, nil for a run that begins none.
func (l *Ledger) begins(d event.ChildStarted) *IterationLine {
	_, index, found := strings.Cut(d.Step, ".")
	n, err := strconv.Atoi(index)
	if !found || err != nil || !d.BeginsStep() {
		return nil
	}
	return l.at(n + 1)
}

// at is an iteration by its number, from 1.
func (l *Ledger) at(number int) *IterationLine {
	for len(l.Lines) < number {
		l.Lines = append(l.Lines, &IterationLine{Iteration: len(l.Lines) + 1})
	}
	return l.Lines[max(number, 1)-1]
}

// judged adds what was said of the last iteration.
func (l *Ledger) judged(said string) {
	if n := len(l.Lines); n > 0 && said != "" {
		l.Lines[n-1].Judged = append(l.Lines[n-1].Judged, said)
	}
}

// Ended are the iterations that have.
func (l *Ledger) Ended() (n int) {
	for _, i := range l.Lines {
		if i.Exit != "" {
			n++
		}
	}
	return n
}

// Count is how far a loop is.
func (l *Ledger) Count(number int) string {
	if l.Of == 0 {
		return strconv.Itoa(number)
	}
	return fmt.Sprintf("%d/%d", number, l.Of)
}

// short is as much of a tree's hash as tells two of them apart.
func (i *IterationLine) short() string {
	hash := i.Tree[strings.LastIndexByte(i.Tree, ':')+1:]
	return hash[:min(len(hash), 10)]
}

// Text is the iteration in one line, and below it one for each that judged it.
func (i *IterationLine) Text(number string) (lines []string) {
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
		parts = append(parts, Money(i.Cost, i.Used))
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

// Told are the lines about an event where nothing is drawn again: an iteration that
// begins, what it came to, and who judged it how.
func (l *Ledger) Told(data event.Data) []Part {
	switch d := data.(type) {
	case event.ChildStarted:
		if i := l.begins(d); i != nil {
			return []Part{line(Plain, "▸ iteration "+l.Count(i.Iteration))}
		}
	case event.Progress:
		i := l.at(d.Number)
		tone, mark := Good, "✓"
		if i.Failed {
			tone, mark = Bad, "✗"
		}
		return []Part{line(tone, i.Text(fmt.Sprintf("%s iteration %s", mark, l.Count(i.Iteration)))[0])}
	case event.Checkpoint:
		return []Part{line(Quiet, "  "+d.Step+" "+CheckpointHead(d))}
	case event.CommandFinished, event.ConditionEvaluated, event.JudgeVerdict:
		if n := len(l.Lines); n > 0 && len(l.Lines[n-1].Judged) > 0 {
			return []Part{line(Quiet, "  "+firstLine(l.Lines[n-1].Judged[len(l.Lines[n-1].Judged)-1], 160))}
		}
	}
	return nil
}
