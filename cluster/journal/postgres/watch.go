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

	mu sync.Mutex
	// subs holds the subscribers to the commands of a run, or ("") to every commit.
	subs   map[string]map[chan struct{}]bool
	cancel context.CancelFunc
	over   bool
	work   sync.WaitGroup
}

func newWatcher(s *Store) *watcher {
	sum := sha256.Sum256([]byte(s.config.prefix)) // a channel's name has at most 63 bytes
	return &watcher{store: s, channel: "pawl_" + hex.EncodeToString(sum[:8]), subs: map[string]map[chan struct{}]bool{}}
}

// Watch returns a channel that receives after each commit of any process.
func (s *Store) Watch(ctx context.Context) <-chan struct{} { return s.watch.add(ctx, "") }

// WatchInbox returns a channel that receives after each command to a run.
func (s *Store) WatchInbox(ctx context.Context, run string) <-chan struct{} {
	return s.watch.add(ctx, run)
}

func (w *watcher) add(ctx context.Context, run string) <-chan struct{} {
	ch := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.subs[run] == nil {
		w.subs[run] = map[chan struct{}]bool{}
	}
	w.subs[run][ch] = true
	if w.cancel == nil && !w.over {
		following, cancel := context.WithCancel(context.Background())
		w.cancel = cancel
		w.work.Go(func() { w.follow(following) })
	}
	context.AfterFunc(ctx, func() { w.remove(run, ch) })
	return ch
}

func (w *watcher) remove(run string, ch chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.subs[run], ch)
	if len(w.subs[run]) == 0 {
		delete(w.subs, run)
	}
	if len(w.subs) == 0 && w.cancel != nil {
		w.cancel()
		w.cancel = nil
	}
}

func (w *watcher) stop() {
	w.mu.Lock()
	w.over = true
	if w.cancel != nil {
		w.cancel()
		w.cancel = nil
	}
	w.mu.Unlock()
	w.work.Wait()
}

// notify wakes the subscribers to the commands of a run, or ("") of every commit.
func (w *watcher) notify(run string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wake(run)
}

func (w *watcher) notifyAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for run := range w.subs {
		w.wake(run)
	}
}

func (w *watcher) wake(run string) {
	for ch := range w.subs[run] {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
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
				w.notifyAll() // commits since the last poll sent no notification here
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
		w.notify("")
		if n.Payload != "" {
			w.notify(n.Payload)
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
	err := w.store.pool.QueryRow(ctx, w.store.config.at(look), w.subscribed()).Scan(&now.pos, &now.command, &now.runs)
	return &now, err
}

// subscribed returns the runs with subscribers to their commands.
func (w *watcher) subscribed() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	runs := make([]string, 0, len(w.subs))
	for run := range w.subs {
		if run != "" {
			runs = append(runs, run)
		}
	}
	return runs
}

func (w *watcher) compare(seen, now *marks) {
	if seen == nil {
		w.notifyAll()
		return
	}
	if now.pos != seen.pos || now.command != seen.command {
		w.notify("")
	}
	for run, ids := range now.runs {
		if ids != seen.runs[run] {
			w.notify(run)
		}
	}
}
