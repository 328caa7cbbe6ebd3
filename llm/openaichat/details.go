package openaichat

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/pawlrun/pawl/llm/internal/wire"
)

// detail is one entry of reasoning_details, assembled from its fragments. Signed and
// encrypted entries must be sent back unchanged.
type detail struct {
	place     detailPlace
	text      strings.Builder
	summary   strings.Builder
	signature string
	// other holds the members that do not grow, still encoded, in order.
	other []member
	// places finds them by their keys.
	places map[string]int
}

// detailPlace identifies an entry.
type detailPlace struct {
	kind  string
	index int64
}

type member struct{ key, value string }

func (d *decoder) readDetails(v []byte) {
	for list := wire.ScanArray(v); list.Next(); {
		kind, index := "", int64(0)
		for m := wire.ScanObject(list.Value()); m.Next(); {
			switch string(m.Key()) {
			case "type":
				kind = wire.Text(m.Value())
			case "index":
				index = wire.Int(m.Value())
			}
		}
		d.detailFor(kind, index).merge(list.Value())
	}
}

func (d *decoder) detailFor(kind string, index int64) *detail {
	place := detailPlace{kind, index}
	if x := d.detailAt[place]; x != nil {
		return x
	}
	if d.detailAt == nil {
		d.detailAt = map[detailPlace]*detail{}
	}
	x := &detail{place: place}
	d.details, d.detailAt[place] = append(d.details, x), x
	return x
}

func (x *detail) merge(data []byte) {
	for m := wire.ScanObject(data); m.Next(); {
		v := m.Value()
		switch key := string(m.Key()); key {
		case "type", "index":
		case "text":
			x.text.WriteString(wire.Text(v))
		case "summary":
			x.summary.WriteString(wire.Text(v))
		case "signature":
			if s := wire.Text(v); s != "" {
				x.signature = s
			}
		default:
			x.set(key, string(v))
		}
	}
}

func (x *detail) set(key, value string) {
	if i, known := x.places[key]; known {
		if value != "null" {
			x.other[i].value = value
		}
		return
	}
	if x.places == nil {
		x.places = map[string]int{}
	}
	x.places[key] = len(x.other)
	x.other = append(x.other, member{key, value})
}

func (x *detail) append(b []byte) []byte {
	b = wire.AppendQuoted(append(b, `{"type":`...), x.place.kind)
	b = strconv.AppendInt(append(b, `,"index":`...), x.place.index, 10)
	if x.text.Len() > 0 {
		b = wire.AppendQuoted(append(b, `,"text":`...), x.text.String())
	}
	if x.summary.Len() > 0 {
		b = wire.AppendQuoted(append(b, `,"summary":`...), x.summary.String())
	}
	if x.signature != "" {
		b = wire.AppendQuoted(append(b, `,"signature":`...), x.signature)
	}
	for _, m := range x.other {
		b = wire.AppendQuoted(append(b, ','), m.key)
		b = append(append(b, ':'), m.value...)
	}
	return append(b, '}')
}

// rawDetails returns the list to send back, nil if it is empty.
func (d *decoder) rawDetails() json.RawMessage {
	if len(d.details) == 0 {
		return nil
	}
	b := []byte{'['}
	for i := range d.details {
		if i > 0 {
			b = append(b, ',')
		}
		b = d.details[i].append(b)
	}
	return append(b, ']')
}

// rawThought returns the form in which reasoning is sent back: the details, or the name
// of the member with its text if that is not the service's usual one.
func (d *decoder) rawThought() json.RawMessage {
	if len(d.details) == 0 && d.echoes && d.named != "" {
		return wire.AppendQuoted(nil, d.named)
	}
	return d.rawDetails()
}

func (d *decoder) signature() string {
	for i := range d.details {
		if s := d.details[i].signature; s != "" {
			return s
		}
	}
	return ""
}
