package journal

import (
	"context"
	"sync"
)

// Watchers holds the channels that Watch and WatchInbox of a store return. It is safe for
// concurrent use.
type Watchers struct {
	// Follow runs while there are channels, and notifies them of the commits of other
	// processes; nil for a store that has none.
	Follow func(context.Context)

	mu sync.Mutex
	// channels are for the commands to a run, or ("") for every commit.
	channels map[string]map[chan struct{}]bool
	cancel   context.CancelFunc
	closed   bool
	follows  sync.WaitGroup
}

// Add returns a channel for the commands to a run, or ("") for every commit, until ctx
// ends.
func (w *Watchers) Add(ctx context.Context, run string) <-chan struct{} {
	ch := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.channels == nil {
		w.channels = map[string]map[chan struct{}]bool{}
	}
	if w.channels[run] == nil {
		w.channels[run] = map[chan struct{}]bool{}
	}
	w.channels[run][ch] = true
	if w.Follow != nil && w.cancel == nil && !w.closed {
		following, cancel := context.WithCancel(context.Background())
		w.cancel = cancel
		w.follows.Go(func() { w.Follow(following) })
	}
	context.AfterFunc(ctx, func() { w.remove(run, ch) })
	return ch
}

func (w *Watchers) remove(run string, ch chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.channels[run], ch)
	if len(w.channels[run]) == 0 {
		delete(w.channels, run)
	}
	if len(w.channels) == 0 {
		w.stop()
	}
}

func (w *Watchers) stop() {
	if w.cancel != nil {
		w.cancel()
		w.cancel = nil
	}
}

// Close stops Follow, and waits until it has returned.
func (w *Watchers) Close() {
	w.mu.Lock()
	w.closed = true
	w.stop()
	w.mu.Unlock()
	w.follows.Wait()
}

// Notify sends to the channels for runs.
func (w *Watchers) Notify(runs ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, run := range runs {
		w.send(run)
	}
}

// NotifyAll sends to all channels.
func (w *Watchers) NotifyAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for run := range w.channels {
		w.send(run)
	}
}

func (w *Watchers) send(run string) {
	for ch := range w.channels[run] {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

// Runs returns the runs whose commands have channels.
func (w *Watchers) Runs() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	runs := make([]string, 0, len(w.channels))
	for run := range w.channels {
		if run != "" {
			runs = append(runs, run)
		}
	}
	return runs
}
