package shell

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
)

// Commands runs the commands of machines like those of shell.exec: in the same box,
// with the same environment, and judged by the same facts.
func Commands(o Options) tool.Commands { return commands{o.withDefaults()} }

type commands struct{ Options }

// Facts implements [tool.Commands]: the facts of the argv as a command line.
func (o commands) Facts(c tool.Invocation) (event.Facts, event.Labels) {
	facts := o.facts(line(c))
	return facts, o.labels(nil, &facts)
}

// Run implements [tool.Commands].
func (o commands) Run(ctx context.Context, c tool.Invocation) (tool.Ended, error) {
	now, labels := o.Facts(c)
	if c.Facts != nil {
		if err := asJudged(c.Facts, now); err != nil {
			return tool.Ended{}, err
		}
	}
	end, err := o.execute(ctx, c)
	if err != nil {
		return tool.Ended{}, err
	}
	e := tool.Ended{
		Untrusted: labels.Untrusted || end.fetched(), Private: labels.Private, Reached: end.reached, Changed: end.changed,
	}
	e.Output, e.Truncated = end.out.text(end.note, c.Redact)
	e.Output, _ = onScreen(end.note, e.Output)
	e.Output = withLine(e.Output, o.closedNote(end, e.Output, c.Facts, o.boxed(c.Sandbox)))
	if end.signal != 0 {
		e.Signal = end.signal.String()
	} else {
		e.ExitCode = &end.code
	}
	if end.stopped {
		return e, ctx.Err()
	}
	return e, nil
}

// line returns a command as a shell command line.
func line(c tool.Invocation) string {
	words := make([]string, len(c.Argv))
	for i, w := range c.Argv {
		words[i] = quoted(w)
	}
	return strings.Join(words, " ")
}

func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// process returns the process for a command. An error says why it cannot be started.
func (o Options) process(c tool.Invocation) (process, error) {
	refused := func(kind event.ErrorType, format string, args ...any) (process, error) {
		return process{}, &tool.Error{Type: kind, Message: fmt.Sprintf(format, args...)}
	}
	switch {
	case len(c.Argv) == 0 || c.Argv[0] == "":
		return refused(event.ErrorInvalidArgs, "the command is empty")
	case slices.ContainsFunc(c.Argv, func(w string) bool { return strings.ContainsRune(w, 0) }):
		return refused(event.ErrorInvalidArgs, "the command has a NUL byte in it")
	}
	if err := o.here(); err != nil {
		return process{}, err
	}
	p := process{argv: slices.Clone(c.Argv), dir: o.Dir, input: c.Stdin}
	p.env = append(append(slices.Clone(o.Env), c.Env...), "PWD="+p.dir)
	if p.argv[0] = o.find(c.Argv[0], p.dir); p.argv[0] == "" {
		return refused(event.ErrorNotStarted, "the command could not be started: there is no program %s", c.Argv[0])
	}
	return p, nil
}

// find returns the file of a program that is called by a name in a directory; empty if
// there is none.
func (o Options) find(name, dir string) string {
	candidates := []string{name}
	if !strings.ContainsRune(name, '/') {
		candidates = nil
		for _, in := range filepath.SplitList(o.variable("PATH")) {
			if filepath.IsAbs(in) {
				candidates = append(candidates, filepath.Join(in, name))
			}
		}
	}
	for _, file := range candidates {
		if !filepath.IsAbs(file) {
			file = filepath.Join(dir, file)
		}
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file
		}
	}
	return ""
}
