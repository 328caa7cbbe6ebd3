package web

import (
	"context"
	"sync"
)

// smallPage is how long an HTML page may be, in bytes, that is read without a
// place.
const smallPage = 256 << 10

// PageLimit bounds how much memory fetches take together, whichever tool and run they
// are of: the tree of a page that is made for it takes some sixty bytes for each
// of the page, so long pages are read one at a time. The zero value is ready to
// use, and so is sharing one between goroutines.
type PageLimit struct {
	once  sync.Once
	taken chan struct{}
}

// take waits until no other long page is read, as long as ctx lasts.
func (p *PageLimit) take(ctx context.Context) (leave func(), err error) {
	p.once.Do(func() { p.taken = make(chan struct{}, 1) })
	select {
	case p.taken <- struct{}{}:
		return func() { <-p.taken }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
