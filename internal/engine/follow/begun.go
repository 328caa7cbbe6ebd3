package follow

import (
	"context"
	"fmt"

	"github.com/pawlrun/pawl/event"
)

// Begun returns a channel that receives after a root run has, or may have, started; one
// value may represent several runs. It starts after pos, and ends with stop.
func (f *Follower) Begun(ctx context.Context) (begun <-chan struct{}, pos int64, stop func(), err error) {
	if pos, err = f.listen(ctx); err != nil {
		return nil, 0, nil, fmt.Errorf("follow: the runs that begin: %w", err)
	}
	told := make(chan struct{}, 1)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begins[told] = true
	return told, pos, func() {
		f.mu.Lock()
		delete(f.begins, told)
		f.mu.Unlock()
		f.leave()
	}, nil
}

// begun notifies the channels of Begun of an event that starts a root run.
func (f *Follower) begun(kind event.Type, run, root string) {
	if kind == event.TypeRunStarted && run == root {
		f.tellBegun()
	}
}

func (f *Follower) tellBegun() {
	for told := range f.begins {
		select {
		case told <- struct{}{}:
		default: // a notification is pending already
		}
	}
}
