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

// Exchange is an answer in progress. The caller must close it.
type Exchange struct {
	Response  *http.Response
	Body      io.Reader
	RequestID string
	watchdog  *time.Timer
	silence   *stall
	stop      func()
	// asked and address are the request's header and address, which may contain
	// credentials.
	asked   http.Header
	address *url.URL
	// begun holds the beginning of the body once IsJSON has read it.
	begun *replayed
	// lines reports that the body is a sequence of objects.
	lines bool
}

// Close ends the exchange.
func (x *Exchange) Close() {
	x.stop()
	_ = x.Response.Body.Close()
}

// IsJSON reports whether the body is a JSON object instead of an event stream. It
// examines the bytes, because some proxies drop or rewrite Content-Type. The examined
// bytes can be read again from Body, except the leading white space that keeps a
// connection open. It returns an error if the connection broke before the first byte.
func (x *Exchange) IsJSON() (bool, error) {
	seen := make([]byte, 0, 512)
	for {
		n, err := x.Body.Read(seen[len(seen):cap(seen)])
		seen = seen[:len(seen)+n]
		head := withoutBlanks(seen)
		// An incomplete byte-order mark does not decide it.
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

// withoutBlanks returns a body from its first visible byte on.
func withoutBlanks(body []byte) []byte {
	return bytes.TrimLeft(bytes.TrimPrefix(body, []byte(byteOrderMark)), " \t\r\n")
}

// replayed reads the data that was read before, then the rest. seen keeps the beginning
// of both, up to its capacity.
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

// ended reports whether the service completed the body, as opposed to a broken
// connection.
func (x *Exchange) ended(err error) bool {
	r := x.Response
	told := r.ProtoMajor > 1 || r.ContentLength >= 0 || slices.Contains(r.TransferEncoding, "chunked")
	return told && errors.Is(err, io.EOF)
}

// linger bounds the time to read the rest of a finished answer.
const linger = 250 * time.Millisecond

// Finish ends an exchange whose last event has arrived. It reads the short rest,
// because a connection can be reused only if it was read to its end. It does not wait
// for a server that keeps the stream open.
func (x *Exchange) Finish() {
	x.silence.end()
	x.watchdog.Reset(linger)
	_, _ = io.CopyN(io.Discard, x.Response.Body, 64<<10)
	x.Close()
}
