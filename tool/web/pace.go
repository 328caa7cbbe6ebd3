package web

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

const (
	// leastRate is how fast a page must come at least, in bytes a second over
	// each paceWindow: a page that drips keeps a call for as long as it may last.
	leastRate  = 100
	paceWindow = 10 * time.Second
)

// tooSlow is why a page was given up that came too slowly.
type tooSlow struct{}

func (tooSlow) Error() string {
	return fmt.Sprintf("it came with less than %d bytes a second for %s", leastRate, paceWindow)
}

// paced counts what comes of a page.
type paced struct {
	r    io.Reader
	came atomic.Int64
}

func (p *paced) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	p.came.Add(int64(n))
	return n, err
}

// watch gives the page up with tooSlow once a window brings too little of it. The
// watch ends with ctx.
func (p *paced) watch(ctx context.Context, giveUp context.CancelCauseFunc) {
	tick := time.NewTicker(paceWindow)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if p.came.Swap(0) < int64(leastRate*paceWindow/time.Second) {
				giveUp(tooSlow{})
				return
			}
		}
	}
}
