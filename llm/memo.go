package llm

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
)

// Memo caches the encoded form of messages within one run, so that encoding a request
// costs only what is new in it. It is keyed by message identity, so a message must not
// change once it is in a request.
//
// The zero Memo is ready for use; a nil *Memo caches nothing and produces the same
// bytes. A Memo is not safe for concurrent use.
type Memo struct {
	wire    string
	encoded map[*Message]Segment
	// asked holds a copy of the last request's list of messages, and segments their
	// encoded forms.
	asked    []*Message
	segments []Segment
	prefix   *Segment
	key      string
	fixed    Request
	// kept holds the messages of the last request that [Memo.Keep] recorded.
	kept []*Message
	// room is the buffer for encoding; the memo keeps copies of its exact size.
	room []byte
}

// Segment is a piece of an encoded request with its hash.
type Segment struct {
	Bytes []byte
	Sum   [sha256.Size]byte
	// prompt marks segments that the model reads: the prefix and the messages.
	prompt bool
}

func promptSegment(b []byte) Segment {
	s := NewSegment(b)
	s.prompt = true
	return s
}

// NewSegment returns a segment and hashes its bytes once.
func NewSegment(b []byte) Segment { return Segment{Bytes: b, Sum: sha256.Sum256(b)} }

// Message returns the encoded form of m on a wire, encoding it at most once. The result
// of encode must depend only on m and the wire's name.
func (c *Memo) Message(wire string, m *Message, encode func(dst []byte, m *Message) []byte) Segment {
	if c == nil {
		return promptSegment(encode(nil, m))
	}
	c.use(wire)
	seg, ok := c.encoded[m]
	if !ok {
		b := encode(c.room[:0], m)
		seg = promptSegment(bytes.Clone(b))
		c.encoded[m] = seg
		if cap(b) <= maxRoom {
			c.room = b
		}
	}
	return seg
}

// maxRoom bounds the buffer that is kept for the next message, so that images are not
// held twice.
const maxRoom = 64 << 10

// Messages returns the encoded forms of all messages of a request, like [Memo.Message].
// It does not look up again the messages that the last request began with. The segments
// are valid until the next call and must not be changed.
func (c *Memo) Messages(wire string, messages []*Message, encode func(dst []byte, m *Message) []byte) []Segment {
	if c == nil {
		c = new(Memo)
	}
	c.use(wire)
	n := alike(messages, c.asked)
	c.asked, c.segments = slices.Delete(c.asked, n, len(c.asked)), slices.Delete(c.segments, n, len(c.segments))
	for _, m := range messages[n:] {
		c.segments = append(c.segments, c.Message(wire, m, encode))
	}
	c.asked = append(c.asked, messages[n:]...)
	return c.segments
}

// alike returns the length of the common prefix.
func alike(a, b []*Message) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// RequestPrefix returns the encoded form of everything before the messages of a
// request; variant distinguishes forms of one request. It encodes again if any part has
// changed since the last call.
func (c *Memo) RequestPrefix(wire, variant string, req *Request, encode func() []byte) Segment {
	if c == nil {
		return promptSegment(encode())
	}
	c.use(wire)
	c.forget(req.Messages)
	if c.prefix == nil || c.key != variant || !samePrefix(&c.fixed, req) {
		seg := promptSegment(bytes.Clone(encode()))
		c.prefix, c.key, c.fixed = &seg, variant, *req
		c.fixed.Messages, c.fixed.Encoded, c.fixed.Memo = nil, nil, nil
	}
	return *c.prefix
}

// Len returns the number of cached messages.
func (c *Memo) Len() int { return len(c.encoded) }

// spare is how many messages are cached beyond twice the number in a request.
const spare = 256

// forget drops messages that the conversation no longer contains once there are many,
// so that repeated compaction does not grow the cache.
func (c *Memo) forget(messages []*Message) {
	if len(c.encoded) <= 2*len(messages)+spare {
		return
	}
	kept := make(map[*Message]Segment, len(messages))
	for _, m := range messages {
		if seg, ok := c.encoded[m]; ok {
			kept[m] = seg
		}
	}
	c.encoded = kept
}

// samePrefix compares fields by identity if their contents cannot change within a run,
// so that it costs only a few comparisons of pointers.
func samePrefix(a, b *Request) bool {
	return a.Model == b.Model && a.System == b.System && a.MaxTokens == b.MaxTokens && a.CacheKey == b.CacheKey && a.Cache == b.Cache &&
		a.SchemaInPrompt == b.SchemaInPrompt &&
		sameSlice(a.Tools, b.Tools) && sameSlice(a.Schema, b.Schema) && sameSlice(a.ProviderTools, b.ProviderTools) &&
		sameNumber(a.Temperature, b.Temperature)
}

func sameSlice[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

func sameNumber(a, b *float64) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// Unchanged returns the number of leading messages that [Memo.Keep] recorded on the
// same wire.
func (c *Memo) Unchanged(wire string, messages []*Message) int {
	if c == nil {
		return 0
	}
	c.use(wire)
	return alike(messages, c.kept)
}

// Keep records the messages of a request that passed the check of their order.
func (c *Memo) Keep(messages []*Message) {
	if c != nil {
		n := alike(messages, c.kept)
		c.kept = append(slices.Delete(c.kept, n, len(c.kept)), messages[n:]...)
	}
}

func (c *Memo) use(wire string) {
	if c.wire != wire || c.encoded == nil {
		*c = Memo{wire: wire, encoded: map[*Message]Segment{}}
	}
}

// Assembly is a body assembled from segments. Its digest is a hash of the segments'
// hashes, so identifying a request costs the number of its messages, not of its bytes.
type Assembly struct {
	encoded Encoded
	sums    []byte
}

// NewAssembly returns an assembly with room for n segments.
func NewAssembly(n int) *Assembly {
	return &Assembly{
		encoded: Encoded{Segments: make([][]byte, 0, n), Prompt: make([]uint32, 0, n)},
		sums:    make([]byte, 0, n*sha256.Size),
	}
}

// Add appends a segment.
func (a *Assembly) Add(s Segment) {
	a.encoded.Segments = append(a.encoded.Segments, s.Bytes)
	a.sums = append(a.sums, s.Sum[:]...)
	if s.prompt {
		a.encoded.Prompt = append(a.encoded.Prompt, binary.BigEndian.Uint32(s.Sum[:]))
	}
}

// Encoded returns the whole body. Nothing may be added after it.
func (a *Assembly) Encoded() *Encoded {
	sum := sha256.Sum256(a.sums)
	a.encoded.Digest = hex.EncodeToString(sum[:16])
	a.sums = nil
	return &a.encoded
}
