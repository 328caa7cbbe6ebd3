package sqlite

import (
	"fmt"

	"github.com/pawlrun/pawl/journal"
)

// upgrade upgrades a file to this version's format, in the open transaction.
func (c *conn) upgrade(from int64) error {
	switch from {
	case 0:
		return c.script(schema + mark(schemaVersion))
	case schemaVersion: // by another process
		return nil
	}
	script := ""
	for ; from < schemaVersion; from++ {
		script += upgrades[from]
	}
	if err := c.script(script); err != nil {
		return err
	}
	if err := c.packLog(); err != nil {
		return err
	}
	return c.script(`DROP TABLE log;` + commitsIndex + mark(schemaVersion))
}

// mark stores the program and the version in a file.
func mark(version int) string {
	return fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d;", applicationID, version)
}

// packStep is how many events are moved at once. The next step reuses their space, so
// the file grows little.
const packStep = 500

// packLog moves the events of version 6, one in each row, into commits. It is unknown
// which events were written together, so consecutive events of a run are packed
// together.
func (c *conn) packLog() error {
	var open []journal.Record // collected and not written yet
	var run int64
	flush := func() error {
		if len(open) == 0 {
			return nil
		}
		err := c.insertCommits(run, open[0].Pos-1, open)
		open = open[:0]
		return err
	}
	for after, n := int64(0), packStep; n == packStep; {
		n = 0
		err := c.each(`SELECT pos, rid, seq, type, body FROM log WHERE pos > ?1 ORDER BY pos LIMIT ?2`, func(row []any) error {
			r, rid := logged(row)
			n, after = n+1, r.Pos
			if m := len(open); m > 0 && (run != rid || m == maxPacked || open[m-1].Pos+1 != r.Pos || open[m-1].Seq+1 != r.Seq) {
				if err := flush(); err != nil {
					return err
				}
			}
			open, run = append(open, r), rid
			return nil
		}, after, int64(packStep))
		if err != nil {
			return err
		}
		if _, err := c.exec(`DELETE FROM log WHERE pos <= ?1`, after); err != nil {
			return err
		}
	}
	return flush()
}

// logged returns an event of version 6 and the row id of its run.
func logged(row []any) (r journal.Record, rid int64) {
	r.Pos, _ = row[0].(int64)
	rid, _ = row[1].(int64)
	r.Seq, _ = row[2].(int64)
	r.Type, _ = row[3].(string)
	r.Body, _ = row[4].([]byte)
	return r, rid
}

// upgrades upgrade a file of an older version to the next, by the version that they
// start from. [conn.packLog] does the rest of the last one.
var upgrades = map[int64]string{
	1: `
ALTER TABLE runs ADD COLUMN fork_of TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN fork_seq INTEGER NOT NULL DEFAULT 0;
CREATE INDEX runs_fork ON runs (fork_of) WHERE fork_of <> '';
`,
	// The table has a new name so that a process of an older version which has the file
	// open fails to append, instead of appending without blocks. Version 2 stored the
	// newest pos under the number 0 when its run was deleted.
	2: `
ALTER TABLE runs ADD COLUMN first INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN last INTEGER NOT NULL DEFAULT 0;
ALTER TABLE deleted ADD COLUMN first INTEGER NOT NULL DEFAULT 0;
ALTER TABLE deleted ADD COLUMN last INTEGER NOT NULL DEFAULT 0;
DELETE FROM events WHERE rid = 0 AND pos < (SELECT max(pos) FROM events);
INSERT OR IGNORE INTO deleted (rid) SELECT 0 FROM events WHERE rid = 0;
UPDATE runs SET
	first = coalesce((SELECT min(pos) FROM events e WHERE e.rid = runs.rid), 0),
	last = coalesce((SELECT max(pos) FROM events e WHERE e.rid = runs.rid), 0);
UPDATE deleted SET
	first = coalesce((SELECT min(pos) FROM events e WHERE e.rid = deleted.rid), 0),
	last = coalesce((SELECT max(pos) FROM events e WHERE e.rid = deleted.rid), 0);
DROP INDEX events_run;
ALTER TABLE events RENAME TO log;
CREATE INDEX log_block ON log (pos >> 10, rid, seq);
`,
	// Until version 3 a tree had at most two levels.
	3: `
ALTER TABLE runs ADD COLUMN root TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN depth INTEGER NOT NULL DEFAULT 1;
UPDATE runs SET root = iif(parent = '', id, parent), depth = iif(parent = '', 1, 2);
CREATE INDEX runs_root ON runs (root) WHERE parent <> '';
`,
	4: notes,
	// What a run of an older version waits for is unknown: NULL.
	5: `ALTER TABLE runs ADD COLUMN waits TEXT;`,
	6: heads + commits + `
INSERT INTO heads (rid, owner, epoch, expiry, seq, head, last, cycles, updated, shown)
	SELECT rid, owner, epoch, expiry, seq, head, last, cycles, updated, 0 FROM runs;
ALTER TABLE runs DROP COLUMN owner;
ALTER TABLE runs DROP COLUMN epoch;
ALTER TABLE runs DROP COLUMN expiry;
ALTER TABLE runs DROP COLUMN seq;
ALTER TABLE runs DROP COLUMN head;
ALTER TABLE runs DROP COLUMN last;
ALTER TABLE runs DROP COLUMN cycles;
ALTER TABLE runs DROP COLUMN updated;
DROP INDEX log_block;
`,
}
