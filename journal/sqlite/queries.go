package sqlite

// queries are the queries for a file of one version.
type queries struct {
	// run selects runs' rows; records selects a run's own records after an event (run,
	// after, limit), tail those of all runs after a pos (after, limit), last the newest
	// pos, tree those of a tree (root, after, limit); ownerless counts the events
	// without a run. typed is records restricted to the types in a set (run, after,
	// kinds), if the file stores types.
	run, records, tail, last, tree, ownerless, typed string
}

func queriesOf(version int64) queries {
	if version < schemaVersion {
		return olderQueries(version)
	}
	return queries{
		run: selectRun, records: ownCommits, tail: tailCommits, last: newestPos, tree: treeCommits, ownerless: ownerless, typed: ownCommitsOfKinds,
	}
}

const selectRun = `
SELECT id, parent, kind, name, created, updated, state, detail, cycles, outcome, seq, head, owner, expiry, fork_of, fork_seq, root, depth, waits
FROM runs CROSS JOIN heads USING (rid)`

// ownerless excludes runs that are being deleted, and the newest event of a deleted
// run, which stays without a run. It counts a run without a head as an event, because
// no list shows the run.
const ownerless = `
SELECT (SELECT coalesce(sum(events), 0) FROM commits WHERE rid NOT IN (SELECT rid FROM runs) AND rid NOT IN (SELECT rid FROM deleted))
	+ (SELECT count(*) FROM runs WHERE rid NOT IN (SELECT rid FROM heads))`

// ownCommits reads from a run's last block back to the one where reading starts, unless
// that is the first, and from there on. The order is that of the loops: blocks, and in
// each the index. With a limit that is only a parameter, SQLite would choose a plan by
// its value and compile the query again for each value, which takes eight times as long
// as reading an event. A row has at least one event, so as many rows as events are
// enough.
const ownCommits = ownRows + ` LIMIT ?3 + 0`

const ownCommitsOfKinds = ownRows + ` AND e.kinds & ?3 <> 0`

const ownRows = `
WITH RECURSIVE
	run (id, rid, low, high, start) AS MATERIALIZED (
		SELECT id, rid, first >> 10, last >> 10, iif(fork_seq = ?2, first, last) >> 10
		FROM runs CROSS JOIN heads USING (rid) WHERE id = ?1 AND fork_seq <= ?2),
	back (n) AS (
		SELECT start FROM run UNION ALL
		SELECT n - 1 FROM back CROSS JOIN run WHERE n > low AND NOT EXISTS (
			SELECT 1 FROM commits WHERE pos >> 10 = n AND commits.rid = run.rid AND seq <= ?2)),
	block (n) AS (
		SELECT min(n) FROM back UNION ALL
		SELECT n + 1 FROM block CROSS JOIN run WHERE n < high)
SELECT e.pos, run.id, e.seq, e.events, '', e.body, ''
FROM block CROSS JOIN run CROSS JOIN commits e INDEXED BY commits_block ON e.pos >> 10 = block.n AND e.rid = run.rid
WHERE e.seq > ?2`

const tailCommits = `
SELECT e.pos, r.id, e.seq, e.events, '', e.body, iif(r.parent = '', r.id, r.root) FROM commits e JOIN runs r ON r.rid = e.rid
WHERE e.pos > ?1 ORDER BY e.pos LIMIT ?2 + 0`

// treeCommits scans what all runs wrote between the first and the last event of the
// tree, and reads the bodies of the tree's own events.
const treeCommits = `
SELECT e.pos, r.id, e.seq, e.events, '', e.body, ?1 FROM commits e JOIN runs r ON r.rid = e.rid
WHERE e.pos > max(?2, (SELECT first - 1 FROM runs WHERE id = ?1))
	AND e.rid IN (SELECT rid FROM runs WHERE id = ?1 UNION ALL SELECT rid FROM runs WHERE root = ?1 AND parent <> '')
ORDER BY e.pos LIMIT ?3 + 0`
