package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/pawlrun/pawl/journal"
)

var _ journal.KeepsTenants = (*Store)(nil)

// tenantTables are the tenants of root runs and the limits of tenants. The function
// acquire locks the tenant's row before it counts the leases, so that two processes do
// not both take the last place; its statements see what was committed before each.
const tenantTables = `
CREATE TABLE @tenants (
	name        text PRIMARY KEY,
	max_running integer NOT NULL
);
CREATE TABLE @placed (
	rid    bigint PRIMARY KEY REFERENCES @runs (rid) ON DELETE CASCADE,
	tenant text NOT NULL
);
CREATE FUNCTION @acquire(channel text, run text, holder text, dead text, given bigint, ttl bigint)
RETURNS TABLE (taken bigint, full_tenant boolean) LANGUAGE plpgsql AS $body$
#variable_conflict use_variable
DECLARE
	named text;
	most integer;
	taken_epoch bigint;
	reason text;
BEGIN
	SELECT t.name, t.max_running INTO named, most
	FROM @runs r JOIN @placed p ON p.rid = r.rid JOIN @tenants t ON t.name = p.tenant
	WHERE r.id = run AND t.max_running > 0 FOR UPDATE OF t;
	IF named IS NOT NULL AND most <= (
		SELECT count(*) FROM @runs r JOIN @placed p ON p.rid = r.rid
		WHERE p.tenant = named AND r.owner <> '' AND r.owner <> dead AND r.id <> run
			AND r.expiry > coalesce(given, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1000))
	THEN
		reason := 'max_running ' || most || ' of ' || named;
		UPDATE @runs r SET detail = reason,
			progress = convert_to((convert_from(r.progress, 'UTF8')::jsonb || jsonb_build_object('detail', reason))::text, 'UTF8')
		WHERE r.id = run AND r.state = 'queued' AND r.detail <> reason AND r.owner = '';
		PERFORM pg_notify(channel, '');
		RETURN QUERY SELECT 0::bigint, true;
		RETURN;
	END IF;
	UPDATE @runs r SET owner = holder, epoch = r.epoch + 1,
		expiry = coalesce(given, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1000) + ttl
	WHERE r.id = run AND (r.owner = '' OR r.owner = dead
		OR r.expiry <= coalesce(given, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1000))
	RETURNING r.epoch INTO taken_epoch;
	IF taken_epoch IS NOT NULL THEN
		PERFORM pg_notify(channel, '');
		RETURN QUERY SELECT taken_epoch, false;
	END IF;
END
$body$;
`

// assignRun changes the tenant's row only if the limit is another one, because an
// update would serialize all starts of the tenant.
const assignRun = `
WITH t AS (
	INSERT INTO @tenants AS t (name, max_running) VALUES ($2, $3)
	ON CONFLICT (name) DO UPDATE SET max_running = excluded.max_running WHERE t.max_running <> excluded.max_running)
INSERT INTO @placed AS p (rid, tenant) SELECT rid, $2 FROM @runs WHERE id = $1
ON CONFLICT (rid) DO UPDATE SET tenant = excluded.tenant RETURNING rid`

// Assign sets the tenant of a run, and the limit of the tenant.
func (s *Store) Assign(ctx context.Context, run, tenant string, maxRunning int) error {
	var rid int64
	if err := s.write(ctx, true, assignRun, []any{run, tenant, maxRunning}, &rid); err != nil {
		return fmt.Errorf("postgres: set the tenant of run %s: %w", run, err)
	}
	return nil
}

const selectLoad = `
SELECT coalesce(p.tenant, ''), r.state, count(*), min(r.created)
FROM @runs r LEFT JOIN @placed p ON p.rid = r.rid
WHERE r.parent = '' AND r.state IN ('queued', 'running', 'waiting') GROUP BY 1, 2 ORDER BY 1, 2`

// Load counts the runs that are queued or go on, by their tenants.
func (s *Store) Load(ctx context.Context) ([]journal.Load, error) {
	all, err := collect(ctx, s, func(row pgx.CollectableRow) (l journal.Load, err error) {
		var created int64
		err = row.Scan(&l.Tenant, &l.State, &l.Runs, &created)
		l.Oldest = fromNanos(created)
		return l, err
	}, selectLoad)
	if err != nil {
		return nil, fmt.Errorf("postgres: count runs: %w", err)
	}
	return all, nil
}
