package result

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/internal/search"
)

func run(ctx context.Context, c tool.Call, a args) (tool.Result, error) {
	switch {
	case c.Results == nil:
		return tool.Result{}, &tool.Error{Type: event.ErrorNotFound, Message: "this run keeps no results"}
	case a.Offset < 0:
		return tool.Result{}, invalid("offset must not be negative, and is %d", a.Offset)
	case a.Limit < 0:
		return tool.Result{}, invalid("limit must not be negative, and is %d", a.Limit)
	}
	var pattern *search.Pattern
	if a.Pattern != "" {
		var err error
		if pattern, err = search.Compile(a.Pattern); err != nil {
			return tool.Result{}, invalid("pattern: %v", err)
		}
	}
	stored, err := c.Results.Read(ctx, a.Handle)
	if err != nil {
		return tool.Result{}, err
	}
	text := text{content: stored.Content, total: utf8.RuneCount(stored.Content)}
	if a.Offset > text.total {
		return tool.Result{}, invalid("offset %d is beyond the end: the result has %d characters", a.Offset, text.total)
	}
	limit := pageSize(a.Limit, c.MaxResultChars)
	r := tool.Result{Untrusted: stored.Untrusted, Private: stored.Private}
	if pattern != nil {
		r.Output, err = text.search(ctx, pattern, a.Offset, limit)
		return r, err
	}
	r.Output = text.page(a.Offset, limit)
	return r, nil
}

func invalid(format string, args ...any) error {
	return &tool.Error{Type: event.ErrorInvalidArgs, Message: fmt.Sprintf(format, args...)}
}

// pageSize returns the number of characters of a page: as requested, but at most what
// the model sees, or the page would itself be cut.
func pageSize(asked, shown int) int {
	most := defaultPage
	if shown > 0 {
		most = max(1, shown-headerRoom)
	}
	switch {
	case asked > 0 && (shown <= 0 || asked < most):
		return asked
	default:
		return most
	}
}

// text is content with offsets in characters. An invalid UTF-8 byte is one character,
// so that pages never lose one.
type text struct {
	content []byte
	total   int
}

// after returns the offset n characters after the byte at.
func (t text) after(at, n int) int {
	if len(t.content) == t.total {
		return min(at+n, len(t.content))
	}
	for ; n > 0 && at < len(t.content); n-- {
		_, size := utf8.DecodeRune(t.content[at:])
		at += size
	}
	return at
}

// page returns limit characters from offset, with a header that says where they are and
// how to continue. It ends before base64 that does not fit, and leaves out base64 that
// fits in no page.
func (t text) page(offset, limit int) string {
	from := t.after(0, offset)
	limit = min(limit, t.total-offset)
	to := t.after(from, limit)
	whole := string(t.content)
	start, end := tool.Encoded(whole, to)
	if start > from && start < to {
		limit, to = utf8.RuneCountInString(whole[from:start]), start
	}
	if before, after := tool.Encoded(whole, from); before < from {
		start, end = from, after
	}
	if start <= from && end > from {
		return t.withoutEncoded(offset, utf8.RuneCountInString(whole[from:end]))
	}
	return t.header(offset, limit) + string(t.content[from:to])
}

// header returns the line above a page of some characters from offset.
func (t text) header(offset, n int) string {
	next := "this is the end"
	if end := offset + n; end < t.total {
		next = fmt.Sprintf("the next offset is %d", end)
	}
	return fmt.Sprintf("[characters %d to %d of %d; %s]\n", offset, offset+n, t.total, next)
}

// withoutEncoded returns the page for n characters of base64.
func (t text) withoutEncoded(offset, n int) string {
	return t.header(offset, n) + fmt.Sprintf("[… %d characters of base64 left out …]", n)
}
