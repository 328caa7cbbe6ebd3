package web

import (
	"context"
	"errors"
	"sync"
)

const (
	// placesInAll is how many large texts are taken in at one time, each of which
	// takes a few times [Options.MaxBytes].
	placesInAll = 4
	// smallText is how long a text may be, in bytes, that needs no place.
	smallText = 512 << 10
)

// errNoPlace is why a page was given up that no place became free for.
var errNoPlace = errors.New("its text is long, and other long ones were being read for all of the time")

// Places bound how much memory fetches take together, whichever tool and run they
// are of: a text that turns out to be long waits for a place before more of it is
// read, and keeps it until it has been given. The zero value is ready to use, and
// so is sharing one between goroutines.
type Places struct {
	once  sync.Once
	taken chan struct{}
}

// take waits for a place as long as ctx lasts. Whoever waits holds none, so all
// who wait get theirs in the end.
func (p *Places) take(ctx context.Context) (leave func(), err error) {
	p.once.Do(func() { p.taken = make(chan struct{}, placesInAll) })
	select {
	case p.taken <- struct{}{}:
		return func() { <-p.taken }, nil
	case <-ctx.Done():
		return nil, errors.Join(errNoPlace, context.Cause(ctx))
	}
}

// place is the one that a fetch has, if it needed one.
type place struct {
	places *Places
	// paced is told of the wait, for which the page is not to blame.
	paced *paced
	leave func()
}

func (p *place) take(ctx context.Context) error {
	if p.leave != nil {
		return nil
	}
	defer p.paced.excuse()()
	var err error
	p.leave, err = p.places.take(ctx)
	return err
}

func (p *place) free() {
	if p.leave != nil {
		p.leave()
	}
}
