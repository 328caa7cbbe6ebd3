package event

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"time"
)

// encoder writes JSON byte for byte like encoding/json without HTML escaping, but
// without reflection, which would take ten times as long for every event. It leaves
// rare cases to encoding/json. A method whose name ends in If omits the values that
// omitempty would omit.
type encoder struct {
	b   []byte
	err error
	// shown reports that the event is encoded for surfaces and not for a store.
	shown bool
}

// Write implements io.Writer.
func (e *encoder) Write(p []byte) (int, error) {
	e.b = append(e.b, p...)
	return len(p), nil
}

func (e *encoder) open(bracket byte)  { e.b = append(e.b, bracket) }
func (e *encoder) close(bracket byte) { e.b = append(e.b, bracket) }

// next separates a member or an element from the one before it.
func (e *encoder) next() {
	if last := e.b[len(e.b)-1]; last != '{' && last != '[' {
		e.b = append(e.b, ',')
	}
}

// name begins a member. Names are plain.
func (e *encoder) name(name string) {
	e.next()
	e.b = append(e.b, '"')
	e.b = append(e.b, name...)
	e.b = append(e.b, '"', ':')
}

func (e *encoder) text(name, v string) {
	e.name(name)
	e.string(v)
}

func (e *encoder) textIf(name, v string) {
	if v != "" {
		e.text(name, v)
	}
}

func (e *encoder) int(name string, v int64) {
	e.name(name)
	e.b = strconv.AppendInt(e.b, v, 10)
}

func (e *encoder) intIf(name string, v int64) {
	if v != 0 {
		e.int(name, v)
	}
}

func (e *encoder) bool(name string, v bool) {
	e.name(name)
	e.b = strconv.AppendBool(e.b, v)
}

func (e *encoder) boolIf(name string, v bool) {
	if v {
		e.bool(name, v)
	}
}

func (e *encoder) float(name string, v float64) {
	e.name(name)
	if size := math.Abs(v); v == 0 || 1e-6 <= size && size < 1e21 {
		e.b = strconv.AppendFloat(e.b, v, 'f', -1, 64)
		return
	}
	e.value(v) // numbers with exponents, and numbers that JSON cannot represent
}

// string writes a string. Most need only quotes.
func (e *encoder) string(s string) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			e.value(s)
			return
		}
	}
	e.b = append(e.b, '"')
	e.b = append(e.b, s...)
	e.b = append(e.b, '"')
}

// member writes a value that has no method here.
func (e *encoder) member(name string, v any) {
	e.name(name)
	e.value(v)
}

func (e *encoder) value(v any) {
	enc := json.NewEncoder(e)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		if e.err == nil {
			e.err = err
		}
		return
	}
	e.b = e.b[:len(e.b)-1] // the end of the line
}

// raw writes a value that is already JSON.
func (e *encoder) raw(v json.RawMessage) {
	b := bytes.NewBuffer(e.b)
	if err := json.Compact(b, v); err != nil {
		e.value(v) // it returns the error
		return
	}
	e.b = b.Bytes()
}

// element writes the only element of a list, without brackets.
func (e *encoder) element(list any) {
	at := len(e.b)
	e.value(list)
	if e.err == nil {
		e.b = append(e.b[:at], e.b[at+1:len(e.b)-1]...)
	}
}

// time writes a time in a fixed width, so that equal times have equal bytes.
func (e *encoder) time(t time.Time) {
	t = t.UTC()
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	e.b = append(e.b, '"')
	e.digits(year, 4)
	e.b = append(e.b, '-')
	e.digits(int(month), 2)
	e.b = append(e.b, '-')
	e.digits(day, 2)
	e.b = append(e.b, 'T')
	e.digits(hour, 2)
	e.b = append(e.b, ':')
	e.digits(minute, 2)
	e.b = append(e.b, ':')
	e.digits(second, 2)
	e.b = append(e.b, '.')
	e.digits(t.Nanosecond()/1000, 6)
	e.b = append(e.b, 'Z', '"')
}

// digits writes a number with leading zeros.
func (e *encoder) digits(n, width int) {
	at := len(e.b)
	e.b = append(e.b, "000000"[:width]...)
	for i := at + width - 1; n > 0 && i >= at; i, n = i-1, n/10 {
		e.b[i] += byte(n % 10)
	}
}
