package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/engine/drive"
)

// edit reads other arguments until the tool accepts them, because a slip must not
// use up the question. Empty or unchanged arguments return to the question.
func (q *prompter) edit(ctx context.Context, pending event.Question) (json.RawMessage, error) {
	call, _ := pending.Asking.(event.ToolPendingApproval)
	run, _ := cutCall(call.CallID)
	given := indented(call.Args)
	for draft := given; ; {
		text, err := q.other(ctx, draft)
		if err != nil || text == "" || text == given {
			return nil, err
		}
		wrong, is := errors.AsType[*control.ArgsError](q.check(ctx, control.Pending{Run: run, Open: drive.Open{Question: pending}}, json.RawMessage(text)))
		if !is { // even if it is unknown here: the run checks again
			q.p.ask(faint, "  changed to "+oneLine(text)+"\n")
			return json.RawMessage(text), nil
		}
		q.p.ask(red, "  "+oneLine(wrong.Message)+"\n")
		if draft = text; q.editor == "" {
			continue
		}
		if again, err := q.line(ctx, "  [e]dit again, or Enter for the question: "); err != nil || decision(again).Kind != event.ApprovalEdited {
			return nil, err
		}
	}
}

// other reads the person's arguments: from an editor, or from a line without one.
func (q *prompter) other(ctx context.Context, draft string) (string, error) {
	if q.editor == "" {
		q.p.ask(faint, "  (where $EDITOR is set, e opens the arguments in it)\n")
		line, err := q.line(ctx, "  arguments as a JSON object on one line: ")
		return strings.TrimSpace(line), err
	}
	text, err := q.inEditor(ctx, draft)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		q.p.ask(red, "  "+oneLine(err.Error())+"\n")
		return "", nil
	}
	return strings.TrimSpace(text), nil
}

// inEditor opens a text in the person's editor, which uses the terminal meanwhile.
func (q *prompter) inEditor(ctx context.Context, text string) (string, error) {
	dir, err := os.MkdirTemp("", "pawl-edit-")
	if err != nil {
		return "", fmt.Errorf("make a file for the editor: %w", err)
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "arguments.json")
	if err := os.WriteFile(name, []byte(text+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("make a file for the editor: %w", err)
	}
	if err := q.runEditor(ctx, name); err != nil {
		return "", fmt.Errorf("the editor %s: %w; the arguments are as they were", q.editor, err)
	}
	b, err := readFileBounded(name)
	if err != nil {
		return "", fmt.Errorf("read what the editor wrote: %w", err)
	}
	return string(b), textual("what the editor wrote", string(b))
}

// runEditor gives the terminal to the editor, the command line of $EDITOR, and
// restores its state afterwards.
func (q *prompter) runEditor(ctx context.Context, name string) error {
	terminal := q.keys.terminal
	if q.suspend != nil {
		resume, err := q.suspend()
		if err != nil {
			return err
		}
		defer resume()
		terminal, _ = q.p.w.(*os.File)
	}
	c := exec.CommandContext(ctx, "/bin/sh", "-c", q.editor+` "$1"`, "sh", name)
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = 2 * time.Second
	c.Stdout, c.Stderr = q.p.w, io.Discard
	if f, is := q.p.w.(*os.File); is {
		c.Stderr = f
	}
	if terminal != nil {
		c.Stdin = terminal
		if state, err := term.GetState(int(terminal.Fd())); err == nil {
			defer func() { _ = term.Restore(int(terminal.Fd()), state) }()
		}
		defer forgetTyped(terminal)
	}
	return c.Run()
}

// indented formats arguments for editing.
func indented(args json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, args, "", "  ") != nil {
		return strings.TrimSpace(string(args))
	}
	return b.String()
}
