package openaichat

import (
	"strconv"

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
