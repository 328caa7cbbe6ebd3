package wire

import (
	"bytes"
	"io"

	"github.com/pawlrun/pawl/llm"
)

// maxJoined is how long a request may be to be sent from one piece.
const maxJoined = 64 << 10

// newBody reads an encoded request. net/http writes the header of a request together
// with its body only if it knows the body's type, so a short one is joined.
func newBody(request *llm.Encoded) io.ReadCloser {
	if n := request.Len(); n <= maxJoined {
		joined := make([]byte, 0, n)
		for _, s := range request.Segments {
			joined = append(joined, s...)
		}
		return io.NopCloser(bytes.NewReader(joined))
	}
	return &body{segments: request.Segments}
}

// body reads a long request piece by piece.
type body struct {
	segments [][]byte
	at       int
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n := 0
	for len(b.segments) > 0 && n < len(p) {
		c := copy(p[n:], b.segments[0][b.at:])
		n += c
		b.at += c
		if b.at == len(b.segments[0]) {
			b.segments, b.at = b.segments[1:], 0
		}
	}
	if n == 0 && len(b.segments) == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// Close implements io.Closer.
func (b *body) Close() error { return nil }
