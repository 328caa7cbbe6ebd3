package journal

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Errors that callers branch on.
var (
	// ErrNotFound: there is no such run, blob or event.
	ErrNotFound = errors.New("journal: not found")
	// ErrExists: a run with that id exists.
	ErrExists = errors.New("journal: run exists")
	// ErrStale: the lease was lost; its former holder must stop at once.
	ErrStale = errors.New("journal: stale lease")
	// ErrEnded: the run has ended and accepts no more commands.
	ErrEnded = errors.New("journal: run has ended")
	// ErrNewer: a newer version wrote the journal.
	ErrNewer = errors.New("journal: written by a newer version")
	// ErrFull: there is no space left; nothing was written.
	ErrFull = errors.New("journal: no space left")
	// ErrIO: the disk failed to read or write. Earlier acknowledged writes are kept
	// as far as the disk keeps them. A store whose disk lost a commit accepts no
	// more until it is opened again.
	ErrIO = errors.New("journal: the disk failed")
	// ErrLocked: another process has locked the journal for too long.
	ErrLocked = errors.New("journal: locked by another process")
	// ErrReadOnly: the journal cannot be written.
	ErrReadOnly = errors.New("journal: read-only")
	// ErrAmbiguous: an id prefix matches several runs.
	ErrAmbiguous = errors.New("journal: ambiguous run id")
	// ErrCorrupt: the stored data is not what was written.
	ErrCorrupt = errors.New("journal: damaged")
	// ErrForeign: the file is not a journal.
	ErrForeign = errors.New("journal: not a journal")
	// ErrReplaced: the file was deleted or replaced while it was open, so that
	// later writes would be lost.
	ErrReplaced = errors.New("journal: deleted or replaced while open")
)

// HeldError is returned for a run that another process drives.
type HeldError struct {
	Run    string
	Owner  string
	Expiry time.Time
}

// Error names the holder and the time at which its lease expires.
func (e *HeldError) Error() string {
	return fmt.Sprintf("journal: run %s is driven by %s (lease until %s)", e.Run, e.Owner, e.Expiry.Format(time.RFC3339))
}

// ForkedError is returned for a run that cannot be deleted because other runs
// share its events.
type ForkedError struct {
	Run string
	// Forks are the runs that share its events, in the order of their ids.
	Forks []string
}

// Error names the forks, which must be deleted first.
func (e *ForkedError) Error() string {
	return fmt.Sprintf("journal: run %s is shared by its forks: %s", e.Run, strings.Join(e.Forks, ", "))
}

// CorruptError is the first place at which the journal of a run differs from what its
// driver wrote. It is an [ErrCorrupt].
type CorruptError struct {
	Run string
	// Seq is the event that is wrong or missing, 0 for the run's row.
	Seq int64
	// What is wrong; Want and Got are the values that disagree, if any.
	What string
	Want string
	Got  string
}

// Error names the place and both values.
func (e *CorruptError) Error() string {
	at := fmt.Sprintf("event %d", e.Seq)
	if e.Seq == 0 {
		at = "the run's row"
	}
	text := fmt.Sprintf("journal: run %s is damaged at %s: %s", e.Run, at, e.What)
	if e.Want != "" || e.Got != "" {
		text += fmt.Sprintf(" (expected %s, found %s)", cmp.Or(e.Want, "nothing"), cmp.Or(e.Got, "nothing"))
	}
	return text
}

// Is makes errors.Is(err, [ErrCorrupt]) true.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }
