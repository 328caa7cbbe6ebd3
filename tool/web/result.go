package web

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
)

// result returns a page for the model, with a line that describes it.
func (o Options) result(ctx context.Context, p page, t target, resp *http.Response, c tool.Call, a args) (tool.Result, error) {
	text := p.text
	if isHTML(p.mediaType) && !a.Source {
		reduced, cut, err := reduce(ctx, p.text, t.url, o.MaxBytes+ahead(c.Redact), o.PageLimit)
		if err != nil {
			return tool.Result{}, err
		}
		text, cut = o.beginning(reduced, cut, c.Redact)
		p.cut = p.cut || cut
	}
	r := tool.Result{Truncated: p.cut}
	notes := []string{t.url.String(), status(resp), p.mediaType}
	if p.cut {
		notes = append(notes, "only its beginning was read")
	}
	if a.MaxChars > 0 && c.Redact != nil {
		text = c.Redact(text) // half of a secret would not be recognized later
	}
	if n := utf8.RuneCountInString(text); a.MaxChars > 0 && n > a.MaxChars {
		text = first(text, a.MaxChars)
		notes = append(notes, fmt.Sprintf("the first %d of %d characters", a.MaxChars, n))
		r.Truncated = true
	}
	if resp.StatusCode >= 400 {
		r.IsError, r.ErrorType = true, event.ErrorTool
		if resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusGone {
			r.ErrorType = event.ErrorNotFound
		}
	}
	r.Output = "[" + strings.Join(notes, "; ") + "]\n" + text
	return r, nil
}

// first returns the first characters of a text.
func first(text string, chars int) string {
	for i := range text {
		if chars == 0 {
			return text[:i]
		}
		chars--
	}
	return text
}

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
