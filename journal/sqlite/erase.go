package sqlite

import (
	"fmt"
	"time"
)

// A deleted inbox command must leave no trace: it may contain a secret that only its
// reader recognized. SQLite leaves deleted data in the file until the space is reused,
// and keeps everything committed since the log began in the log.

const (
	// erasePause is the minimum time between two erasures of the log.
	erasePause = time.Second
	// eraseRetry is the delay before the second attempt if the log is in use; each
	// further delay is twice as long. eraseBusy is how many milliseconds an attempt
	// waits for other users, which may block their writes; eraseLast applies to the
	// last attempt.
	eraseRetry = 50 * time.Millisecond
	eraseBusy  = 5
	eraseLast  = 200
)

// overwriting runs statements that overwrite what they delete or move with zeros. For
// other statements that would only add writes of every page that becomes free.
func (c *conn) overwriting(run func() error) error {
	if err := c.script("PRAGMA secure_delete = ON"); err != nil {
		return err
	}
	err := run()
	if off := c.script("PRAGMA secure_delete = OFF"); err == nil {
		err = off
	}
	return err
}

// erase runs a statement that deletes rows of an inbox, and requests an erasure of the
// log if there were any.
func (c *conn) erase(query string, args ...any) error {
	return c.overwriting(func() error {
		n, err := c.exec(query, args...)
		c.erased = c.erased || n > 0
		return err
	})
}

// eraseLog erases the log if it is not in use, and reports whether it did. The last
// attempt of a process waits longer.
func (p *checkpointer) eraseLog(c *conn, last bool) (erased bool) {
	p.erasing.Store(false)
	patience := eraseBusy
	if last {
		patience = eraseLast
	}
	if err := c.script(fmt.Sprintf("PRAGMA busy_timeout = %d", patience)); err == nil {
		row, _, err := c.queryRow("PRAGMA wal_checkpoint(TRUNCATE)")
		erased = err == nil && row[0] == int64(0)
	}
	if !erased {
		p.erasing.Store(true)
	}
	return erased
}
