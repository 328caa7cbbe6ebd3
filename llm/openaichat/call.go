package openaichat

import (
	"strconv"
	"strings"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

type call struct {
	index    int64
	part     int
	id, name string
	args     strings.Builder
}

func (d *decoder) toolCalls(data []byte) error {
	list := wire.ScanArray(data)
	for n := int64(0); list.Next(); n++ {
		if err := d.toolCall(list.Value(), n); err != nil {
			return err
		}
	}
	return list.Err()
}

func (d *decoder) toolCall(data []byte, position int64) error {
	index, id, name := int64(-1), "", ""
	var args []byte
	m := wire.ScanObject(data)
	for m.Next() {
		switch string(m.Key()) {
		case "index":
			index = wire.Int(m.Value())
		case "id":
			id = wire.Text(m.Value())
		case "function":
			f := wire.ScanObject(m.Value())
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
		}
	}
	if m.Err() != nil {
		return m.Err()
	}
	c := d.callFor(index, position, id, name, args)
	if c.id == "" {
		c.id = id
	}
	if c.name == "" {
		c.name = name
	}
	d.arguments(c, args, name)
	return nil
}

// callFor finds the call that a fragment belongs to. Most services number the
// calls; some give every call the number 0 and another id, or no number, and
// relays of Gemini not even an id. A new id alone begins no call, because some
// make one up for every fragment (poolsideai/pool#9).
func (d *decoder) callFor(index, position int64, id, name string, args []byte) *call {
	if index < 0 {
		index = position
		if id == "" && name == "" && len(d.calls) > 0 {
			return d.calls[len(d.calls)-1]
		}
	}
	var numbered *call
	for i := len(d.calls) - 1; i >= 0; i-- {
		c := d.calls[i]
		switch {
		case c.index != index:
			continue
		case numbered == nil:
			numbered = c
		}
		if id == "" || c.id == "" || c.id == id {
			if id == "" && c.followedBy(name, args) {
				break
			}
			return c
		}
	}
	if numbered != nil && name == "" {
		return numbered
	}
	c := &call{index: index, part: len(d.order)}
	d.calls = append(d.calls, c)
	d.order = append(d.order, partCall)
	return c
}

// followedBy says that a fragment without an id begins another call, although
// its number is that of this one: it has another name, or brings whole arguments
// where there are such already. A name alone may be repeated with each fragment.
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
	return len(text) > 0 && text[0] == '{' && wire.Valid(text) && wire.Valid([]byte(c.args.String()))
}

// arguments come as fragments of a string; a few services send the object.
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
