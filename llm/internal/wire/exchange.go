package wire

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
)

// Exchange is an answer under way. Close it.
type Exchange struct {
	Response  *http.Response
	Body      io.Reader
	RequestID string
	watchdog  *time.Timer
	stop      func()
	// secrets are the credentials that the request carried.
	secrets []string
	// markup says that the body begins with a tag.
	markup bool
}

// Close ends the exchange.
func (x *Exchange) Close() {
	x.stop()
	_ = x.Response.Body.Close()
}

// IsJSON says whether the body is a JSON object in place of an event stream.
// It looks at the bytes: proxies are known to lose or rewrite Content-Type
// (FIELD F20). What was looked at is read again from Body. The error is that of
// a connection which broke before it gave anything to look at.
func (x *Exchange) IsJSON() (bool, error) {
	seen := make([]byte, 0, 512)
	for {
		n, err := x.Body.Read(seen[len(seen):cap(seen)])
		seen = seen[:len(seen)+n]
		head := bytes.TrimLeft(bytes.TrimPrefix(seen, []byte(byteOrderMark)), " \t\r\n")
		// A mark that has only begun is not looked past.
		undecided := len(head) == 0 || bytes.HasPrefix([]byte(byteOrderMark), seen)
		if !undecided || err != nil || len(seen) == cap(seen) {
			x.Body = &replayed{seen: seen, err: err, rest: x.Body}
			if len(head) == 0 && !errors.Is(err, io.EOF) {
				return false, err
			}
			x.markup = len(head) > 0 && head[0] == '<'
			return len(head) > 0 && head[0] == '{', nil
		}
	}
}

const byteOrderMark = "\xef\xbb\xbf"

// webPage says that a page for people came: that of a proxy or of a login, as a
// rule. It has to look like one, because proxies rewrite the type of streams
// too (FIELD F20), and those are paid for.
func (x *Exchange) webPage() bool { return x.markup && x.calledPage() }

// calledPage says that the answer calls itself such a page.
func (x *Exchange) calledPage() bool {
	return strings.HasPrefix(x.Response.Header.Get("Content-Type"), "text/html")
}

// replayed gives what was read before, then the rest.
type replayed struct {
	seen []byte
	err  error
	rest io.Reader
}

func (r *replayed) Read(p []byte) (int, error) {
	if len(r.seen) > 0 {
		n := copy(p, r.seen)
		r.seen = r.seen[n:]
		return n, nil
	}
	if r.err != nil {
		return 0, r.err
	}
	return r.rest.Read(p)
}

// ReadAll reads a body that is not a stream.
func (x *Exchange) ReadAll() ([]byte, error) { return io.ReadAll(x.Body) }

// linger is how long a finished answer may take to end.
const linger = 250 * time.Millisecond

// Finish ends an exchange whose last event has come. It reads what little may
// follow, because a connection that was read to its end serves the next
// request. A server that keeps the stream open is not waited for.
func (x *Exchange) Finish() {
	x.watchdog.Reset(linger)
	_, _ = io.CopyN(io.Discard, x.Response.Body, 64<<10)
	x.Close()
}
