// Package external runs other agents as processes: it passes them their task and the
// environment that their owner allows, and reads their output for a report on their
// work. They run outside of every sandbox, because they need their own network, home
// and keys.
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

// The ways to pass a program its task.
const (
	// PromptArgument appends it as the last argument.
	PromptArgument = "argument"
	// PromptStdin writes it to the program's stdin.
	PromptStdin = "stdin"
	// PromptFile appends the name of a file that contains it as the last argument.
	PromptFile = "file"
)

// The variables that name a program's files.
const (
	// ResultVariable names the file for the program's result.
	ResultVariable = "PAWL_RESULT_FILE"
	// PromptVariable names the file with the task, if there is one.
	PromptVariable = "PAWL_PROMPT_FILE"
)

const (
	// longestArgument bounds the bytes of a task that is an argument.
	longestArgument = 32 << 10
	// mostResult bounds how much of a result is read, mostStderr how much is kept of
	// the end of stderr.
	mostResult = 1 << 20
	mostStderr = 2 << 10
	// mostSecret is how much more than is kept is searched for secrets.
	mostSecret = 64 << 10
)

// Options describe how the programs run.
type Options struct {
	// Shell sets where they run and their environment; its boxes are not used.
	Shell shell.Options
	// Prompt is how they get their tasks; empty means as an argument.
	Prompt string
	// Variables are added to the environment, as NAME=value; they may contain keys.
	Variables []string
	// Events reports that their output may be a stream of events.
	Events bool
	// Now is the clock for relative times of limits; nil is [time.Now].
	Now func() time.Time
}

// Commands runs the programs of machines. It first kills programs that a killed process
// of this user left behind.
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

// hand passes a program its task, its result file and its variables.
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

// ended returns how a program ended, with its report. It redacts texts before it cuts
// them, because a cut could leave half of a secret.
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

// failed reports whether a program ended without doing its work.
func failed(e *tool.Ended) bool {
	return e.Signal != "" || *e.ExitCode != 0 || e.Report != nil && e.Report.Failed != ""
}

// noteLimit records that a program failed because its provider's limit is reached. It
// ignores programs that succeeded, whose output may mention limits for other reasons.
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

// tail returns the end of a text, from the beginning of a line if there is one.
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

// lastLines returns the last lines, where a program reports why it ends. Earlier lines
// may be about anything.
func lastLines(text string) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}

// result returns the content of the program's result file.
func (r *room) result() string {
	f, err := os.OpenFile(r.file(resultFile), os.O_RDONLY|nonBlocking, 0) // if it is a pipe, there is no writer
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

// file returns the name of a file of the room.
func (r *room) file(name string) string { return filepath.Join(r.dir, name) }
