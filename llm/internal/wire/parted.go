package wire

import (
	"slices"

	"github.com/pawlrun/pawl/llm"
)

// AddParted adds encoded messages, each of which begins with a comma, to a body. It
// drops the comma of the first message if nothing precedes it.
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

// WithEnd returns a request with another end, for example to ask for the whole answer
// instead of a stream. It shares the other pieces and does not change them.
func WithEnd(e *llm.Encoded, from, to []byte) *llm.Encoded {
	last := len(e.Segments) - 1
	if last < 0 || string(e.Segments[last]) != string(from) {
		return e
	}
	segments := slices.Clone(e.Segments)
	segments[last] = to
	return &llm.Encoded{Segments: segments, Digest: e.Digest}
}

// Encoded returns a request in streamed form: as it was encoded before, or as the model
// encodes it now.
func Encoded(req *llm.Request, model llm.Encoder) (*llm.Encoded, error) {
	if req.Encoded != nil {
		return req.Encoded, nil
	}
	return model.Encode(req)
}
