package tool

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// The bounds of what is accepted as arguments. Deeper nesting would let a
// model exhaust the stack of a validator, larger exponents its memory.
const (
	maxDepth    = 256
	maxExponent = 1000
)

// parse reads one JSON value, numbers as [json.Number]. It refuses what two
// readers could understand differently: an object that names a member twice,
// text after the value, and numbers beyond [maxExponent].
func parse(raw []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	v, err := parseValue(dec, 0)
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more text after the value")
	}
	return v, nil
}

func parseValue(dec *json.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested deeper than %d levels", maxDepth)
	}
	t, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Delim:
		if t == '{' {
			return parseObject(dec, depth)
		}
		return parseArray(dec, depth)
	case json.Number:
		if _, _, _, err := decimal(t.String()); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func parseObject(dec *json.Decoder, depth int) (any, error) {
	o := map[string]any{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name, _ := t.(string)
		if _, twice := o[name]; twice {
			return nil, fmt.Errorf("the member %s occurs twice in one object", strconv.Quote(clip(name, 100)))
		}
		if o[name], err = parseValue(dec, depth+1); err != nil {
			return nil, err
		}
	}
	_, err := dec.Token()
	return o, err
}

func parseArray(dec *json.Decoder, depth int) (any, error) {
	a := []any{}
	for dec.More() {
		v, err := parseValue(dec, depth+1)
		if err != nil {
			return nil, err
		}
		a = append(a, v)
	}
	_, err := dec.Token()
	return a, err
}

// decimal splits a JSON number into its sign, its significant digits without
// zeros at either end, and the power of ten that they are multiplied by. Equal
// numbers give equal parts, however they are written.
func decimal(n string) (negative bool, digits string, exp int, err error) {
	mantissa, exponent, scientific := n, "", false
	if i := strings.IndexAny(n, "eE"); i >= 0 {
		mantissa, exponent, scientific = n[:i], n[i+1:], true
	}
	if scientific {
		if exp, err = strconv.Atoi(exponent); err != nil || exp > maxExponent || exp < -maxExponent {
			return false, "", 0, fmt.Errorf("the number %s is out of range", clip(n, 50))
		}
	}
	mantissa, negative = strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	exp -= len(fraction)
	digits = strings.TrimLeft(whole+fraction, "0")
	trimmed := strings.TrimRight(digits, "0")
	exp += len(digits) - len(trimmed)
	if trimmed == "" {
		return false, "", 0, nil
	}
	return negative, trimmed, exp, nil
}

// appendNumber writes a number the one way that stands for its value: as a
// plain integer where that is short, so that Go integers can be read from it.
func appendNumber(b []byte, n string) []byte {
	negative, digits, exp, err := decimal(n)
	switch {
	case err != nil:
		return append(b, n...)
	case digits == "":
		return append(b, '0')
	}
	if negative {
		b = append(b, '-')
	}
	b = append(b, digits...)
	if exp >= 0 && len(digits)+exp <= 21 {
		return append(b, strings.Repeat("0", exp)...)
	}
	return strconv.AppendInt(append(b, 'e'), int64(exp), 10)
}

// appendCanonical writes a value of [parse] with members in order, without
// white space, and every number and string in one form.
func appendCanonical(b []byte, v any) []byte {
	switch v := v.(type) {
	case map[string]any:
		b = append(b, '{')
		for i, name := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, name), ':')
			b = appendCanonical(b, v[name])
		}
		return append(b, '}')
	case []any:
		b = append(b, '[')
		for i, e := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendCanonical(b, e)
		}
		return append(b, ']')
	case json.Number:
		return appendNumber(b, v.String())
	case string:
		return appendString(b, v)
	case bool:
		return strconv.AppendBool(b, v)
	}
	return append(b, "null"...)
}

func appendString(b []byte, s string) []byte {
	enc, err := json.Marshal(s)
	if err != nil {
		return strconv.AppendQuote(b, s)
	}
	return append(b, enc...)
}

// Digest identifies a call by its tool and the value of its arguments: the
// order of members, white space, escapes and the way a number is written do
// not matter. Arguments that are no unambiguous JSON are identified by their
// text.
func Digest(name string, args json.RawMessage, text string) string {
	if v, err := parse(args); err == nil {
		return digest(name, v)
	}
	return sum(name, 't', append(append(slices.Clip([]byte(args)), 0), text...))
}

func digest(name string, v any) string {
	return sum(name, 'v', appendCanonical(nil, v))
}

func sum(name string, form byte, content []byte) string {
	h := sha256.New()
	h.Write([]byte(name))
	h.Write([]byte{0, form})
	h.Write(content)
	return hex.EncodeToString(h.Sum(nil)[:16])
}
