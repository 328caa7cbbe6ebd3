package web

import (
	"context"
	"sync"
)

// smallPage is the maximum length, in bytes, of an HTML page that needs no slot.
const smallPage = 256 << 10

// PageLimit bounds the memory of all fetches that share it, whichever tool and run they
// belong to: the tree of a page takes about sixty bytes for each byte of the page, so
// long pages are parsed one at a time. The zero value is ready for use. It is safe for
// concurrent use.
type PageLimit struct {
	once  sync.Once
	taken chan struct{}
}

// take waits until no other long page is parsed, or until ctx ends.
func (p *PageLimit) take(ctx context.Context) (leave func(), err error) {
	p.once.Do(func() { p.taken = make(chan struct{}, 1) })
	select {
	case p.taken <- struct{}{}:
		return func() { <-p.taken }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
