package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawlrun/pawl/journal"
)

// ErrStandby reports a database that is read-only.
var ErrStandby = errors.New("postgres: the database cannot be written")

var errClosed = errors.New("postgres: the journal is closed")

// kinds maps the database's error codes, or their prefixes, to errors of package
// journal.
var kinds = map[string]error{
	"53100": journal.ErrFull,
	"58030": journal.ErrIO,
	"XX001": journal.ErrCorrupt, "XX002": journal.ErrCorrupt,
	"42501": journal.ErrReadOnly,
	"42P01": journal.ErrReplaced, "3F000": journal.ErrReplaced, "PW001": journal.ErrReplaced,
}

// classify wraps an error of the database with the matching error of package journal,
// if there is one.
func classify(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return journal.ErrNotFound
	}
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return err
	}
	if kind := kinds[e.Code]; kind != nil && !errors.Is(err, kind) {
		return fmt.Errorf("%w: %w", kind, err)
	}
	return err
}

// lost reports whether the connection failed or the server is restarting, so that
// another attempt may succeed.
func lost(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return strings.HasPrefix(e.Code, "08") ||
			slices.Contains([]string{"57P01", "57P02", "57P03", "53300", "25006", "40001", "40P01"}, e.Code)
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	_, network := errors.AsType[net.Error](err)
	return network || errors.Is(err, ErrStandby) || errors.Is(err, pgconn.ErrConnClosed) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.DeadlineExceeded) || pgconn.SafeToRetry(err)
}

// undone reports whether a failed statement is certain to have changed nothing.
func undone(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return !strings.HasPrefix(e.Code, "57P") && !strings.HasPrefix(e.Code, "08")
	}
	_, unconnected := errors.AsType[*pgconn.ConnectError](err)
	return unconnected || errors.Is(err, ErrStandby) || errors.Is(err, ErrUnsafe) || pgconn.SafeToRetry(err)
}

const (
	// attemptTime bounds one attempt at a statement, so that a dead connection is given
	// up.
	attemptTime = 30 * time.Second
	// firstPause is the pause before the second attempt, and longestPause the longest.
	firstPause, longestPause = 10 * time.Millisecond, 500 * time.Millisecond
)

// pauses waits between attempts at an operation whose connection was lost.
type pauses struct {
	began time.Time
	next  time.Duration
}

func newPauses() *pauses { return &pauses{began: time.Now(), next: firstPause} }

// wait returns false when ctx or the store ends first.
func (p *pauses) wait(ctx context.Context, s *Store) bool {
	t := time.NewTimer(p.next)
	defer t.Stop()
	p.next = min(2*p.next, longestPause)
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
	case <-s.closing.Done():
	}
	return false
}

// try repeats an operation while the connection is lost, until the store's patience
// ends. An operation that is not repeatable is repeated only if it is certain to have
// changed nothing.
func (s *Store) try(ctx context.Context, repeatable bool, do func(context.Context) error) error {
	for p := newPauses(); ; {
		attempt, cancel := context.WithTimeout(ctx, attemptTime)
		err := do(attempt)
		cancel()
		switch {
		case err == nil, !lost(err):
			return classify(err)
		case ctx.Err() != nil:
			return ctx.Err()
		case s.closing.Err() != nil:
			return errClosed
		case !repeatable && !undone(err):
			return classify(err)
		case time.Since(p.began) > s.config.patience:
			return fmt.Errorf("the database did not answer for %s: %w", s.config.patience, classify(err))
		}
		p.wait(ctx, s)
	}
}
