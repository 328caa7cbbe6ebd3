package cachesim_test

import (
	"crypto/sha256"
	"errors"
	"time"
)

// block is a piece of a rendered request that a cache mark can end.
type block struct {
	// text is what the model reads, without any mark.
	text string
	// mark is the lifetime that a mark behind it asks for, 0 for none.
	mark time.Duration
	// unmarkable says that the provider takes no mark here.
	unmarkable bool
}

// rendered is a request as a provider reads it, in its order: tools, system
// text, messages.
type rendered struct {
	// scope is what separates caches: the model and the routing key.
	scope  string
	blocks []block
	// implicit says that the provider may choose marks itself.
	implicit bool
}

func (r *rendered) text() string {
	var b []byte
	for i := range r.blocks {
		b = append(b, r.blocks[i].text...)
	}
	return string(b)
}

// tokens counts as providers' models roughly do.
func tokens(bytes int) int64 { return int64(bytes+3) / 4 }

// counted is what a request costs, in tokens.
type counted struct{ input, read, write, long int64 }

// cache is a provider's cache of prompt prefixes.
type cache interface {
	// serve looks a request up, remembers it, and counts.
	serve(r *rendered, now time.Time) (counted, error)
	// readable says how many tokens of a request that begins with a prefix of
	// n bytes of one that came age ago could be read.
	readable(n int, age time.Duration) int64
	drop()
}

type key [sha256.Size]byte

// prefix is the beginning of a request up to the end of one of its blocks.
type prefix struct {
	key   key
	bytes int
}

func (r *rendered) prefixes() []prefix {
	out := make([]prefix, len(r.blocks))
	h := sha256.New()
	h.Write([]byte(r.scope + "\x00"))
	at := 0
	for i := range r.blocks {
		h.Write([]byte(r.blocks[i].text))
		at += len(r.blocks[i].text)
		out[i] = prefix{key: key(h.Sum(nil)), bytes: at}
	}
	return out
}

// entry is a prefix that is remembered until it has not been used for a time.
type entry struct {
	lifetime time.Duration
	used     time.Time
	order    int
}

func (e *entry) alive(now time.Time) bool { return e != nil && now.Sub(e.used) <= e.lifetime }

// The refusals of Anthropic's service.
var (
	errTooManyMarks = errors.New("a maximum of 4 blocks with cache_control may be provided")
	errUnmarkable   = errors.New("cache_control cannot be set for this block")
	errOrder        = errors.New("a longer ttl comes after a shorter one")
)

// markedCache is Anthropic's: prefixes are remembered where a mark stands, and
// looked for at each mark and the 20 blocks before it.
type markedCache struct {
	minimum int64
	entries map[key]*entry
}

const lookBack = 20

func (c *markedCache) drop() { clear(c.entries) }

func (c *markedCache) readable(n int, age time.Duration) int64 {
	if t := tokens(n); t >= c.minimum && age <= 5*time.Minute {
		return t
	}
	return 0
}

func (c *markedCache) serve(r *rendered, now time.Time) (counted, error) {
	if c.entries == nil {
		c.entries = map[key]*entry{}
	}
	prefixes := r.prefixes()
	var marks []int
	for i, b := range r.blocks {
		if b.mark == 0 {
			continue
		}
		if b.unmarkable {
			return counted{}, errUnmarkable
		}
		if len(marks) > 0 && r.blocks[marks[len(marks)-1]].mark < b.mark {
			return counted{}, errOrder
		}
		marks = append(marks, i)
	}
	if len(marks) > 4 {
		return counted{}, errTooManyMarks
	}
	n := counted{input: tokens(prefixes[len(prefixes)-1].bytes)}
	for _, m := range marks {
		for i := m; i >= 0 && i > m-lookBack; i-- {
			if e := c.entries[prefixes[i].key]; e.alive(now) {
				e.used = now
				n.read = max(n.read, tokens(prefixes[i].bytes))
				break
			}
		}
	}
	for _, m := range marks {
		if t := tokens(prefixes[m].bytes); t >= c.minimum {
			c.entries[prefixes[m].key] = &entry{lifetime: r.blocks[m].mark, used: now}
			n.write = max(n.write, t-n.read)
			if r.blocks[m].mark == time.Hour {
				n.long = n.write
			}
		}
	}
	return n, nil
}

// prefixCache is that of OpenAI's models before GPT-5.6 and of Gemini: any
// prefix of a whole number of steps is found again.
type prefixCache struct {
	minimum, step int64
	lifetime      time.Duration
	seen          map[string][]*sent
}

// sent is a request that left its prefixes in the cache.
type sent struct {
	text string
	used time.Time
}

func (c *prefixCache) drop() { clear(c.seen) }

func (c *prefixCache) readable(n int, age time.Duration) int64 {
	// What a step cuts off could have been read, so it is not left out here.
	if t := tokens(n); t >= c.minimum && age <= c.lifetime {
		return t
	}
	return 0
}

func (c *prefixCache) serve(r *rendered, now time.Time) (counted, error) {
	if c.seen == nil {
		c.seen = map[string][]*sent{}
	}
	text := r.text()
	n := counted{input: tokens(len(text))}
	for _, s := range c.seen[r.scope] {
		if now.Sub(s.used) > c.lifetime {
			continue
		}
		t := tokens(common(text, s.text))
		if t -= t % c.step; t >= c.minimum && t > n.read {
			n.read, s.used = t, now
		}
	}
	c.seen[r.scope] = append(c.seen[r.scope], &sent{text: text, used: now})
	return n, nil
}

// breakpointCache is OpenAI's from GPT-5.6 on: a prefix is remembered at the end
// of the request and at explicit breakpoints, and found at the latest 80 of
// those, exactly.
type breakpointCache struct {
	minimum  int64
	lifetime time.Duration
	entries  map[key]*entry
	order    int
}

func (c *breakpointCache) drop() { clear(c.entries) }

func (c *breakpointCache) readable(n int, age time.Duration) int64 {
	if t := tokens(n); t >= c.minimum && age <= c.lifetime {
		return t
	}
	return 0
}

func (c *breakpointCache) serve(r *rendered, now time.Time) (counted, error) {
	if c.entries == nil {
		c.entries = map[key]*entry{}
	}
	prefixes := r.prefixes()
	n := counted{input: tokens(prefixes[len(prefixes)-1].bytes)}
	oldest := c.order - 80
	var write []prefix
	for i, p := range prefixes {
		if e := c.entries[p.key]; e.alive(now) && e.order > oldest && tokens(p.bytes) >= c.minimum {
			e.used = now
			n.read = tokens(p.bytes)
		}
		if r.blocks[i].mark > 0 || r.implicit && i == len(prefixes)-1 {
			write = append(write, p)
		}
	}
	for _, p := range write[max(len(write)-4, 0):] {
		if t := tokens(p.bytes); t >= c.minimum {
			c.order++
			c.entries[p.key] = &entry{lifetime: c.lifetime, used: now, order: c.order}
			n.write = max(n.write, t-n.read)
		}
	}
	return n, nil
}

// common is the length of the longest common prefix.
func common(a, b string) int {
	const stride = 1024
	n := min(len(a), len(b))
	i := 0
	for i+stride <= n && a[i:i+stride] == b[i:i+stride] {
		i += stride
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}
