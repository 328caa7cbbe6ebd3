package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

// mostMarks bounds each of the two maps of acknowledged.
const mostMarks = 2048

// acknowledged is what the database acknowledged to this process. A failover to a standby
// that lacks events, and a backup that is restored, take some of it back.
type acknowledged struct {
	mu sync.Mutex
	// newest is the event at the newest position.
	newest journal.Loss
	// runs has the newest event of each run. When it is full it becomes older, so that
	// those which were appended to long ago are forgotten.
	runs, older map[string]journal.Loss
	// lost is the error of all operations after a loss.
	lost error
}

func (a *acknowledged) add(e journal.Loss) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e.Pos > a.newest.Pos {
		a.newest = e
	}
	if a.runs == nil || len(a.runs) >= mostMarks {
		a.runs, a.older = map[string]journal.Loss{}, a.runs
	}
	a.runs[e.Run] = e
	delete(a.older, e.Run)
}

func (a *acknowledged) pos() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.newest.Pos
}

func (a *acknowledged) err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lost
}

// kept returns the events of runs in the order of their positions, the newest of all
// last.
func (a *acknowledged) kept() []journal.Loss {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := slices.AppendSeq(slices.Collect(maps.Values(a.older)), maps.Values(a.runs))
	slices.SortFunc(all, func(x, y journal.Loss) int { return int(x.Pos - y.Pos) })
	return all
}

// loss is a record that a process found events lost.
type loss struct {
	// Newest is the database's newest position at that moment.
	Newest int64          `json:"newest"`
	Runs   []journal.Loss `json:"runs"`
}

// lossNote is the key of the note with all losses, each as a line of JSON. Only a database
// that lost events has it.
const lossNote = "lost events"

var recordLoss = `
INSERT INTO @notes AS n (key, at, expires, body) VALUES ('` + lossNote + `', ` + dbNow("NULL") + `, 0, $1)
ON CONFLICT (key) DO UPDATE SET body = n.body || $1 WHERE position($2 IN n.body) = 0`

// check returns [journal.ErrReplaced] if the database lacks events that it acknowledged,
// and records which. After that the process writes nothing until it is started again.
func (a *acknowledged) check(ctx context.Context, conn *pgx.Conn, c *config) error {
	all := a.kept()
	if err := a.err(); err != nil || len(all) == 0 {
		return err
	}
	found, err := lostOf(ctx, conn, c, all[len(all)-1:])
	if err != nil || len(found.Runs) == 0 {
		return err
	}
	if found, err = lostOf(ctx, conn, c, all); err != nil {
		return err
	}
	line, err := json.Marshal(found)
	if err != nil {
		return err
	}
	newest := all[len(all)-1]
	if _, err := conn.Exec(ctx, c.at(recordLoss), append(line, '\n'), []byte(newest.Head)); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lost = fmt.Errorf("%w: events of %d runs that the database acknowledged are lost, up to position %d (the newest is now %d); 'pawl runs verify --all' names the runs",
		journal.ErrReplaced, len(found.Runs), newest.Pos, found.Newest)
	return a.lost
}

// lostOf returns those of the acknowledged events that the database lacks. At an earlier
// position an event may be missing because its run was deleted.
func lostOf(ctx context.Context, conn *pgx.Conn, c *config, all []journal.Loss) (found loss, err error) {
	positions := make([]int64, len(all))
	for i, e := range all {
		positions[i] = e.Pos
	}
	if err := conn.QueryRow(ctx, c.at(`SELECT pos FROM @head`)).Scan(&found.Newest); err != nil {
		return found, err
	}
	rows, err := conn.Query(ctx, c.at(`SELECT pos, body FROM @log WHERE pos = ANY ($1)`), positions)
	if err != nil {
		return found, err
	}
	heads := map[int64]string{}
	var pos int64
	var body []byte
	if _, err := pgx.ForEachRow(rows, []any{&pos, &body}, func() error { heads[pos] = event.Hash(body); return nil }); err != nil {
		return found, err
	}
	for _, e := range all {
		if head := heads[e.Pos]; e.Pos > found.Newest || head != "" && head != e.Head {
			found.Runs = append(found.Runs, e)
		}
	}
	return found, nil
}

func (s *Store) losses(ctx context.Context) (all []loss, err error) {
	var body []byte
	err = s.try(ctx, true, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, s.config.at(`SELECT body FROM @notes WHERE key = $1`), lossNote).Scan(&body)
	})
	if errors.Is(err, journal.ErrNotFound) {
		return nil, nil
	}
	for line := range strings.Lines(string(body)) {
		var l loss
		err = errors.Join(err, json.Unmarshal([]byte(line), &l))
		all = append(all, l)
	}
	if err != nil {
		return nil, fmt.Errorf("postgres: read what was lost: %w", err)
	}
	return all, nil
}

// Losses implements [journal.RecordsLosses].
func (s *Store) Losses(ctx context.Context, run string) (found []journal.Loss, err error) {
	all, err := s.losses(ctx)
	for _, l := range all {
		for _, e := range l.Runs {
			if e.Run == run {
				found = append(found, e)
			}
		}
	}
	return found, err
}

// Check returns a [journal.ErrCorrupt] if the database lost events that it acknowledged,
// and a process noticed.
func (s *Store) Check(ctx context.Context) error {
	all, err := s.losses(ctx)
	if err != nil || len(all) == 0 {
		return err
	}
	var faults []string
	for _, l := range all {
		var runs []string
		for _, e := range l.Runs {
			runs = append(runs, fmt.Sprintf("%s up to its event %d", e.Run, e.Seq))
		}
		faults = append(faults, fmt.Sprintf("acknowledged events are lost, up to position %d (the newest was %d when a process noticed): %s",
			l.Runs[len(l.Runs)-1].Pos, l.Newest, strings.Join(runs, ", ")))
	}
	return fmt.Errorf("postgres: %w: %s", journal.ErrCorrupt, strings.Join(faults, "; "))
}
