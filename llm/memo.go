package llm

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// Memo remembers the encoded form of messages within one run, so that a
// request costs only what is new in it. It is keyed by message identity, which
// is why a message must not change once it is in a request. The zero Memo is
// ready; a nil *Memo remembers nothing and gives the same bytes. A Memo is not
// safe for concurrent use.
type Memo struct {
	wire    string
	encoded map[*Message]Segment
	prefix  *Segment
	key     string
	fixed   Request
	// kept are the messages of the last request that was found in order.
	kept []*Message
}

// Segment is encoded bytes with their hash.
type Segment struct {
	Bytes []byte
	Sum   [sha256.Size]byte
	// prompt marks what the model reads: the prefix and the messages.
	prompt bool
}

func promptSegment(b []byte) Segment {
	s := NewSegment(b)
	s.prompt = true
	return s
}

// NewSegment hashes the bytes once.
func NewSegment(b []byte) Segment { return Segment{Bytes: b, Sum: sha256.Sum256(b)} }

// Message returns the encoded form of m on a wire, encoding it at most once.
// What encode returns must depend on m and the wire's name alone.
func (c *Memo) Message(wire string, m *Message, encode func(*Message) []byte) Segment {
	if c == nil {
		return promptSegment(encode(m))
	}
	c.use(wire)
	seg, ok := c.encoded[m]
	if !ok {
		seg = promptSegment(encode(m))
		c.encoded[m] = seg
	}
	return seg
}

// before returns the encoded form of what stands before the messages (tools
// and system text), identified by key.
func (c *Memo) before(wire, key string, encode func() []byte) Segment {
	if c == nil {
		return promptSegment(encode())
	}
	c.use(wire)
	if c.prefix == nil || c.key != key {
		seg := promptSegment(encode())
		c.prefix, c.key = &seg, key
	}
	return *c.prefix
}

// RequestPrefix returns the encoded form of what stands before the messages of a
// request; variant tells forms of one request apart. It is encoded again when
// any of that is not the same as last time.
func (c *Memo) RequestPrefix(wire, variant string, req *Request, encode func() []byte) Segment {
	if c != nil && c.prefix != nil && !samePrefix(&c.fixed, req) {
		c.prefix = nil
	}
	c.forget(req.Messages)
	seg := c.before(wire, variant, encode)
	if c != nil {
		c.fixed = *req
		c.fixed.Messages, c.fixed.Encoded, c.fixed.Memo = nil, nil, nil
	}
	return seg
}

// Len is how many messages are remembered.
func (c *Memo) Len() int { return len(c.encoded) }

// spare is how many messages may be remembered beside twice those of a request.
const spare = 256

// forget drops what a conversation no longer holds once there is much of it, so
// that a run which is compacted again and again does not keep all that it was.
func (c *Memo) forget(messages []*Message) {
	if c == nil || len(c.encoded) <= 2*len(messages)+spare {
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

// samePrefix compares by identity where contents are frozen within a run, so
// that it costs no more than a few pointers.
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

// Unchanged counts the first messages that are those that [Memo.Keep] was told
// of, on the same wire.
func (c *Memo) Unchanged(wire string, messages []*Message) int {
	if c == nil {
		return 0
	}
	c.use(wire)
	n := 0
	for n < len(messages) && n < len(c.kept) && messages[n] == c.kept[n] {
		n++
	}
	return n
}

// Keep remembers a request's messages as found in order. The slice must not be
// changed.
func (c *Memo) Keep(messages []*Message) {
	if c != nil {
		c.kept = messages
	}
}

func (c *Memo) use(wire string) {
	if c.wire != wire || c.encoded == nil {
		*c = Memo{wire: wire, encoded: map[*Message]Segment{}}
	}
}

// Assemble joins segments into a body whose digest is a hash over the
// segments' hashes: identifying a request costs the number of its messages,
// not its bytes.
func Assemble(segments ...Segment) *Encoded {
	e := &Encoded{Segments: make([][]byte, len(segments)), Prompt: make([]uint32, 0, len(segments))}
	h := sha256.New()
	for i, s := range segments {
		e.Segments[i] = s.Bytes
		h.Write(s.Sum[:])
		if s.prompt {
			e.Prompt = append(e.Prompt, binary.BigEndian.Uint32(s.Sum[:]))
		}
	}
	var sum [sha256.Size]byte
	e.Digest = hex.EncodeToString(h.Sum(sum[:0])[:16])
	return e
}
