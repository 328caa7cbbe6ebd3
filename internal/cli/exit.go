package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal"
)

// The exit codes.
const (
	exitOK        = 0
	exitFailed    = 1
	exitUsage     = 2
	exitStopped   = 3
	exitParked    = 4
	exitCancelled = 130
)

// exitError ends the process with a code. The message, if any, is printed.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func usageError(err error) error { return &exitError{code: exitUsage, err: err} }

func usagef(format string, args ...any) error { return usageError(fmt.Errorf(format, args...)) }

// failure marks an error of the work itself, not of the command line.
func failure(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*exitError](err); ok {
		return err
	}
	return &exitError{code: exitFailed, err: err}
}

// halfway marks an error after a part of the work was done: it is no longer a usage
// error, and the message must list what exists.
func halfway(done string, err error) error {
	exit, ok := errors.AsType[*exitError](err)
	if !ok || exit.code != exitUsage {
		return err
	}
	return &exitError{code: exitFailed, err: fmt.Errorf("%s, but the run does not continue: %s", done, control.Plain(exit.err))}
}

// exitOf returns the exit code of an outcome.
func exitOf(o *event.Outcome) int {
	switch {
	case o.Status == event.StatusCancelled:
		return exitCancelled
	case o.OK:
		return exitOK
	case o.Status == event.StatusStopped:
		return exitStopped
	}
	return exitFailed
}

// exitOfState returns the exit code of a run without a driver.
func exitOfState(s machine.State) int {
	switch {
	case s.Outcome != nil:
		return exitOf(s.Outcome)
	case s.Parked != nil && s.Parked.Reason == event.ParkInterrupted:
		return exitCancelled
	}
	return exitParked
}

// withCode returns nil for success, and otherwise an error that only carries the
// code.
func withCode(code int) error {
	if code == exitOK {
		return nil
	}
	return &exitError{code: code}
}

// brokenPipe reports whether the reader of the output is gone.
func brokenPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }

// describe returns an error's text for people: the thing, the place and the next
// step. It leaves out the stack of a panic, which is for Pawl's developers.
func (a *app) describe(err error) string {
	if held, ok := errors.AsType[*journal.HeldError](err); ok {
		return fmt.Sprintf("run %s is being driven by %s; watch it with '%s runs log %s --follow'",
			held.Run, control.Driver(held.Owner), a.invocation(), held.Run)
	}
	if forked, ok := errors.AsType[*journal.ForkedError](err); ok {
		forks := strings.Join(forked.Forks, ", ")
		return fmt.Sprintf("run %s is shared by its forks (%s) and stays as long as they do; remove those first with 'pawl runs rm'", forked.Run, forks)
	}
	if inside, ok := errors.AsType[*launch.JournalError](err); ok {
		return moveJournal(inside)
	}
	for _, known := range []struct {
		is   error
		text string
	}{
		{journal.ErrNewer, "the journal %[1]s was written by a newer version of Pawl and was left untouched; use that version, or name another journal with --journal"},
		{agent.ErrUnsupported, "a run of the journal %[1]s was written by a newer version of Pawl and was left untouched; use that version to resume it"},
		{journal.ErrReadOnly, "the journal %[1]s cannot be written; change its permissions, or name another journal with --journal"},
		{journal.ErrLocked, "the journal %[1]s has been locked by another process for too long; nothing in it is lost. When that process is done, '%[2]s runs' lists the runs that '%[2]s runs resume' can continue"},
		{journal.ErrStale, "another process took this run over, because this one had stopped for too long; its work is in the journal %[1]s, and '%[2]s runs' shows the run's state"},
		{journal.ErrForeign, "%[1]s exists and is not a journal; name another file with --journal"},
		{journal.ErrReplaced, "the journal %[1]s was deleted or replaced while it was open; stop the program that did it and check the file that is there now"},
		{journal.ErrIO, "the disk of the journal %[1]s failed; check the disk, then the journal with '%[2]s runs verify --all', then continue with '%[2]s runs resume'"},
		{journal.ErrFull, "there is no space left for the journal %[1]s; nothing in it is lost. Free some space; '%[2]s runs' then lists the runs that '%[2]s runs resume' can continue"},
	} {
		if errors.Is(err, known.is) {
			return fmt.Sprintf(known.text, a.journalPath, a.invocation())
		}
	}
	text := withoutStack(control.Plain(err))
	if _, run := errors.AsType[*journal.CorruptError](err); errors.Is(err, journal.ErrCorrupt) && !run {
		text += fmt.Sprintf("; restore %s from a backup, or name another journal with --journal", a.journalPath)
	}
	if errors.Is(err, fs.ErrPermission) && strings.Contains(text, "journal") {
		text += "; name another journal with --journal"
	}
	return text
}

// withoutStack cuts the stack off an error of a panic.
func withoutStack(s string) string {
	if os.Getenv("PAWL_DEBUG") != "" {
		return s
	}
	s, _, _ = strings.Cut(s, "\ngoroutine ")
	return s
}
