package sqlite

import "strings"

// schemaVersion is stored in the file; a file of a newer one is refused.
const schemaVersion = 6

// applicationID marks the file as a journal of ours ("Pawl").
const applicationID = 0x5061776c

// rid is AUTOINCREMENT because processes remember it: the number of a deleted
// run must never come to mean another.
//
// Events are found by the block of 1024 positions that they are in, and there
// by run. An index by run alone has a page for each of the runs that go on at
// once, and a commit of many would write them all; in a block they share a few.
// A run's events are in the blocks from first to last, which are bounds and may
// be wider than the run.
const schema = `
CREATE TABLE runs (
	rid     INTEGER PRIMARY KEY AUTOINCREMENT,
	id      TEXT NOT NULL UNIQUE,
	parent  TEXT NOT NULL DEFAULT '',
	kind    TEXT NOT NULL,
	name    TEXT NOT NULL DEFAULT '',
	created INTEGER NOT NULL,
	updated INTEGER NOT NULL,
	state   TEXT NOT NULL,
	detail  TEXT NOT NULL DEFAULT '',
	cycles  INTEGER NOT NULL DEFAULT 0,
	outcome BLOB,
	seq     INTEGER NOT NULL,
	head    TEXT NOT NULL,
	owner   TEXT NOT NULL DEFAULT '',
	epoch   INTEGER NOT NULL,
	expiry  INTEGER NOT NULL DEFAULT 0,
	fork_of  TEXT NOT NULL DEFAULT '',
	fork_seq INTEGER NOT NULL DEFAULT 0,
	first    INTEGER NOT NULL DEFAULT 0,
	last     INTEGER NOT NULL DEFAULT 0,
	root     TEXT NOT NULL DEFAULT '',
	depth    INTEGER NOT NULL DEFAULT 1,
	waits    TEXT
);
CREATE INDEX runs_parent ON runs (parent) WHERE parent <> '';
CREATE INDEX runs_root ON runs (root) WHERE parent <> '';
CREATE INDEX runs_fork ON runs (fork_of) WHERE fork_of <> '';
CREATE TABLE log (
	pos  INTEGER PRIMARY KEY,
	rid  INTEGER NOT NULL,
	seq  INTEGER NOT NULL,
	type TEXT NOT NULL,
	body BLOB NOT NULL
);
CREATE INDEX log_block ON log (pos >> 10, rid, seq);
CREATE TABLE inbox (
	id   INTEGER PRIMARY KEY AUTOINCREMENT,
	rid  INTEGER NOT NULL,
	body BLOB NOT NULL
);
CREATE INDEX inbox_run ON inbox (rid);
CREATE TABLE blobs (
	digest TEXT PRIMARY KEY,
	bytes  BLOB NOT NULL
);
CREATE TABLE blob_runs (
	digest TEXT NOT NULL,
	rid    INTEGER NOT NULL,
	PRIMARY KEY (digest, rid)
) WITHOUT ROWID;
CREATE INDEX blob_runs_run ON blob_runs (rid);
CREATE TABLE deleted (
	rid   INTEGER PRIMARY KEY,
	first INTEGER NOT NULL DEFAULT 0,
	last  INTEGER NOT NULL DEFAULT 0
);
` + notes

// upgrades bring a file of an older version to the next, by the version that
// they start from.
var upgrades = map[int64]string{
	1: `
ALTER TABLE runs ADD COLUMN fork_of TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN fork_seq INTEGER NOT NULL DEFAULT 0;
CREATE INDEX runs_fork ON runs (fork_of) WHERE fork_of <> '';
`,
	// The table has a new name so that a process of an older version which has
	// the file open fails to append, instead of appending what no block bounds.
	// Version 2 kept the newest pos under the number 0 when its run was deleted.
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
	// Until version 3 a tree was two runs deep.
	3: `
ALTER TABLE runs ADD COLUMN root TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN depth INTEGER NOT NULL DEFAULT 1;
UPDATE runs SET root = iif(parent = '', id, parent), depth = iif(parent = '', 1, 2);
CREATE INDEX runs_root ON runs (root) WHERE parent <> '';
`,
	4: notes,
	// What a run of an older version waits for is unknown: NULL.
	5: `ALTER TABLE runs ADD COLUMN waits TEXT;`,
}

// newestPos is the largest pos in the file. No other connection writes between a
// statement and the inserts that follow it.
const newestPos = `coalesce((SELECT max(pos) FROM log), 0)`

const insertRun = `
INSERT INTO runs (id, parent, kind, name, created, updated, state, detail, cycles, outcome, seq, head, owner, epoch, expiry, fork_of, fork_seq, first, last, root, depth, waits)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, 1, ?14, ?15, ?16, ` + newestPos + ` + 1, ` + newestPos + ` + ?17, ?18, ?19, ?20)
ON CONFLICT (id) DO NOTHING`

// updateRun is the fence of every append: it changes the row only under the
// lease's epoch and on top of the event that the writer saw last. The pos that
// the append will end at is not asked of the file, which would be a quarter of
// the steps, but follows from what this process inserted last.
const updateRun = `
UPDATE runs SET seq = ?, head = ?, state = ?, detail = ?, cycles = ?, outcome = ?, waits = ?, updated = ?, last = ?
WHERE rid = ? AND epoch = ? AND owner = ? AND seq = ? AND state <> 'ended'`

// moveEnd is for an append that ended elsewhere, because another process has
// written since.
const moveEnd = `UPDATE runs SET last = ?1 WHERE rid = ?2`

// maxRows is how many events one statement adds at most; half a cycle has
// fewer.
const maxRows = 8

// insertEvents has the statement for each number of rows. It leaves pos to
// SQLite: one more than the largest. No other process writes between the
// inserts of one transaction. FAIL saves SQLite from keeping copies of the pages
// to undo the statement alone: where it fails, the transaction is rolled back.
var insertEvents = func() (text [maxRows]string) {
	for i := range text {
		text[i] = `INSERT OR FAIL INTO log (rid, seq, type, body) VALUES (?1, ?, ?, ?)` + strings.Repeat(`, (?1, ?, ?, ?)`, i)
	}
	return text
}()

const insertBlob = `INSERT OR IGNORE INTO blobs (digest, bytes) VALUES (?1, ?2)`

const insertBlobRun = `INSERT OR IGNORE INTO blob_runs (digest, rid) VALUES (?1, ?2)`

const consumeCommand = `DELETE FROM inbox WHERE id = ?1 AND rid = ?2`

// queries read a file of one version. One of an older version is only read
// when it may not be upgraded.
type queries struct {
	// run selects runs' rows; records selects what a run wrote itself after an
	// event (run, after, limit), tail what any run wrote after a pos (after,
	// limit), last finds the newest pos, tree what those of a tree did (root, after,
	// limit), ownerless counts the events whose run's row was taken away.
	run, records, tail, last, tree, ownerless string
}

func queriesOf(version int64) queries {
	switch version {
	case 1:
		return queries{run: selectRunUnforked, records: ownEventsUnforked, tail: tailEvents, last: lastEvent, tree: treeEvents}
	case 2:
		return queries{run: selectRunRootless, records: ownEvents, tail: tailEvents, last: lastEvent, tree: treeEvents}
	case 3:
		return queries{run: selectRunRootless, records: ownLog, tail: tailLogRootless, last: lastLog, tree: treeLogRootless, ownerless: ownerless}
	case 4, 5:
		return queries{run: selectRunWaitless, records: ownLog, tail: tailLog, last: lastLog, tree: treeLog, ownerless: ownerless}
	}
	return queries{run: selectRun, records: ownLog, tail: tailLog, last: lastLog, tree: treeLog, ownerless: ownerless}
}

// ownerless leaves out what is being deleted, and the newest event of a run that
// was, which stays without a run.
const ownerless = `
SELECT count(*) FROM log WHERE rid NOT IN (SELECT rid FROM runs) AND rid NOT IN (SELECT rid FROM deleted)`

// ownLog goes back from a run's last block to the one where its reading
// starts, unless that is the first, and from there on. The order is that of the
// loops: blocks, and in each the index. By a limit that is a parameter and nothing
// else SQLite chooses a plan, and compiles the query again whenever it is bound,
// which takes eight times as long as to read an event.
const ownLog = `
WITH RECURSIVE
	run (id, rid, low, high, start) AS MATERIALIZED (
		SELECT id, rid, first >> 10, last >> 10, iif(fork_seq = ?2, first, last) >> 10 FROM runs WHERE id = ?1 AND fork_seq <= ?2),
	back (n) AS (
		SELECT start FROM run UNION ALL
		SELECT n - 1 FROM back CROSS JOIN run WHERE n > low AND NOT EXISTS (
			SELECT 1 FROM log WHERE pos >> 10 = n AND log.rid = run.rid AND seq <= ?2 + 1)),
	block (n) AS (
		SELECT min(n) FROM back UNION ALL
		SELECT n + 1 FROM block CROSS JOIN run WHERE n < high)
SELECT e.pos, run.id, e.seq, e.type, e.body, ''
FROM block CROSS JOIN run CROSS JOIN log e INDEXED BY log_block ON e.pos >> 10 = block.n AND e.rid = run.rid
WHERE e.seq > ?2 LIMIT ?3 + 0`

const tailLog = `
SELECT e.pos, r.id, e.seq, e.type, e.body, iif(r.parent = '', r.id, r.root) FROM log e JOIN runs r ON r.rid = e.rid
WHERE e.pos > ?1 ORDER BY e.pos LIMIT ?2 + 0`

// treeLog goes over what all runs wrote between the first and the last event of
// the tree, and reads the bodies of the tree's own.
const treeLog = `
SELECT e.pos, r.id, e.seq, e.type, e.body, ?1 FROM log e JOIN runs r ON r.rid = e.rid
WHERE e.pos > max(?2, (SELECT first - 1 FROM runs WHERE id = ?1))
	AND e.rid IN (SELECT rid FROM runs WHERE id = ?1 UNION ALL SELECT rid FROM runs WHERE root = ?1 AND parent <> '')
ORDER BY e.pos LIMIT ?3 + 0`

// tailLogRootless is for a file in which a tree was two runs deep.
const tailLogRootless = `
SELECT e.pos, r.id, e.seq, e.type, e.body, iif(r.parent = '', r.id, r.parent) FROM log e JOIN runs r ON r.rid = e.rid
WHERE e.pos > ?1 ORDER BY e.pos LIMIT ?2 + 0`

const lastLog = `SELECT coalesce(max(pos), 0) FROM log`

const treeLogRootless = `
SELECT e.pos, r.id, e.seq, e.type, e.body, ?1 FROM log e JOIN runs r ON r.rid = e.rid
WHERE e.pos > ?2 AND (r.id = ?1 OR r.parent = ?1) ORDER BY e.pos LIMIT ?3 + 0`

const (
	lastEvent  = `SELECT coalesce(max(pos), 0) FROM events`
	treeEvents = `
SELECT e.pos, r.id, e.seq, e.type, e.body, ?1 FROM events e JOIN runs r ON r.rid = e.rid
WHERE e.pos > ?2 AND (r.id = ?1 OR r.parent = ?1) ORDER BY e.pos LIMIT ?3`
	ownEventsUnforked = `
SELECT e.pos, r.id, e.seq, e.type, e.body, '' FROM events e JOIN runs r ON r.rid = e.rid
WHERE e.rid = (SELECT rid FROM runs WHERE id = ?1) AND e.seq > ?2 ORDER BY e.seq LIMIT ?3`
	ownEvents = `
SELECT e.pos, r.id, e.seq, e.type, e.body, '' FROM events e JOIN runs r ON r.rid = e.rid
WHERE e.rid = (SELECT rid FROM runs WHERE id = ?1 AND fork_seq <= ?2) AND e.seq > ?2 ORDER BY e.seq LIMIT ?3`
	tailEvents = `
SELECT e.pos, r.id, e.seq, e.type, e.body, iif(r.parent = '', r.id, r.parent) FROM events e JOIN runs r ON r.rid = e.rid
WHERE e.pos > ?1 ORDER BY e.pos LIMIT ?2`
)

const selectRun = `
SELECT id, parent, kind, name, created, updated, state, detail, cycles, outcome, seq, head, owner, expiry, fork_of, fork_seq, root, depth, waits FROM runs`

// selectRunWaitless is selectRun for a file of version 4 or 5 that may only be
// read.
const selectRunWaitless = `
SELECT id, parent, kind, name, created, updated, state, detail, cycles, outcome, seq, head, owner, expiry, fork_of, fork_seq, root, depth, NULL FROM runs`

// selectRunRootless is selectRun for a file of version 2 or 3 that may only be
// read.
const selectRunRootless = `
SELECT id, parent, kind, name, created, updated, state, detail, cycles, outcome, seq, head, owner, expiry, fork_of, fork_seq, '', 0, NULL FROM runs`

// selectRunUnforked is selectRun for a file of version 1 that may only be read.
const selectRunUnforked = `
SELECT id, parent, kind, name, created, updated, state, detail, cycles, outcome, seq, head, owner, expiry, '', 0, '', 0, NULL FROM runs`

const selectInbox = `
SELECT id, body FROM inbox ORDER BY id`

const selectOwnInbox = `
SELECT id, body FROM inbox WHERE rid = (SELECT rid FROM runs WHERE id = ?1) ORDER BY id`

const acquireRun = `
UPDATE runs SET owner = ?2, epoch = epoch + 1, expiry = ?3
WHERE id = ?1 AND (owner = '' OR owner = ?4 OR expiry <= ?5)
RETURNING epoch`

const renewRun = `
UPDATE runs SET expiry = ?4 WHERE id = ?1 AND owner = ?2 AND epoch = ?3`

const releaseRun = `
UPDATE runs SET owner = '', expiry = 0 WHERE id = ?1 AND owner = ?2 AND epoch = ?3`
