package postgres

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlrun/pawl/journal"
)

const (
	// lookInterval is the interval of polling for commits of other processes while the
	// listening connection is down.
	lookInterval = 100 * time.Millisecond
	// listenAgain is the pause before another attempt to listen.
	listenAgain = time.Second
	// probeTime bounds the round trip of a probe. A pooler that assigns connections to
	// transactions delivers no notifications.
	probeTime = time.Second
	// quiet is how long a connection may be silent before it is probed.
	quiet = 10 * time.Second
	// probe is the prefix of a probe's payload; no run id begins with it.
	probe = "?"
)

// watcher notifies subscribers of commits. It detects commits of this process at once,
// and those of other processes by the notifications of the database. It listens for
// these on one connection while there are subscribers, and polls while that connection
// is down.
type watcher struct {
	store *Store
	// channel is the notification channel of the schema.
	channel string
	journal.Watchers
}

func newWatcher(s *Store) *watcher {
	sum := sha256.Sum256([]byte(s.config.prefix)) // a channel's name has at most 63 bytes
	w := &watcher{store: s, channel: "pawl_" + hex.EncodeToString(sum[:8])}
	w.Follow = w.follow
	return w
}

// Watch returns a channel that receives after each commit of any process.
func (s *Store) Watch(ctx context.Context) <-chan struct{} { return s.watch.Add(ctx, "") }

// WatchInbox returns a channel that receives after each command to a run.
func (s *Store) WatchInbox(ctx context.Context, run string) <-chan struct{} {
	return s.watch.Add(ctx, run)
}

// follow listens for notifications. It polls until the first one has arrived, and
// whenever the connection has failed.
func (w *watcher) follow(ctx context.Context) {
	for pause := time.Duration(0); ctx.Err() == nil; pause = listenAgain {
		looking, listening := context.WithCancel(ctx)
		var looks sync.WaitGroup
		looks.Go(func() { w.poll(looking) })
		t := time.NewTimer(pause)
		select {
		case <-t.C:
			w.listen(ctx, func() {
				listening()
				looks.Wait()
				w.NotifyAll() // commits since the last poll sent no notification here
			})
		case <-ctx.Done():
		}
		t.Stop()
		listening()
		looks.Wait()
	}
}

// listen passes on notifications until the connection fails. It calls connected after
// the first one has arrived.
func (w *watcher) listen(ctx context.Context, connected func()) {
	conn, err := pgx.ConnectConfig(ctx, w.store.config.conn)
	if err != nil {
		return
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = conn.Close(closing)
	}()
	if _, err := conn.Exec(ctx, `LISTEN `+pgx.Identifier{w.channel}.Sanitize()); err != nil {
		return
	}
	for first := true; ; first = false {
		if !w.probe(ctx, conn) {
			return
		}
		if first {
			connected()
		}
		for w.next(ctx, conn, quiet) != "" {
		}
		if ctx.Err() != nil || conn.IsClosed() {
			return
		}
	}
}

// next passes on one notification and returns its payload with a mark before it, or ""
// if none arrives in time.
func (w *watcher) next(ctx context.Context, conn *pgx.Conn, patience time.Duration) string {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	n, err := conn.WaitForNotification(ctx)
	if err != nil {
		return ""
	}
	if !strings.HasPrefix(n.Payload, probe) {
		w.Notify("")
		if n.Payload != "" {
			w.Notify(n.Payload)
		}
	}
	return "." + n.Payload
}

// probe reports whether the connection receives notifications from another one.
func (w *watcher) probe(ctx context.Context, conn *pgx.Conn) bool {
	name := probe + rand.Text()
	sending, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	if _, err := w.store.pool.Exec(sending, `SELECT pg_notify($1, $2)`, w.channel, name); err != nil {
		return false
	}
	for {
		switch w.next(sending, conn, probeTime) {
		case "":
			return false
		case "." + name:
			return true
		}
	}
}

// marks holds the newest event and command that were seen, and what was seen of the
// commands to the runs with subscribers. It omits changes of leases, because each waiter
// polls for these.
type marks struct {
	pos, command int64
	// runs maps each subscribed run with commands to the sum of their ids. The sum also
	// changes if a command with a lower id is committed after one with a higher id.
	runs map[string]int64
}

const look = `
SELECT pos, (SELECT coalesce(max(id), 0) FROM @inbox), (
	SELECT coalesce(json_object_agg(id, ids), '{}')
	FROM (SELECT r.id, sum(i.id) ids FROM @inbox i JOIN @runs r USING (rid) WHERE r.id = ANY($1) GROUP BY r.id) s)
FROM @head`

// poll queries the marks until ctx ends. It wakes the subscribers to those that differ
// from the previous ones, and at first all subscribers.
func (w *watcher) poll(ctx context.Context) {
	tick := time.NewTicker(lookInterval)
	defer tick.Stop()
	var seen *marks
	for {
		if now, err := w.look(ctx); err == nil {
			w.compare(seen, now)
			seen = now
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (w *watcher) look(ctx context.Context) (*marks, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var now marks
	err := w.store.pool.QueryRow(ctx, w.store.config.at(look), w.Runs()).Scan(&now.pos, &now.command, &now.runs)
	return &now, err
}

func (w *watcher) compare(seen, now *marks) {
	if seen == nil {
		w.NotifyAll()
		return
	}
	if now.pos != seen.pos || now.command != seen.command {
		w.Notify("")
	}
	for run, ids := range now.runs {
		if ids != seen.runs[run] {
			w.Notify(run)
		}
	}
}
