package view

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/pawlrun/pawl/event"
)

// Ledger holds the iterations of a run that is a single refinement loop, in order.
type Ledger struct {
	Lines []*IterationLine
	// commands holds the running commands that judge an iteration, by id.
	commands map[string][]string
	// Of is how many iterations there may be.
	Of int
}

// IterationLine is one of them.
type IterationLine struct {
	Iteration int `json:"iteration"`
	// Run is the run that did it, and Exit why that ended, empty while it goes.
	Run    string       `json:"run,omitempty"`
	Exit   event.Reason `json:"exit,omitempty"`
	Failed bool         `json:"failed,omitempty"`
	// Tree identifies the content of the workspace at its end.
	Tree string `json:"tree,omitempty"`
	// Learning is its entry in the log.
	Learning string `json:"learning,omitempty"`
	// Judged lists the results of commands, expressions, judges and people.
	Judged []string `json:"judged,omitempty"`
	Spent
}

// Add applies an event of the loop's own run.
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
		l.judged(Judged(d, l.commands))
		delete(l.commands, d.ID)
	default:
		l.judged(Judged(d, l.commands))
	}
}

// begins returns the iteration that a child run starts, nil for none.
func (l *Ledger) begins(d event.ChildStarted) *IterationLine {
	_, index, found := strings.Cut(d.Step, ".")
	n, err := strconv.Atoi(index)
	if !found || err != nil || !d.BeginsStep() {
		return nil
	}
	return l.at(n + 1)
}

// at returns an iteration by its number, from 1.
func (l *Ledger) at(number int) *IterationLine {
	for len(l.Lines) < number {
		l.Lines = append(l.Lines, &IterationLine{Iteration: len(l.Lines) + 1})
	}
	return l.Lines[max(number, 1)-1]
}

// judged adds a judgement of the last iteration.
func (l *Ledger) judged(said string) {
	if n := len(l.Lines); n > 0 && said != "" {
		l.Lines[n-1].Judged = append(l.Lines[n-1].Judged, said)
	}
}

// Ended returns the number of iterations that have ended.
func (l *Ledger) Ended() (n int) {
	for _, i := range l.Lines {
		if i.Exit != "" {
			n++
		}
	}
	return n
}

// Count returns the progress of a loop.
func (l *Ledger) Count(number int) string {
	if l.Of == 0 {
		return strconv.Itoa(number)
	}
	return fmt.Sprintf("%d/%d", number, l.Of)
}

// short returns enough of a tree's hash to distinguish trees.
func (i *IterationLine) short() string {
	hash := i.Tree[strings.LastIndexByte(i.Tree, ':')+1:]
	return hash[:min(len(hash), 10)]
}

// Text returns the iteration in one line, followed by a line for each judgement.
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

// Progress returns lines about an event for an output that is never redrawn: the start
// of an iteration, its result, and its judgements.
func (l *Ledger) Progress(data event.Data) []Part {
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

// Judged returns what an event says about an iteration, "" for an event that judges none.
// commands holds the command lines by id.
func Judged(data event.Data, commands map[string][]string) string {
	switch d := data.(type) {
	case event.CommandFinished:
		return commandSaid(commands[d.ID], d)
	case event.ConditionEvaluated:
		return expressionSaid(d)
	case event.JudgeVerdict:
		return judgeSaid(d)
	case event.ReviewResolved:
		return reviewSaid(d)
	}
	return ""
}
