// Package external runs other agents as processes of their own: with the task that
// they are given, the environment that their owner lets them have, and what their
// output says of their work. They run outside of every sandbox, because they need
// their own network, home and keys.
package external

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/shell"
)

// The ways in which a program is given its task.
const (
	// PromptArgument puts it behind the last argument.
	PromptArgument = "argument"
	// PromptStdin lets the program read it.
	PromptStdin = "stdin"
	// PromptFile puts the name of a file that has it behind the last argument.
	PromptFile = "file"
)

// The variables by which a program finds its files.
const (
	// ResultVariable names the file into which it may write its result.
	ResultVariable = "PAWL_RESULT_FILE"
	// PromptVariable names the file that has its task, where there is one.
	PromptVariable = "PAWL_PROMPT_FILE"
)

const (
	// longestArgument is how many bytes a task has at most that is an argument.
	longestArgument = 32 << 10
	// mostResult bounds what is read of a result, mostStderr the end of what was
	// printed as errors.
	mostResult = 1 << 20
	mostStderr = 2 << 10
	// mostSecret is how much more than is kept is looked through for secrets.
	mostSecret = 64 << 10
)

// Options are how the programs are run.
type Options struct {
	// Shell says where they run and what they see; its boxes are not used.
	Shell shell.Options
	// Prompt is how they are given their tasks; empty is as an argument.
	Prompt string
	// Variables are what they see beside what commands do, as NAME=value, keys too.
	Variables []string
	// Events says that their output may be a stream of events.
	Events bool
	// Now is the clock by which they say when a limit ends; nil is [time.Now].
	Now func() time.Time
}

// Commands runs the programs that machines ask for. What was left over of those that
// a killed process of this user's had begun is killed first.
func Commands(o Options) tool.Commands {
	o.Shell.Sandbox, o.Shell.Bare = nil, nil
	if o.Now == nil {
		o.Now = time.Now
	}
	sweep()
	return commands{o, shell.Commands(o.Shell)}
}

type commands struct {
	Options
	tool.Commands
}

// Run implements [tool.Commands]. The task is the command's input.
func (o commands) Run(ctx context.Context, c tool.Invocation) (tool.Ended, error) {
	if len(c.Stdin) == 0 {
		return tool.Ended{}, &tool.Error{Type: event.ErrorInvalidArgs, Message: "there is no task for the program"}
	}
	p, err := o.Shell.Program(tool.Invocation{Argv: c.Argv})
	if err != nil {
		return tool.Ended{}, err
	}
	room, err := newRoom()
	if err != nil {
		return tool.Ended{}, err
	}
	defer room.leave()
	if err := o.hand(&p, room, c.Stdin); err != nil {
		return tool.Ended{}, err
	}
	p.MaxOutput, p.OnOutput = shell.MaxOutput, c.Printed
	var stream Stream
	if o.Events {
		p.Copy = &stream
	}
	end, err := p.Run(ctx)
	if err != nil && ctx.Err() == nil {
		return tool.Ended{}, fmt.Errorf("the program could not be started: %w", err)
	}
	if c.Redact == nil {
		c.Redact = func(text string) string { return text }
	}
	e := ended(end, room, stream.Report(), c.Redact)
	if err == nil && failed(&e) {
		o.noteLimit(&e, stream.limit, c.Redact)
	}
	return e, err
}

// hand gives a program its task, its result file and its variables.
func (o commands) hand(p *shell.Program, room *room, task []byte) error {
	p.Env = append(append(p.Env, o.Variables...), ResultVariable+"="+room.file(resultFile))
	how := cmp.Or(o.Prompt, PromptArgument)
	if how == PromptStdin {
		p.Input = task
		return nil
	}
	if how == PromptArgument && len(task) <= longestArgument {
		p.Words = append(p.Words, string(task))
		return nil
	}
	file := room.file(promptFile)
	if err := os.WriteFile(file, task, 0o600); err != nil {
		return err
	}
	p.Env = append(p.Env, PromptVariable+"="+file)
	if how == PromptFile {
		p.Words = append(p.Words, file)
		return nil
	}
	p.Words = append(p.Words, "Your task is too long for a command line. It is in the file "+file+". Read that file to its end, then do what it says.")
	return nil
}

// ended is how a program ended, and what it said of its work. What it said is looked
// through for secrets before it is cut, or half of one could be left.
func ended(end shell.Ended, room *room, report event.CommandReport, redact func(string) string) tool.Ended {
	stdout, _ := tool.Screen(end.Stdout)
	stderr, _ := tool.Screen(end.Stderr)
	e := tool.Ended{Output: stdout, Truncated: end.Cut, Stderr: tail(stderr, redact), Untrusted: true, Private: true}
	if e.Signal = end.Signal; end.Signal == "" {
		e.ExitCode = &end.Code
	}
	report.Text, report.Failed = upTo(redact(report.Text), mostResult), upTo(redact(report.Failed), mostStderr)
	if report.Result = upTo(redact(room.result()), mostResult); report != (event.CommandReport{}) {
		e.Report = &report
	}
	return e
}

// failed reports whether a program ended and did not do its work.
func failed(e *tool.Ended) bool {
	return e.Signal != "" || *e.ExitCode != 0 || e.Report != nil && e.Report.Failed != ""
}

// noteLimit says of a program that failed whether it did because its provider's limit
// is reached. What one that did its work says of limits is its work's matter.
func (o commands) noteLimit(e *tool.Ended, l limit, redact func(string) string) {
	said := []string{e.Stderr}
	switch {
	case e.Report == nil:
		e.Report = &event.CommandReport{}
		fallthrough
	case e.Report.Form == "":
		said = append(said, tail(e.Output, redact))
	default:
		said = append(said, e.Report.Failed)
	}
	for _, text := range said {
		if l.said == "" {
			l = limitIn(lastLines(text), o.Now())
		}
	}
	e.Report.Limited, e.Report.Until = l.said, l.until
	if *e.Report == (event.CommandReport{}) {
		e.Report = nil
	}
}

// tail is the end of a text, from the beginning of a line where there is one.
func tail(text string, redact func(string) string) string {
	text = redact(strings.TrimSpace(text[max(0, len(text)-mostSecret):]))
	if len(text) <= mostStderr {
		return text
	}
	text = strings.ToValidUTF8(text[len(text)-mostStderr:], "")
	if _, rest, found := strings.Cut(text, "\n"); found {
		text = rest
	}
	return "… " + text
}

// lastLines are those in which a program says why it ends. What stands before them
// may be about anything.
func lastLines(text string) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}

// result is what the program wrote into its file.
func (r *room) result() string {
	f, err := os.OpenFile(r.file(resultFile), os.O_RDONLY|nonBlocking, 0) // a pipe in its place has no writer
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	text, err := io.ReadAll(io.LimitReader(f, mostResult+mostSecret))
	if err != nil && !errors.Is(err, io.EOF) {
		return ""
	}
	return strings.ToValidUTF8(string(text), "\uFFFD")
}

// file is the name of a file of the room.
func (r *room) file(name string) string { return filepath.Join(r.dir, name) }
