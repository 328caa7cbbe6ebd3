package wire

import (
	"slices"

	"github.com/pawlrun/pawl/llm"
)

// AddParted adds encoded messages to a body, each of which brings the comma before
// it. Where nothing stands before the first one, it needs none.
func AddParted(body *llm.Assembly, messages []llm.Segment, first bool) {
	for _, seg := range messages {
		if len(seg.Bytes) == 0 {
			continue
		}
		if first {
			seg.Bytes, first = seg.Bytes[1:], false
		}
		body.Add(seg)
	}
}

// WithEnd is a request with another end, as one that asks for the whole answer
// in place of a stream. The other pieces are shared and stay as they are.
func WithEnd(e *llm.Encoded, from, to []byte) *llm.Encoded {
	last := len(e.Segments) - 1
	if last < 0 || string(e.Segments[last]) != string(from) {
		return e
	}
	segments := slices.Clone(e.Segments)
	segments[last] = to
	return &llm.Encoded{Segments: segments, Digest: e.Digest}
}

// Encoded is a request as it is streamed: as it was encoded before, or as the
// model encodes it now.
func Encoded(req *llm.Request, model llm.Encoder) (*llm.Encoded, error) {
	if req.Encoded != nil {
		return req.Encoded, nil
	}
	return model.Encode(req)
}
