package tool

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// decimal splits a JSON number into its sign, its significant digits without zeros at
// either end, and the power of ten that multiplies them. Equal numbers have equal
// parts, whatever their notation.
func decimal(n string) (negative bool, digits string, exp int, err error) {
	if len(n) > maxNumber {
		return false, "", 0, fmt.Errorf("the number %s has %d characters; at most %d are possible", clip(n, 50), len(n), maxNumber)
	}
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

// appendNumber appends a number in its canonical form: a plain integer if that is
// short, so that it can be decoded into a Go integer.
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

// appendCanonical appends a value of [parse] with sorted members, without white space,
// and with canonical numbers and strings.
func appendCanonical(b []byte, v any) []byte {
	switch v := v.(type) {
	case map[string]any:
		b = append(b, '{')
		names := make([]string, 0, 16)
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		for i, name := range names {
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

// appendString appends a string without escapes unchanged, which is cheap and as
// unambiguous as the escaped form of the others.
func appendString(b []byte, s string) []byte {
	if !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r >= utf8.RuneSelf || r == '"' || r == '\\' }) {
		return append(append(append(b, '"'), s...), '"')
	}
	enc, err := json.Marshal(s)
	if err != nil {
		return strconv.AppendQuote(b, s)
	}
	return append(b, enc...)
}

// Digest identifies a call by its tool and the value of its arguments: the order of
// members, white space, escapes and the notation of numbers do not matter. Arguments
// that are not unambiguous JSON are identified by their text.
func Digest(name string, args json.RawMessage, text string) string {
	if v, err := parse(args); err == nil {
		return digest(name, v)
	}
	return sum(append(append(append(beginning(nil, name, 't'), args...), 0), text...))
}

func digest(name string, v any) string {
	return sum(appendCanonical(beginning(make([]byte, 0, 512), name, 'v'), v))
}

// beginning appends the input of a digest before the arguments.
func beginning(b []byte, name string, form byte) []byte { return append(append(b, name...), 0, form) }

func sum(content []byte) string {
	h := sha256.Sum256(content)
	var text [32]byte
	hex.Encode(text[:], h[:16])
	return string(text[:])
}
