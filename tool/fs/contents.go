package fs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
)

const (
	// maxKept is the maximum size of a content that is kept, and maxContents that of
	// all of them.
	maxKept     = 256 << 10
	maxContents = 8 << 20
	// maxShown bounds the changed lines that an edit shows.
	maxShown = 40
)

// contents caches the latest contents that calls have seen, by digest, so that an edit
// can describe later changes. The journal stores only digests.
type contents struct {
	mu     sync.Mutex
	digest map[string][]byte
	order  []string
	size   int
}

func (c *contents) keep(digest string, content []byte) {
	if len(content) > maxKept {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.digest == nil {
		c.digest = map[string][]byte{}
	}
	if _, ok := c.digest[digest]; ok {
		return
	}
	c.digest[digest], c.order, c.size = content, append(c.order, digest), c.size+len(content)
	for c.size > maxContents {
		c.size -= len(c.digest[c.order[0]])
		delete(c.digest, c.order[0])
		c.order = c.order[1:]
	}
}

func (c *contents) of(digest string) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	content, ok := c.digest[digest]
	return content, ok
}

// digestOf returns the digest of a content in the form of the journal, see
// [event.FileSeen].
func digestOf(sum [sha256.Size]byte) string { return hex.EncodeToString(sum[:sha256.Size/2]) }

func digest(content []byte) string { return digestOf(sha256.Sum256(content)) }

// seen returns the digest of the content of a file that the call's run knows.
func seen(c tool.Call, p string) (string, bool) {
	if c.Seen == nil {
		return "", false
	}
	return c.Seen(p)
}

// unchanged fails unless the run has seen this content of the file.
func unchanged(c tool.Call, p string, content []byte) error {
	known, ok := seen(c, p)
	switch {
	case !ok:
		return unread(p)
	case known != digest(content):
		return conflict("%s has changed since it was read; read it again", quote(p))
	}
	return nil
}

func unread(p string) error {
	return conflict("%s has not been read in this run; read it first", quote(p))
}

// now returns what a run knows about a file that a call has written whole.
func (w *Workspace) now(p string, content []byte) []event.FileSeen {
	d := digest(content)
	w.contents.keep(d, content)
	return []event.FileSeen{{Path: p, Digest: d}}
}

// since describes how a file has changed since the run saw it, and reports whether the
// description is complete.
func (w *Workspace) since(known string, content []byte) (said string, whole bool) {
	before, ok := w.contents.of(known)
	if !ok {
		return "it had changed since it was read; read it again if what changed matters", false
	}
	was, is := strings.SplitAfter(string(before), "\n"), strings.SplitAfter(string(content), "\n")
	head := commonLines(was, is, func(lines []string, i int) string { return lines[i] })
	was, is = was[head:], is[head:]
	tail := commonLines(was, is, func(lines []string, i int) string { return lines[len(lines)-1-i] })
	was, is = was[:len(was)-tail], is[:len(is)-tail]
	if len(is) == 0 {
		return fmt.Sprintf("since it was read, %s after line %d had been removed", count(len(was), "line"), head), true
	}
	shown := is[:min(len(is), maxShown)]
	f := formatOf(content)
	var b strings.Builder
	for i, l := range shown {
		text := []byte(strings.TrimRight(l, "\r\n"))
		if len(text) > maxLine {
			return fmt.Sprintf("line %d had changed since it was read; read it again if what changed matters", head+i+1), false
		}
		if f.encoding == latin1 {
			text = fromLatin1(text)
		}
		fmt.Fprintf(&b, "\n%6d\t%s", head+i+1, strings.ToValidUTF8(string(text), "\uFFFD"))
	}
	said = "since it was read, these lines had been added:" + b.String()
	if len(was) > 0 {
		said = fmt.Sprintf("since it was read, %s at line %d had been replaced by:%s", count(len(was), "line"), head+1, b.String())
	}
	if len(shown) < len(is) {
		return said + fmt.Sprintf("\n[%d more changed lines; read them with offset %d]", len(is)-len(shown), head+len(shown)+1), false
	}
	return said, true
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// commonLines counts the common lines of two texts from the end at which line begins.
func commonLines(a, b []string, line func([]string, int) string) int {
	n := 0
	for n < len(a) && n < len(b) && line(a, n) == line(b, n) {
		n++
	}
	return n
}
