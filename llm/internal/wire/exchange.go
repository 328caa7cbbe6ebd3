package wire

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// Exchange is an answer under way. Close it.
type Exchange struct {
	Response  *http.Response
	Body      io.Reader
	RequestID string
	watchdog  *time.Timer
	silence   *stall
	stop      func()
	// asked and address are the request's header and address, which may carry
	// credentials.
	asked   http.Header
	address *url.URL
	// begun is the body's beginning, once it was looked at.
	begun *replayed
	// lines says that the body is one object after the other.
	lines bool
}

// Close ends the exchange.
func (x *Exchange) Close() {
	x.stop()
	_ = x.Response.Body.Close()
}

// IsJSON reports whether the body is a JSON object in place of an event stream.
// It looks at the bytes: proxies are known to lose or rewrite Content-Type. What
// was looked at is read again from Body, but for blanks that keep a connection
// open until the answer comes, however many. The error is that of a connection
// which broke before it gave anything to look at.
func (x *Exchange) IsJSON() (bool, error) {
	seen := make([]byte, 0, 512)
	for {
		n, err := x.Body.Read(seen[len(seen):cap(seen)])
		seen = seen[:len(seen)+n]
		head := withoutBlanks(seen)
		// A mark that has only begun is not looked past.
		undecided := len(head) == 0 || bytes.HasPrefix([]byte(byteOrderMark), seen)
		if !undecided || err != nil {
			x.begun = &replayed{seen: seen, err: err, rest: x.Body}
			x.Body = x.begun
			if len(head) == 0 && !errors.Is(err, io.EOF) {
				return false, err
			}
			return len(head) > 0 && head[0] == '{', nil
		}
		if len(seen) == cap(seen) {
			seen = seen[:0]
		}
	}
}

const byteOrderMark = "\xef\xbb\xbf"

// withoutBlanks is a body from its first visible byte on.
func withoutBlanks(body []byte) []byte {
	return bytes.TrimLeft(bytes.TrimPrefix(body, []byte(byteOrderMark)), " \t\r\n")
}

// replayed gives what was read before, then the rest. It keeps the beginning of
// both, as much as seen has room for.
type replayed struct {
	seen  []byte
	given int
	err   error
	rest  io.Reader
}

func (r *replayed) Read(p []byte) (int, error) {
	if r.given < len(r.seen) {
		n := copy(p, r.seen[r.given:])
		r.given += n
		return n, nil
	}
	if r.err != nil {
		return 0, r.err
	}
	n, err := r.rest.Read(p)
	r.seen = append(r.seen, p[:min(n, cap(r.seen)-len(r.seen))]...)
	r.given = len(r.seen)
	return n, err
}

// ReadAll reads a body that is not a stream.
func (x *Exchange) ReadAll() ([]byte, error) { return io.ReadAll(x.Body) }

// ended reports whether the service brought the body to its end, as it would not where
// the connection broke.
func (x *Exchange) ended(err error) bool {
	r := x.Response
	told := r.ProtoMajor > 1 || r.ContentLength >= 0 || slices.Contains(r.TransferEncoding, "chunked")
	return told && errors.Is(err, io.EOF)
}

// linger is how long a finished answer may take to end.
const linger = 250 * time.Millisecond

// Finish ends an exchange whose last event has come. It reads what little may
// follow, because a connection that was read to its end serves the next
// request. A server that keeps the stream open is not waited for.
func (x *Exchange) Finish() {
	x.silence.end()
	x.watchdog.Reset(linger)
	_, _ = io.CopyN(io.Discard, x.Response.Body, 64<<10)
	x.Close()
}
