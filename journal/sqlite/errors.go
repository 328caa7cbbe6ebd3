package sqlite

import (
	"errors"
	"fmt"

	"github.com/pawlrun/pawl/journal"
	moderncsqlite "modernc.org/sqlite"
)

// The primary result codes of SQLite that mean something to a caller.
const (
	codeBusy     = 5
	codeReadOnly = 8
	codeFull     = 13
)

// classify wraps a driver's error with the journal's own, where it has one.
func classify(err error) error {
	e, ok := errors.AsType[*moderncsqlite.Error](err)
	if !ok {
		return err
	}
	switch e.Code() & 0xff {
	case codeBusy:
		return fmt.Errorf("%w: %w", journal.ErrLocked, err)
	case codeReadOnly:
		return fmt.Errorf("%w: %w", journal.ErrReadOnly, err)
	case codeFull:
		return fmt.Errorf("%w: %w", journal.ErrFull, err)
	}
	return err
}
