package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/pawlrun/pawl/journal"
)

// schemaVersion is stored in the database; a newer one is refused.
const schemaVersion = 4

// steps are the statements that migrate each version of the schema to the next, the
// first from nothing. In all SQL of this package, @ stands for the schema with a dot.
// The single row of head assigns log positions. An append locks it last and holds it
// until its commit is visible, so positions have no gaps and follow commit order. The
// table runs has free space in its pages and no index on the columns that an append
// changes, so an append does not change its indexes.
var steps = []string{`
CREATE TABLE @version (
	one     boolean PRIMARY KEY DEFAULT true CHECK (one),
	version integer NOT NULL
);
INSERT INTO @version (version) VALUES (0);
CREATE TABLE @head (
	one boolean PRIMARY KEY DEFAULT true CHECK (one),
	pos bigint NOT NULL
);
INSERT INTO @head (pos) VALUES (0);
CREATE TABLE @runs (
	rid      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id       text COLLATE "C" NOT NULL UNIQUE,
	parent   text NOT NULL,
	root     text NOT NULL,
	depth    integer NOT NULL,
	kind     text NOT NULL,
	name     text NOT NULL,
	fork_of  text NOT NULL,
	fork_seq bigint NOT NULL,
	created  bigint NOT NULL,
	updated  bigint NOT NULL,
	state    text NOT NULL,
	detail   text NOT NULL,
	progress bytea NOT NULL,
	seq      bigint NOT NULL,
	head     text NOT NULL,
	owner    text NOT NULL,
	epoch    bigint NOT NULL,
	expiry   bigint NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX runs_root ON @runs (root);
CREATE INDEX runs_parent ON @runs (parent) WHERE parent <> '';
CREATE INDEX runs_fork ON @runs (fork_of) WHERE fork_of <> '';
CREATE INDEX runs_open ON @runs (rid) WHERE state <> 'ended';
CREATE TABLE @log (
	pos  bigint PRIMARY KEY,
	rid  bigint NOT NULL,
	seq  bigint NOT NULL,
	type text NOT NULL,
	body bytea NOT NULL
);
CREATE UNIQUE INDEX log_run ON @log (rid, seq);
CREATE TABLE @inbox (
	id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	rid  bigint NOT NULL,
	body bytea NOT NULL
);
CREATE INDEX inbox_run ON @inbox (rid);
CREATE TABLE @blobs (
	digest text PRIMARY KEY,
	bytes  bytea NOT NULL
);
CREATE TABLE @blob_runs (
	digest text NOT NULL,
	rid    bigint NOT NULL,
	PRIMARY KEY (digest, rid)
);
CREATE INDEX blob_runs_run ON @blob_runs (rid);
CREATE TABLE @deleted (rid bigint PRIMARY KEY);
CREATE TABLE @notes (
	id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	key     text UNIQUE,
	at      bigint NOT NULL,
	expires bigint NOT NULL,
	body    bytea NOT NULL
);
CREATE INDEX notes_expires ON @notes (expires) WHERE expires <> 0;
` + appendFunction, `
CREATE INDEX runs_owner ON @runs (owner) WHERE owner <> '';
CREATE INDEX runs_free ON @runs (expiry) WHERE parent = '' AND state IN ('queued', 'running', 'waiting');
CREATE INDEX runs_interrupted ON @runs (expiry) WHERE parent = '' AND state = 'parked' AND detail = 'interrupted';
CREATE TABLE @snapshots (
	rid     bigint NOT NULL REFERENCES @runs (rid) ON DELETE CASCADE,
	name    text NOT NULL,
	version text NOT NULL,
	seq     bigint NOT NULL,
	head    text NOT NULL,
	body    bytea NOT NULL,
	PRIMARY KEY (rid, name)
);
CREATE TABLE @counters (
	name  text PRIMARY KEY,
	sum   bigint NOT NULL,
	added boolean NOT NULL
);
`, `
CREATE TABLE @drivers (
	owner  text PRIMARY KEY,
	expiry bigint NOT NULL,
	body   bytea NOT NULL
);
`, tenantTables}

// appendFunction appends the batches of one group, each of a different run. All
// processes lock rows in the same order: runs by id, contents by digest, and head last.
// For each batch it returns the number of the batch from 1, and the pos of its first
// record or the reason for refusing it; a refused batch writes nothing.
//
// before is the number of the event that a batch follows, -1 for one without events. A
// database whose newest pos is lower than known has lost commits.
const appendFunction = `
CREATE FUNCTION @append(
	known bigint, channel text,
	run text[], owner text[], epoch bigint[], before bigint[], size bigint[], head text[],
	state text[], detail text[], progress bytea[], updated bigint[], release boolean[],
	event_batch bigint[], event_seq bigint[], event_type text[], event_body bytea[],
	blob_batch bigint[], blob_digest text[], blob_bytes bytea[],
	used_batch bigint[], used_id bigint[])
RETURNS TABLE (batch bigint, first bigint, refused text) LANGUAGE plpgsql AS $body$
#variable_conflict use_variable
DECLARE
	refusals text[];
	rids bigint[];
	firsts bigint[];
	total bigint;
	newest bigint;
BEGIN
	IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
		PERFORM set_config('synchronous_commit', 'on', true);
	END IF;
	PERFORM 1 FROM @runs r WHERE r.id = ANY (run) ORDER BY r.id FOR NO KEY UPDATE;
	SELECT array_agg(j.refused ORDER BY j.i), array_agg(j.rid ORDER BY j.i),
		array_agg(j.skipped ORDER BY j.i), coalesce(sum(j.size), 0)
	INTO refusals, rids, firsts, total
	FROM (
		SELECT v.*, sum(v.size) OVER (ORDER BY v.i) - v.size AS skipped FROM (
			SELECT c.i, c.rid, c.refused, CASE WHEN c.refused = '' THEN c.size ELSE 0 END AS size FROM (
				SELECT g.i, r.rid, g.size, CASE
					WHEN r.rid IS NULL THEN 'missing'
					WHEN r.state = 'ended' THEN 'ended'
					WHEN r.epoch <> g.epoch OR r.owner <> g.owner OR g.before >= 0 AND r.seq <> g.before THEN 'stale'
					ELSE '' END AS refused
				FROM unnest(run, owner, epoch, before, size) WITH ORDINALITY g (run, owner, epoch, before, size, i)
				LEFT JOIN @runs r ON r.id = g.run) c) v) j;
	UPDATE @runs r SET
		seq = r.seq + g.size, head = CASE WHEN g.size > 0 THEN g.head ELSE r.head END,
		state = g.state, detail = g.detail, progress = g.progress, updated = g.updated,
		owner = CASE WHEN g.release THEN '' ELSE r.owner END, expiry = CASE WHEN g.release THEN 0 ELSE r.expiry END
	FROM unnest(rids, refusals, size, head, state, detail, progress, updated, release)
		g (rid, refused, size, head, state, detail, progress, updated, release)
	WHERE r.rid = g.rid AND g.refused = '';
	IF cardinality(blob_batch) > 0 THEN
		INSERT INTO @blobs (digest, bytes)
		SELECT DISTINCT ON (b.digest) b.digest, b.bytes FROM unnest(blob_batch, blob_digest, blob_bytes) b (batch, digest, bytes)
		WHERE refusals[b.batch] = '' ORDER BY b.digest
		ON CONFLICT (digest) DO UPDATE SET digest = excluded.digest; -- locks a row that a deletion may take away
		INSERT INTO @blob_runs (digest, rid)
		SELECT DISTINCT b.digest, rids[b.batch] FROM unnest(blob_batch, blob_digest) b (batch, digest)
		WHERE refusals[b.batch] = '' ORDER BY 1, 2 ON CONFLICT DO NOTHING;
	END IF;
	DELETE FROM @inbox i USING unnest(used_batch, used_id) u (batch, id)
	WHERE i.id = u.id AND i.rid = rids[u.batch] AND refusals[u.batch] = '';
	IF 'ended' = ANY (state) THEN
		DELETE FROM @inbox i USING unnest(rids, refusals, state) g (rid, refused, state)
		WHERE i.rid = g.rid AND g.refused = '' AND g.state = 'ended';
	END IF;
	UPDATE @head h SET pos = h.pos + total RETURNING h.pos - total INTO newest;
	IF newest < known THEN
		RAISE EXCEPTION 'the newest position is %, and % was acknowledged', newest, known USING ERRCODE = 'PW001';
	END IF;
	INSERT INTO @log (pos, rid, seq, type, body)
	SELECT newest + row_number() OVER (ORDER BY e.i), rids[e.batch], e.seq, e.type, e.body
	FROM unnest(event_batch, event_seq, event_type, event_body) WITH ORDINALITY e (batch, seq, type, body, i)
	WHERE refusals[e.batch] = '';
	PERFORM pg_notify(channel, '');
	RETURN QUERY SELECT g.i, newest + g.skipped + 1, g.refused FROM unnest(firsts, refusals) WITH ORDINALITY g (skipped, refused, i);
END
$body$;
`

// migrationLock is the key of the advisory lock under which one process changes the
// schema.
const migrationLock = 0x5061776c

// ErrEmpty reports a schema without a journal, and ErrOlder a journal of an older
// version.
var (
	ErrEmpty = errors.New("postgres: there is no journal")
	ErrOlder = errors.New("postgres: the schema is of version")
)

// selectThere reads tables of the catalogue instead of its cache, which may lack what
// another process created while this one waited for its lock.
const selectThere = `
SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relname = 'version')`

// versionOf returns the version of the schema, 0 for none.
func (c *config) versionOf(ctx context.Context, q querier) (version int, err error) {
	var there bool
	if err := q.QueryRow(ctx, selectThere, c.schema).Scan(&there); err != nil || !there {
		return 0, err
	}
	err = q.QueryRow(ctx, c.at(`SELECT version FROM @version`)).Scan(&version)
	if err == nil && version > schemaVersion {
		err = fmt.Errorf("the schema has version %d, and this version of Pawl knows %d: %w", version, schemaVersion, journal.ErrNewer)
	}
	return version, err
}

// Migration describes what [Migrate] did, or would do.
type Migration struct {
	From       int      `json:"from"`
	To         int      `json:"to"`
	Statements []string `json:"statements"`
}

// Migrate migrates the schema at a URL to the version of this package. It creates the
// schema if there is none. A dry run changes nothing.
func Migrate(ctx context.Context, at string, dry bool) (Migration, error) {
	c, err := configOf(at, Options{})
	if err != nil {
		return Migration{}, err
	}
	conn, err := pgx.ConnectConfig(ctx, c.conn)
	if err != nil {
		return Migration{}, fmt.Errorf("postgres: migrate: %w", classify(err))
	}
	defer conn.Close(context.WithoutCancel(ctx))
	m, err := c.migrate(ctx, conn, dry, func(int) bool { return true })
	if err != nil {
		return m, fmt.Errorf("postgres: migrate: %w", classify(err))
	}
	return m, nil
}

// migrate runs the steps that the schema's version needs, if from allows that version.
func (c *config) migrate(ctx context.Context, conn *pgx.Conn, dry bool, from func(version int) bool) (m Migration, err error) {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return m, err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, migrationLock); err != nil {
		return m, err
	}
	m.To = schemaVersion
	if m.From, err = c.versionOf(ctx, tx); err != nil || m.From == schemaVersion || !from(m.From) {
		return m, err
	}
	if m.From == 0 {
		m.Statements = append(m.Statements, `CREATE SCHEMA IF NOT EXISTS `+strings.TrimSuffix(c.prefix, "."))
	}
	for _, step := range steps[m.From:] {
		m.Statements = append(m.Statements, c.at(step))
	}
	m.Statements = append(m.Statements, c.at(fmt.Sprintf(`UPDATE @version SET version = %d`, schemaVersion)))
	if dry {
		return m, nil
	}
	for _, statement := range m.Statements {
		// The simple protocol accepts several statements at once.
		if _, err := tx.Conn().PgConn().Exec(ctx, statement).ReadAll(); err != nil {
			return m, err
		}
	}
	return m, tx.Commit(ctx)
}
