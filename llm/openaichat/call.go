package openaichat

import (
	"cmp"
	"crypto/sha256"
	"strconv"
	"strings"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

type call struct {
	index    int64
	part     int
	id, name string
	args     argText
}

// numbered holds the calls with one number.
type numbered struct {
	last *call
	// anonymous holds the calls that had no id when they began.
	anonymous []*call
	byID      map[string]*call
}

func (d *decoder) toolCalls(list *wire.Members) error {
	for n := int64(0); list.Next(); n++ {
		m := list.Object()
		if err := d.toolCall(&m, n); err != nil {
			return err
		}
		list.Pass(&m)
	}
	return list.Err()
}

func (d *decoder) toolCall(m *wire.Members, position int64) error {
	index, id, name := int64(-1), "", ""
	var args []byte
	for m.Next() {
		switch string(m.Key()) {
		case "index":
			index = wire.Int(m.Value())
		case "id":
			id = wire.Text(m.Value())
		case "function":
			f := m.Object()
			for f.Next() {
				switch string(f.Key()) {
				case "name":
					name = wire.Text(f.Value())
				case "arguments":
					args = f.Value()
				}
			}
			if f.Err() != nil {
				return f.Err()
			}
			m.Pass(&f)
		}
	}
	if m.Err() != nil {
		return m.Err()
	}
	c := d.callFor(index, position, id, name, args)
	if c.id == "" && id != "" {
		c.id = id
		n := d.numbers[c.index]
		if n.byID == nil {
			n.byID = map[string]*call{}
		}
		n.byID[id] = c
	}
	if c.name == "" {
		c.name = name
	}
	d.arguments(c, args, name)
	return nil
}

// callFor returns the call that a fragment belongs to. Most services number the calls.
// Some give every call the number 0 and another id, or no number, and relays of Gemini
// not even an id. Others number the fragments, so that a fragment without id and name
// has a number that no call has; it belongs to the call that began last. A new id alone
// does not begin a call, because some services generate one for every fragment
// (poolsideai/pool#9).
func (d *decoder) callFor(index, position int64, id, name string, args []byte) *call {
	n := d.numbers[index]
	if n == nil && id == "" && name == "" && len(d.calls) > 0 {
		return d.calls[len(d.calls)-1]
	}
	if index < 0 {
		index = position
		n = d.numbers[index]
	}
	switch {
	case n == nil, id == "" && n.last.followedBy(name, args):
		return d.begin(index)
	case id == "":
		return n.last
	}
	if c := n.takes(id); c != nil {
		return c
	}
	if name == "" {
		return n.last
	}
	return d.begin(index)
}

// begin adds a call.
func (d *decoder) begin(index int64) *call {
	c := &call{index: index, part: len(d.order)}
	d.calls = append(d.calls, c)
	d.order = append(d.order, partCall)
	n := d.numbers[index]
	if n == nil {
		n = &numbered{}
		d.numbers[index] = n
	}
	n.last, n.anonymous = c, append(n.anonymous, c)
	return c
}

// takes returns the last call that a fragment with an id may belong to: one that has
// this id, or none yet.
func (n *numbered) takes(id string) *call {
	top := len(n.anonymous) - 1
	for ; top >= 0 && n.anonymous[top].id != ""; top-- {
		n.anonymous = n.anonymous[:top]
	}
	known := n.byID[id]
	if top >= 0 && (known == nil || n.anonymous[top].part > known.part) {
		return n.anonymous[top]
	}
	return known
}

// followedBy reports whether a fragment without an id begins another call with the same
// number: it has another name, or complete arguments although this call has complete
// arguments already. A service may repeat the name in each fragment.
func (c *call) followedBy(name string, args []byte) bool {
	if name == "" || c.name == "" {
		return false
	}
	if name != c.name {
		return true
	}
	text := []byte(wire.Text(args))
	if len(text) == 0 {
		text = args
	}
	return len(text) > 0 && text[0] == '{' && wire.Valid(text) && c.args.whole()
}

// arguments appends a fragment of the string of arguments; a few services send an
// object instead.
func (d *decoder) arguments(c *call, v []byte, name string) {
	from := c.args.Len()
	if len(v) > 0 && v[0] == '{' {
		c.args.Write(v)
	} else {
		d.scratch, _ = wire.AppendText(d.scratch[:0], v)
		c.args.Write(d.scratch)
	}
	if c.args.Len() > from || name != "" {
		d.emit(llm.Delta{Kind: llm.DeltaToolCall, Index: c.part, Tool: d.names.Local(name), Text: c.args.String()[from:]})
	}
}

func (c *call) asPart(names *wire.Names, n int) llm.ToolCall {
	t := llm.ToolCall{ProviderID: c.id, Name: names.Local(c.name)}
	if t.ProviderID == "" {
		t.ProviderID = "call_" + strconv.Itoa(n+1)
	}
	t.Args, t.ArgsText = wire.Arguments(c.args.String())
	return t
}

// The lengths of ids: OpenAI's limit, and the only length that Mistral accepts.
const (
	maxCallID   = 40
	shortCallID = 9
)

// callID returns the id of a call and its result for the service, normally the
// provider's own. If the service rejects another provider's id, a hash of it replaces
// it, which is the same every time.
func (m *Model) callID(provider, own string) string {
	id := cmp.Or(provider, own)
	switch {
	case m.profile.ShortIDs && (len(id) != shortCallID || !alphanumeric(id)):
		return digest(id, shortCallID)
	case len(id) > maxCallID:
		return digest(id, maxCallID/2)
	}
	return id
}

func alphanumeric(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return true
}

// digest returns a hash of n letters and digits.
func digest(s string, n int) string {
	const letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	sum := sha256.Sum256([]byte(s))
	out := make([]byte, n)
	for i := range out {
		out[i] = letters[int(sum[i])%len(letters)]
	}
	return string(out)
}

// argText is the text of a call's arguments in progress.
type argText struct {
	strings.Builder
	// read is the offset up to which the text was scanned; the other fields are the
	// state there.
	read    int
	depth   int
	quoted  bool
	escaped bool
	// broken reports that no continuation makes the text valid JSON.
	broken bool
}

// whole reports whether the text is complete JSON, when an object is about to follow
// it. It is called for each fragment, so it parses the text only if all brackets and
// quotes are closed: then the text is either a value, or cannot become one by adding
// the object.
func (a *argText) whole() bool {
	text := a.String()
	for ; a.read < len(text); a.read++ {
		a.follow(text[a.read])
	}
	if a.broken || a.depth > 0 || a.quoted || strings.TrimSpace(text) == "" {
		return false
	}
	a.broken = !wire.Valid([]byte(text))
	return !a.broken
}

func (a *argText) follow(c byte) {
	switch {
	case a.escaped:
		a.escaped = false
	case a.quoted && c == '\\':
		a.escaped = true
	case c == '"':
		a.quoted = !a.quoted
	case a.quoted:
	case c == '{' || c == '[':
		a.depth++
	case c == '}' || c == ']':
		a.depth--
	}
}
