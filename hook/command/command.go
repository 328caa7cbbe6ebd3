// Package command runs programs as hooks: each receives its event as JSON on its
// input, and a gate decides by how it ends. Exit code 0 allows the call, with an
// optional JSON object on stdout for details; 2 blocks, with stderr as the reason;
// anything else is a failure, and so is output that a process left behind by the
// program still holds open a second after the program's end.
package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/hook"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/shell"
)

// exitBlock is the exit code with which a gate blocks.
const exitBlock = 2

// maxOutput bounds the bytes of an answer; a longer one is invalid.
const maxOutput = 1 << 20

// Command is a program that runs as a hook. It runs in the workspace and outside of any
// sandbox of the model's commands, and its environment is the allow-list of
// [shell.Environment]. The model may write in the workspace, so a program must load no
// code from its working directory.
type Command struct {
	// Words are the program and its arguments, without a shell. A word that begins with
	// "./" or "../", and a program with a "/" in its name, is relative to FileDir. Line
	// is a command line for /bin/sh instead.
	Words []string
	Line  string
	// FileDir is the directory of the file that names the hook. The program
	// finds it as $PAWL_AGENT_DIR.
	FileDir   string
	Workspace string
	// Observer reports that the program's answer has no effect.
	Observer bool
	// Env is the environment to filter; nil means this process's.
	Env []string
}

// Run runs the program; see [hook.Hook].
func (c Command) Run(ctx context.Context, told hook.Call) (hook.Answer, error) {
	input, err := encode(told, c.Workspace)
	if err != nil {
		return hook.Answer{}, err
	}
	p := shell.Program{Words: c.words(), Dir: c.Workspace, Env: c.environment(), Input: input, MaxOutput: maxOutput}
	e, err := p.Run(ctx)
	if err != nil {
		return hook.Answer{}, err
	}
	switch {
	case e.Code == exitBlock && !c.Observer:
		return hook.Answer{Decision: event.HookBlock, Reason: stderrText(e)}, nil
	case e.Code != 0:
		return hook.Answer{}, failure(e)
	case c.Observer:
		return hook.Answer{}, nil
	case e.Cut:
		return hook.Answer{}, fmt.Errorf("its answer has more than %d bytes", maxOutput)
	case e.Left:
		return hook.Answer{}, errors.New("it has left something behind that holds its output, so its answer may not be whole; " +
			"let it wait for what it starts, or give that another output")
	}
	return decode([]byte(e.Stdout), told)
}

func failure(e shell.Ended) error {
	how := fmt.Sprintf("it ended with exit code %d", e.Code)
	if e.Signal != "" {
		how = "it was ended by a signal: " + e.Signal
	}
	if said := stderrText(e); said != "" {
		how += ": " + said
	}
	return errors.New(how)
}

// stderrText returns a program's stderr, as a terminal would show it.
func stderrText(e shell.Ended) string {
	text, _ := tool.Screen(e.Stderr)
	return strings.TrimSpace(text)
}

func (c Command) environment() []string {
	env := c.Env
	if env == nil {
		env = os.Environ()
	}
	return append(shell.Environment(env), "PAWL_AGENT_DIR="+c.FileDir)
}

// Argv returns the program and its arguments, with relative paths resolved.
func (c Command) Argv() []string { return c.words() }

func (c Command) words() []string {
	if c.Line != "" {
		return []string{"/bin/sh", "-c", c.Line}
	}
	words := slices.Clone(c.Words)
	for i, w := range words {
		if ours(i, w) {
			words[i] = filepath.Join(c.FileDir, w)
		}
	}
	return words
}

// ours reports whether a word names a file relative to the file that names the
// hook.
func ours(i int, word string) bool {
	return strings.HasPrefix(word, "./") || strings.HasPrefix(word, "../") ||
		i == 0 && strings.Contains(word, "/") && !filepath.IsAbs(word)
}

// Check returns an error if the program cannot run. It does not check a command line.
func (c Command) Check() error {
	if c.Line != "" {
		return nil
	}
	program := c.words()[0]
	if !strings.Contains(program, "/") {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%s is not found in $PATH", program)
		}
		return nil
	}
	info, err := os.Stat(program)
	switch {
	case err != nil:
		return fmt.Errorf("%s is not there", program)
	case info.IsDir():
		return fmt.Errorf("%s is a directory", program)
	case info.Mode()&0o111 == 0:
		return fmt.Errorf("%s is not executable", program)
	}
	return nil
}

// empty reports whether a program printed only white space.
func empty(out []byte) bool { return len(bytes.TrimSpace(out)) == 0 }
