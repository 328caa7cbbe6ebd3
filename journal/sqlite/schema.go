package sqlite

// schemaVersion is stored in the file; a file of a newer one is refused.
const schemaVersion = 2

// applicationID marks the file as a journal of ours ("Pawl").
const applicationID = 0x5061776c

// rid is AUTOINCREMENT because processes remember it: the number of a deleted
// run must never come to mean another.
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
	fork_seq INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX runs_parent ON runs (parent) WHERE parent <> '';
CREATE INDEX runs_fork ON runs (fork_of) WHERE fork_of <> '';
CREATE TABLE events (
	pos  INTEGER PRIMARY KEY,
	rid  INTEGER NOT NULL,
	seq  INTEGER NOT NULL,
	type TEXT NOT NULL,
	body BLOB NOT NULL
);
CREATE UNIQUE INDEX events_run ON events (rid, seq);
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
	rid INTEGER PRIMARY KEY
);
`

// upgrades bring a file of an older version to the next, by the version that
// they start from.
var upgrades = map[int64]string{
	1: `
ALTER TABLE runs ADD COLUMN fork_of TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN fork_seq INTEGER NOT NULL DEFAULT 0;
CREATE INDEX runs_fork ON runs (fork_of) WHERE fork_of <> '';
`,
}

const insertRun = `
INSERT INTO runs (id, parent, kind, name, created, updated, state, detail, cycles, outcome, seq, head, owner, epoch, expiry, fork_of, fork_seq)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, 1, ?14, ?15, ?16)
ON CONFLICT (id) DO NOTHING`

// updateRun is the fence of every append: it changes the row only under the
// lease's epoch and on top of the event that the writer saw last. Its
// parameters have no numbers, nor have insertEvent's, because the driver
// allocates a name for each that has.
const updateRun = `
UPDATE runs SET seq = ?, head = ?, state = ?, detail = ?, cycles = ?, outcome = ?, updated = ?
WHERE rid = ? AND epoch = ? AND owner = ? AND seq = ? AND state <> 'ended'`

// insertEvent leaves pos to SQLite: one more than the largest. No other
// process writes between the inserts of one transaction.
const insertEvent = `INSERT INTO events (rid, seq, type, body) VALUES (?, ?, ?, ?)`

const insertBlob = `INSERT OR IGNORE INTO blobs (digest, bytes) VALUES (?1, ?2)`

const insertBlobRun = `INSERT OR IGNORE INTO blob_runs (digest, rid) VALUES (?1, ?2)`

const consumeCommand = `DELETE FROM inbox WHERE id = ?1 AND rid = ?2`

const selectRun = `
SELECT id, parent, kind, name, created, updated, state, detail, cycles, outcome, seq, head, owner, expiry, fork_of, fork_seq FROM runs`

// selectRunUnforked is selectRun for a file of version 1 that may only be read.
const selectRunUnforked = `
SELECT id, parent, kind, name, created, updated, state, detail, cycles, outcome, seq, head, owner, expiry, '', 0 FROM runs`

const acquireRun = `
UPDATE runs SET owner = ?2, epoch = epoch + 1, expiry = ?3
WHERE id = ?1 AND (owner = '' OR owner = ?4 OR expiry <= ?5)
RETURNING epoch`

const renewRun = `
UPDATE runs SET expiry = ?4 WHERE id = ?1 AND owner = ?2 AND epoch = ?3`

const releaseRun = `
UPDATE runs SET owner = '', expiry = 0 WHERE id = ?1 AND owner = ?2 AND epoch = ?3`
