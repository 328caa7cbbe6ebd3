package fs

import (
	"fmt"
	"strings"

	"github.com/pawlrun/pawl/tool"
)

// maxPage bounds the bytes that one call returns. It is below the 30,000 characters of
// a result that a model sees, so that a page is never cut; the page itself says how to
// continue.
const maxPage = 28_000

// page collects the lines of a result up to maxPage.
type page struct {
	b strings.Builder
}

// add appends a line and reports whether there was room for it.
func (p *page) add(line string) bool {
	if p.b.Len() > 0 && p.b.Len()+len(line) >= maxPage {
		return false
	}
	p.b.WriteString(strings.ToValidUTF8(line, "\uFFFD"))
	p.b.WriteByte('\n')
	return true
}

// note appends a remark of the tool, even if the page is full.
func (p *page) note(format string, args ...any) {
	fmt.Fprintf(&p.b, "["+format+"]\n", args...)
}

func (p *page) result(truncated bool) tool.Result {
	return tool.Result{Output: p.b.String(), Truncated: truncated}
}
