package sqlite

// olderQueries returns the queries for a file of an older version, which are used only
// if it cannot be upgraded. A row of it is a single event, so it has 0 packed events.
func olderQueries(version int64) queries {
	q := queries{run: selectRunWhole, records: ownLog, tail: tailLog, last: lastLog, tree: treeLog, ownerless: ownerlessLog}
	switch version {
	case 1:
		return queries{run: selectRunUnforked, records: ownEventsUnforked, tail: tailEvents, last: lastEvent, tree: treeEvents}
	case 2:
		return queries{run: selectRunRootless, records: ownEvents, tail: tailEvents, last: lastEvent, tree: treeEvents}
	case 3:
		q.run, q.tail, q.tree = selectRunRootless, tailLogRootless, treeLogRootless
	case 4, 5:
		q.run = selectRunWaitless
	}
	return q
}

// ownerlessLog excludes runs that are being deleted, and the newest event of a deleted
// run, which stays without a run.
const ownerlessLog = `
SELECT count(*) FROM log WHERE rid NOT IN (SELECT rid FROM runs) AND rid NOT IN (SELECT rid FROM deleted)`

// ownLog reads from a run's last block back to the one where reading starts, unless
// that is the first, and from there on. The order is that of the loops: blocks, and in
// each the index. With a limit that is only a parameter, SQLite would choose a plan by
// its value and compile the query again for each value, which takes eight times as long
// as reading an event.
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
SELECT e.pos, run.id, e.seq, 0, e.type, e.body, ''
FROM block CROSS JOIN run CROSS JOIN log e INDEXED BY log_block ON e.pos >> 10 = block.n AND e.rid = run.rid
WHERE e.seq > ?2 LIMIT ?3 + 0`

const tailLog = `
SELECT e.pos, r.id, e.seq, 0, e.type, e.body, iif(r.parent = '', r.id, r.root) FROM log e JOIN runs r ON r.rid = e.rid
WHERE e.pos > ?1 ORDER BY e.pos LIMIT ?2 + 0`

// treeLog scans what all runs wrote between the first and the last event of the tree,
// and reads the bodies of the tree's own events.
const treeLog = `
SELECT e.pos, r.id, e.seq, 0, e.type, e.body, ?1 FROM log e JOIN runs r ON r.rid = e.rid
WHERE e.pos > max(?2, (SELECT first - 1 FROM runs WHERE id = ?1))
	AND e.rid IN (SELECT rid FROM runs WHERE id = ?1 UNION ALL SELECT rid FROM runs WHERE root = ?1 AND parent <> '')
ORDER BY e.pos LIMIT ?3 + 0`

// tailLogRootless is for a file in which a tree has at most two levels.
const tailLogRootless = `
SELECT e.pos, r.id, e.seq, 0, e.type, e.body, iif(r.parent = '', r.id, r.parent) FROM log e JOIN runs r ON r.rid = e.rid
WHERE e.pos > ?1 ORDER BY e.pos LIMIT ?2 + 0`

const lastLog = `SELECT coalesce(max(pos), 0) FROM log`

const treeLogRootless = `
SELECT e.pos, r.id, e.seq, 0, e.type, e.body, ?1 FROM log e JOIN runs r ON r.rid = e.rid
WHERE e.pos > ?2 AND (r.id = ?1 OR r.parent = ?1) ORDER BY e.pos LIMIT ?3 + 0`

const (
	lastEvent  = `SELECT coalesce(max(pos), 0) FROM events`
	treeEvents = `
SELECT e.pos, r.id, e.seq, 0, e.type, e.body, ?1 FROM events e JOIN runs r ON r.rid = e.rid
WHERE e.pos > ?2 AND (r.id = ?1 OR r.parent = ?1) ORDER BY e.pos LIMIT ?3`
	ownEventsUnforked = `
SELECT e.pos, r.id, e.seq, 0, e.type, e.body, '' FROM events e JOIN runs r ON r.rid = e.rid
WHERE e.rid = (SELECT rid FROM runs WHERE id = ?1) AND e.seq > ?2 ORDER BY e.seq LIMIT ?3`
	ownEvents = `
SELECT e.pos, r.id, e.seq, 0, e.type, e.body, '' FROM events e JOIN runs r ON r.rid = e.rid
WHERE e.rid = (SELECT rid FROM runs WHERE id = ?1 AND fork_seq <= ?2) AND e.seq > ?2 ORDER BY e.seq LIMIT ?3`
	tailEvents = `
SELECT e.pos, r.id, e.seq, 0, e.type, e.body, iif(r.parent = '', r.id, r.parent) FROM events e JOIN runs r ON r.rid = e.rid
WHERE e.pos > ?1 ORDER BY e.pos LIMIT ?2`
)

// selectRunWhole is selectRun for a file of version 6, in which the runs table also has
// the head.
const selectRunWhole = `
SELECT id, parent, kind, name, created, updated, state, detail, cycles, outcome, seq, head, owner, expiry, fork_of, fork_seq, root, depth, waits FROM runs`

// selectRunWaitless is selectRun for a read-only file of version 4 or 5.
const selectRunWaitless = `
SELECT id, parent, kind, name, created, updated, state, detail, cycles, outcome, seq, head, owner, expiry, fork_of, fork_seq, root, depth, NULL FROM runs`

// selectRunRootless is selectRun for a read-only file of version 2 or 3.
const selectRunRootless = `
SELECT id, parent, kind, name, created, updated, state, detail, cycles, outcome, seq, head, owner, expiry, fork_of, fork_seq, '', 0, NULL FROM runs`

// selectRunUnforked is selectRun for a read-only file of version 1.
const selectRunUnforked = `
SELECT id, parent, kind, name, created, updated, state, detail, cycles, outcome, seq, head, owner, expiry, '', 0, '', 0, NULL FROM runs`
