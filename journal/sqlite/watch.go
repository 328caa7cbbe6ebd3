package sqlite

import (
	"context"
	"database/sql"
	"sync"
	"time"
)

// pollInterval is how often other processes' commits are looked for: readers
// of a run elsewhere see an event within 100 ms (DESIGN 6).
const pollInterval = 50 * time.Millisecond

// watcher tells subscribers that something was committed. Commits of this
// process are told at once; those of others by SQLite's data_version, polled
// only while somebody watches.
type watcher struct {
	db *sql.DB

	mu      sync.Mutex
	subs    map[chan struct{}]bool // whether only commands matter
	cancel  context.CancelFunc
	stopped bool
}

func newWatcher(db *sql.DB) *watcher {
	return &watcher{db: db, subs: map[chan struct{}]bool{}}
}

func (w *watcher) add(ctx context.Context, inboxOnly bool) <-chan struct{} {
	ch := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.subs[ch] = inboxOnly
	if w.cancel == nil && !w.stopped {
		poll, cancel := context.WithCancel(context.Background())
		w.cancel = cancel
		go w.poll(poll)
	}
	context.AfterFunc(ctx, func() { w.remove(ch) })
	return ch
}

func (w *watcher) remove(ch chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.subs, ch)
	if len(w.subs) == 0 && w.cancel != nil {
		w.cancel()
		w.cancel = nil
	}
}

func (w *watcher) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	if w.cancel != nil {
		w.cancel()
		w.cancel = nil
	}
}

// notify wakes the subscribers; those of commands only when there may be one.
func (w *watcher) notify(inbox bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ch, inboxOnly := range w.subs {
		if inboxOnly && !inbox {
			continue
		}
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

// poll looks for commits until nobody watches. A look that fails is repeated:
// whoever watches must not wait for ever because of one.
func (w *watcher) poll(ctx context.Context) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for ctx.Err() == nil {
		w.look(ctx, tick.C)
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// look tells of commits on one connection, because data_version means
// something only there, until it fails. What happened before the first look is
// unknown and counts as news.
func (w *watcher) look(ctx context.Context, tick <-chan time.Time) {
	conn, err := w.db.Conn(ctx)
	if err != nil {
		return
	}
	defer conn.Close()
	version, command := int64(-1), int64(-1)
	for {
		var v, c int64
		if err := conn.QueryRowContext(ctx, "PRAGMA data_version").Scan(&v); err != nil {
			return
		}
		if v != version {
			if err := conn.QueryRowContext(ctx, lastCommand).Scan(&c); err != nil {
				return
			}
			w.notify(c != command)
			version, command = v, c
		}
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
	}
}

// lastCommand is the number of the newest command ever sent.
const lastCommand = `SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'inbox'), 0)`
