package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/pawlrun/pawl/journal"
)

// pollInterval is how often the file is checked for commits of other processes: their
// readers see an event within 100 ms.
const pollInterval = 50 * time.Millisecond

// watcher notifies subscribers of commits. It notices commits of this process at
// once, and those of others by SQLite's data_version, which it polls only while
// there are subscribers.
type watcher struct {
	db *sql.DB
	journal.Watchers
}

func newWatcher(db *sql.DB) *watcher {
	w := &watcher{db: db}
	w.Follow = w.poll
	return w
}

// poll looks for commits while there are subscribers. It retries after an error,
// because subscribers must not wait forever.
func (w *watcher) poll(ctx context.Context) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for command := int64(-1); ctx.Err() == nil; {
		w.pollConn(ctx, tick.C, &command)
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// pollConn reports commits on one connection, because data_version is relative to a
// connection, until it fails. command is the number of the newest reported command,
// or -1: what happened before the first look is unknown and counts as new.
func (w *watcher) pollConn(ctx context.Context, tick <-chan time.Time, command *int64) {
	conn, err := w.db.Conn(ctx)
	if err != nil {
		return
	}
	defer conn.Close()
	version := int64(-1)
	for {
		var v int64
		if err := conn.QueryRowContext(ctx, "PRAGMA data_version").Scan(&v); err != nil {
			return
		}
		if v != version {
			if err := w.notifySince(ctx, conn, command); err != nil {
				return
			}
			version = v
		}
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
	}
}

// notifySince wakes the subscribers to a commit, and to its commands newer than command.
func (w *watcher) notifySince(ctx context.Context, conn *sql.Conn, command *int64) error {
	var newest int64
	if err := conn.QueryRowContext(ctx, lastCommand).Scan(&newest); err != nil {
		return err
	}
	if *command < 0 {
		w.NotifyAll()
		*command = newest
		return nil
	}
	var runs []string
	if newest != *command {
		rows, err := conn.QueryContext(ctx, selectCommanded, *command)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var run string
			if err := rows.Scan(&run); err != nil {
				return err
			}
			runs = append(runs, run)
		}
		if err := rows.Err(); err != nil {
			return err
		}
	}
	w.Notify(append(runs, "")...)
	*command = newest
	return nil
}

// lastCommand selects the number of the newest command, and selectCommanded the runs
// with a command after one.
const (
	lastCommand     = `SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'inbox'), 0)`
	selectCommanded = `SELECT DISTINCT r.id FROM inbox i CROSS JOIN runs r ON r.rid = i.rid WHERE i.id > ?1`
)
