package event

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"
)

// decoder reads the JSON that [encoder] writes: members in its order, without white
// space. This takes a quarter of the time of encoding/json, which reads each byte four
// times. It sets odd at anything else, and the caller then uses encoding/json.
type decoder struct {
	b   []byte
	at  int
	odd bool
}

// stored reads an event in its stored form; ok is false if the form is another.
func (d *decoder) stored() (e *Event, ok bool) {
	d.open('{')
	e = &Event{Pos: d.int("pos"), Seq: d.int("seq"), Run: d.text("run"), Parent: d.text("parent")}
	if d.name("time") {
		e.Time = d.time()
	}
	e.SkippedMs = d.int("skippedMs")
	k, known := byName()[Type(d.text("type"))]
	e.Cycle, e.Step = int(d.int("cycle")), d.text("step")
	if !known || !d.name("data") {
		return nil, false
	}
	if f, is := k.zero.(frequent); is {
		d.open('{')
		e.Data = f.decode(d)
		d.close('}')
	} else {
		data, err := k.decode(d.value())
		e.Data, d.odd = data, d.odd || err != nil
	}
	e.Prev = d.text("prev")
	d.close('}')
	return e, !d.odd && d.at == len(d.b)
}

// skip advances past a text, and reports whether it is next.
func (d *decoder) skip(text string) bool {
	if len(d.b)-d.at < len(text) || string(d.b[d.at:d.at+len(text)]) != text {
		return false
	}
	d.at += len(text)
	return true
}

func (d *decoder) open(bracket byte) { d.close(bracket) }

func (d *decoder) close(bracket byte) {
	is := d.at < len(d.b) && d.b[d.at] == bracket
	d.odd = d.odd || !is
	if is {
		d.at++
	}
}

// next advances past the separator before a member or an element.
func (d *decoder) next() {
	if last := d.b[d.at-1]; last != '{' && last != '[' {
		d.close(',')
	}
}

// name advances past a member's name, and reports whether it is next.
func (d *decoder) name(name string) bool {
	if d.odd {
		return false
	}
	before := d.at
	if (d.b[d.at-1] == '{' || d.skip(",")) && d.skip(`"`) && d.skip(name) && d.skip(`":`) {
		return true
	}
	d.at = before
	return false
}

// text, int, float and bool return the value of the member that is next, or zero if
// another is.
func (d *decoder) text(name string) string {
	if !d.name(name) {
		return ""
	}
	return d.string()
}

func (d *decoder) int(name string) int64 {
	if !d.name(name) {
		return 0
	}
	n, err := strconv.ParseInt(string(d.number()), 10, 64)
	d.odd = d.odd || err != nil
	return n
}

func (d *decoder) float(name string) float64 {
	if !d.name(name) {
		return 0
	}
	n, err := strconv.ParseFloat(string(d.number()), 64)
	d.odd = d.odd || err != nil
	return n
}

func (d *decoder) bool(name string) bool {
	if !d.name(name) {
		return false
	}
	yes := d.skip("true")
	d.odd = d.odd || !yes && !d.skip("false")
	return yes
}

// raw returns a copy of a member's value, nil without the member.
func (d *decoder) raw(name string) json.RawMessage {
	if !d.name(name) {
		return nil
	}
	v := d.value()
	d.odd = d.odd || !json.Valid(v)
	return bytes.Clone(bytes.TrimSpace(v))
}

// member reads a member that has no method here.
func (d *decoder) member(name string, to any) {
	if d.name(name) {
		err := json.Unmarshal(d.value(), to)
		d.odd = d.odd || err != nil
	}
}

// list reads a list of objects, nil for null or without the member.
func list[T any](d *decoder, name string, element func() T) []T {
	if !d.name(name) || d.skip("null") {
		return nil
	}
	all := []T{}
	for d.open('['); !d.odd && !d.skip("]"); {
		d.next()
		d.open('{')
		all = append(all, element())
		d.close('}')
	}
	return all
}

// value returns the bytes of the next value, which may be invalid.
func (d *decoder) value() []byte {
	start, depth := d.at, 0
	for ; d.at < len(d.b); d.at++ {
		switch d.b[d.at] {
		case '"':
			for d.at++; d.at < len(d.b) && d.b[d.at] != '"'; d.at++ {
				if d.b[d.at] == '\\' {
					d.at++
				}
			}
		case '{', '[':
			depth++
		case '}', ']', ',':
			if depth == 0 {
				return d.b[start:d.at]
			}
			if d.b[d.at] != ',' {
				depth--
			}
		}
	}
	d.at, d.odd = start, true
	return nil
}

// number returns the bytes of a number without leading zeros.
func (d *decoder) number() []byte {
	v := d.value()
	digits := bytes.TrimPrefix(v, []byte("-"))
	plain := len(digits) > 0 && '0' <= digits[len(digits)-1] && digits[len(digits)-1] <= '9' && '0' <= digits[0] && digits[0] <= '9'
	for i, c := range digits {
		switch {
		case '0' <= c && c <= '9':
		case c == '.':
			plain = plain && i > 0 && bytes.IndexByte(digits[i+1:], '.') < 0 && digits[i+1] >= '0'
		default:
			plain = false // an exponent, or no number
		}
	}
	if !plain || digits[0] == '0' && len(digits) > 1 && digits[1] != '.' {
		d.odd = true
	}
	return v
}

// time reads an instant.
func (d *decoder) time() (t time.Time) {
	if v := d.value(); len(v) < 2 || v[0] != '"' || t.UnmarshalJSON(v) != nil {
		d.odd = true
	}
	return t
}

// string reads a string. Invalid UTF-8 is left to encoding/json, which replaces it.
func (d *decoder) string() string {
	d.close('"')
	start, escaped, plain := d.at, false, true
	for ; d.at < len(d.b) && d.b[d.at] != '"'; d.at++ {
		switch c := d.b[d.at]; {
		case c == '\\':
			escaped = true
			d.at++
		case c < ' ':
			d.odd = true
		case c >= utf8.RuneSelf:
			plain = false
		}
	}
	if d.at >= len(d.b) {
		d.odd = true
		return ""
	}
	v := d.b[start:d.at]
	d.at++
	if !plain && !utf8.Valid(v) {
		d.odd = true
	}
	if !escaped {
		return string(v)
	}
	return d.unescaped(v)
}

// unescaped returns the text of a string with escapes.
func (d *decoder) unescaped(v []byte) string {
	text := make([]byte, 0, len(v))
	for i := 0; i < len(v); i++ {
		if v[i] != '\\' {
			text = append(text, v[i])
			continue
		}
		i++
		switch c := v[i]; c {
		case '"', '\\', '/':
			text = append(text, c)
		case 'n':
			text = append(text, '\n')
		case 't':
			text = append(text, '\t')
		case 'r':
			text = append(text, '\r')
		case 'b':
			text = append(text, '\b')
		case 'f':
			text = append(text, '\f')
		case 'u':
			r, err := strconv.ParseUint(string(v[min(i+1, len(v)):min(i+5, len(v))]), 16, 16)
			if err != nil || len(v) < i+5 || !utf8.ValidRune(rune(r)) {
				d.odd = true // half of a pair, or no number
				return ""
			}
			text, i = utf8.AppendRune(text, rune(r)), i+4
		default:
			d.odd = true
			return ""
		}
	}
	return string(text)
}
