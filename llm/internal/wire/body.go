package wire

import (
	"io"
	"sync/atomic"
)

// body reads an encoded request piece by piece.
type body struct {
	segments [][]byte
	at       int
	// begun is set when reading begins.
	begun *atomic.Bool
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	b.begun.Store(true)
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

// WriteTo implements io.WriterTo, so that the pieces are not copied twice.
func (b *body) WriteTo(w io.Writer) (int64, error) {
	b.begun.Store(true)
	var total int64
	for len(b.segments) > 0 {
		n, err := w.Write(b.segments[0][b.at:])
		total += int64(n)
		if err != nil {
			return total, err
		}
		b.segments, b.at = b.segments[1:], 0
	}
	return total, nil
}

// Close implements io.Closer.
func (b *body) Close() error { return nil }
