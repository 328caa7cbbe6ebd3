package sqlite

// schemaVersion is stored in the file; files of newer versions are rejected.
const schemaVersion = 7

// applicationID marks the file as a Pawl journal ("Pawl").
const applicationID = 0x5061776c

// rid is AUTOINCREMENT because processes cache it: the number of a deleted run must
// never be reused.
//
// The table runs holds what a run is and what lists show of it, which few commits
// change. heads holds what every commit changes: where the run ends, and who may append
// to it. Its rows are small, so that many share a page.
const schema = `
CREATE TABLE runs (
	rid     INTEGER PRIMARY KEY AUTOINCREMENT,
	id      TEXT NOT NULL UNIQUE,
	parent  TEXT NOT NULL DEFAULT '',
	kind    TEXT NOT NULL,
	name    TEXT NOT NULL DEFAULT '',
	created INTEGER NOT NULL,
	state   TEXT NOT NULL,
	detail  TEXT NOT NULL DEFAULT '',
	outcome BLOB,
	fork_of  TEXT NOT NULL DEFAULT '',
	fork_seq INTEGER NOT NULL DEFAULT 0,
	first    INTEGER NOT NULL DEFAULT 0,
	root     TEXT NOT NULL DEFAULT '',
	depth    INTEGER NOT NULL DEFAULT 1,
	waits    TEXT
);
CREATE INDEX runs_parent ON runs (parent) WHERE parent <> '';
CREATE INDEX runs_root ON runs (root) WHERE parent <> '';
CREATE INDEX runs_fork ON runs (fork_of) WHERE fork_of <> '';
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
` + notes + heads + commits + commitsIndex

// heads.shown is a digest of the [journal.Progress] in the row of runs, so that one
// statement both checks the lease and detects that the row is unchanged. It is 0 if
// unknown. heads.last is the pos of the run's last event.
const heads = `
CREATE TABLE heads (
	rid     INTEGER PRIMARY KEY,
	owner   TEXT NOT NULL,
	epoch   INTEGER NOT NULL,
	expiry  INTEGER NOT NULL,
	seq     INTEGER NOT NULL,
	head    TEXT NOT NULL,
	last    INTEGER NOT NULL,
	cycles  INTEGER NOT NULL,
	updated INTEGER NOT NULL,
	shown   INTEGER NOT NULL
);
`

// A row of commits has some events of one run. pos and seq are those of the last one, and
// the others come before it without a gap. kinds has a bit for each of their types,
// see [kindsOf], and body has the events, see [pack].
const commits = `
CREATE TABLE commits (
	pos    INTEGER PRIMARY KEY,
	rid    INTEGER NOT NULL,
	seq    INTEGER NOT NULL,
	events INTEGER NOT NULL,
	kinds  INTEGER NOT NULL,
	body   BLOB NOT NULL
);
`

// Events are found by the block of 1024 positions that they are in, and there
// by run. An index by run alone has a page for each of the runs that go on at
// once, and a commit of many would write them all; in a block they share a few.
// A run's events are in the blocks from first to last, which are bounds and may
// be wider than the run.
const commitsIndex = `
CREATE INDEX commits_block ON commits (pos >> 10, rid, seq);
`

// newestPos is the largest pos in the file. No other connection writes between a
// statement and the inserts that follow it.
const newestPos = `SELECT coalesce(max(pos), 0) FROM commits`

const insertRun = `
INSERT INTO runs (id, parent, kind, name, created, state, detail, outcome, fork_of, fork_seq, first, root, depth, waits)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
ON CONFLICT (id) DO NOTHING`

const insertHead = `
INSERT INTO heads (rid, owner, epoch, expiry, seq, head, last, cycles, updated, shown) VALUES (?1, ?2, 1, ?3, ?4, ?5, ?6, ?7, ?8, ?9)`

// moveHead is the fence of every append: it moves a run on only under the lease's
// epoch and on top of the event that the writer saw last, if lists show of the run
// what they showed before. That says that the run has not ended.
const moveHead = `
UPDATE heads SET seq = ?, head = ?, last = ?, cycles = ?, updated = ?
WHERE rid = ? AND epoch = ? AND owner = ? AND seq = ? AND shown = ?`

// moveHeadAlso is moveHead for an append after which lists show something else, which
// [showRun] writes.
const moveHeadAlso = `
UPDATE heads SET seq = ?, head = ?, last = ?, cycles = ?, updated = ?, shown = ?
WHERE rid = ? AND epoch = ? AND owner = ? AND seq = ?` + notEnded

const notEnded = ` AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.rid = heads.rid AND state = 'ended')`

// stayHead is moveHeadAlso for an append without events.
const stayHead = `
UPDATE heads SET cycles = ?, updated = ?, shown = ? WHERE rid = ? AND epoch = ? AND owner = ?` + notEnded

const showRun = `UPDATE runs SET state = ?, detail = ?, outcome = ?, waits = ? WHERE rid = ?`

// FAIL avoids copies of the pages for undoing only the statement: if it fails, the
// transaction is rolled back.
const insertCommit = `INSERT OR FAIL INTO commits (pos, rid, seq, events, kinds, body) VALUES (?, ?, ?, ?, ?, ?)`

const insertBlob = `INSERT OR IGNORE INTO blobs (digest, bytes) VALUES (?1, ?2)`

const insertBlobRun = `INSERT OR IGNORE INTO blob_runs (digest, rid) VALUES (?1, ?2)`

const consumeCommand = `DELETE FROM inbox WHERE id = ?1 AND rid = ?2`

const selectInbox = `
SELECT id, body FROM inbox ORDER BY id`

const selectOwnInbox = `
SELECT id, body FROM inbox WHERE rid = (SELECT rid FROM runs WHERE id = ?1) ORDER BY id`

const acquireRun = `
UPDATE heads SET owner = ?2, epoch = epoch + 1, expiry = ?3
WHERE rid = (SELECT rid FROM runs WHERE id = ?1) AND (owner = '' OR owner = ?4 OR expiry <= ?5)
RETURNING epoch`

const renewRun = `
UPDATE heads SET expiry = ?4 WHERE rid = (SELECT rid FROM runs WHERE id = ?1) AND owner = ?2 AND epoch = ?3`

const releaseRun = `
UPDATE heads SET owner = '', expiry = 0 WHERE rid = (SELECT rid FROM runs WHERE id = ?1) AND owner = ?2 AND epoch = ?3`
