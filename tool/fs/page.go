package fs

import (
	"fmt"
	"strings"

	"github.com/pawlrun/pawl/tool"
)

// maxPage is how many bytes one call returns. It stays below the 30,000
// characters that a model is given of a result, so that a page is
// never cut in its middle: a call says itself how to go on.
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

// note appends a remark of the tool's own, room or not.
func (p *page) note(format string, args ...any) {
	fmt.Fprintf(&p.b, "["+format+"]\n", args...)
}

func (p *page) result(truncated bool) tool.Result {
	return tool.Result{Output: p.b.String(), Truncated: truncated}
}
