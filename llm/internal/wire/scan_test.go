package wire_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pawlrun/pawl/llm/internal/wire"
)

func FuzzScannerAgreesWithEncodingJSON(f *testing.F) {
	for _, s := range []string{`{"a":1,"b":[true,null,{"c":"\u00e9\ud83d\ude00"}]}`, `{"a":}`, ` {} `, `{"a":-0.5e+10}`, `{"\n":"x"}`, `[1,2`, `"\ud800"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if got, want := wire.Valid(data), json.Valid(data); got != want {
			t.Fatalf("Valid(%q) = %t, encoding/json says %t", data, got, want)
		}
		var want map[string]json.RawMessage
		err := json.Unmarshal(data, &want)
		got := map[string]json.RawMessage{}
		m := wire.ScanObject(data)
		for m.Next() {
			got[string(m.Key())] = m.Value()
		}
		if (m.Err() == nil) != (err == nil) {
			t.Fatalf("%q: scanner says %v, encoding/json %v", data, m.Err(), err)
		}
		nested := wire.ScanNested(data)
		if sum := leaves(nested); (nested.Err() == nil) != (err == nil) || err == nil && sum != leaves(wire.ScanObject(data)) {
			t.Fatalf("%q: read as it is walked, it is %v", data, nested.Err())
		}
		if err != nil {
			return
		}
		for k, v := range want {
			if strings.ContainsRune(k, '\uFFFD') {
				continue // keys that are not UTF-8 are no provider's
			}
			var s string
			if json.Unmarshal(v, &s) == nil && s != wire.Text(got[k]) {
				t.Fatalf("%q: member %q is %q, not %q", data, k, wire.Text(got[k]), s)
			}
		}
	})
}

func TestNumbersOfAllKinds(t *testing.T) {
	for in, want := range map[string]int64{
		"0": 0, "-7": -7, "12345678901": 12345678901, "1e3": 1000, "2.9": 2, `"5"`: 0, "null": 0, "": 0, "-": 0, "9223372036854775807": 9223372036854775807,
		"-9223372036854775808": -9223372036854775808, "1e300": 9223372036854775807, "-1e999": -9223372036854775808,
	} {
		if got := wire.Int([]byte(in)); got != want {
			t.Errorf("Int(%q) = %d, want %d", in, got, want)
		}
	}
}

func TestNestingIsBounded(t *testing.T) {
	deep := strings.Repeat("[", 1_000_000)
	if wire.Valid([]byte(deep)) {
		t.Error("an open nest is no JSON")
	}
	if wire.Valid([]byte(deep + strings.Repeat("]", 1_000_000))) {
		t.Error("a nest of a million must be refused, as encoding/json does")
	}
}

// leaves counts the bytes of what is neither an object nor an array. Every third member
// is left unread, and every fourth read half.
func leaves(m *wire.Members) (sum int) {
	for n := 0; m.Next(); n++ {
		if n%3 == 2 {
			continue
		}
		object, array := m.Object(), m.Array()
		if n%4 == 3 {
			object.Next()
			array.Next()
			continue
		}
		if sum += leaves(&object) + leaves(&array); object.Err() != nil && array.Err() != nil {
			sum += len(m.Value())
		}
		m.Pass(&object)
		m.Pass(&array)
	}
	return sum
}

func TestScanningCostsNoAllocation(t *testing.T) {
	data := []byte(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\nb"}}`)
	var scratch []byte
	allocs := testing.AllocsPerRun(100, func() {
		for m := wire.ScanObject(data); m.Next(); {
			if string(m.Key()) == "delta" {
				for d := wire.ScanObject(m.Value()); d.Next(); {
					scratch, _ = wire.AppendText(scratch[:0], d.Value())
				}
			}
		}
		for m := wire.ScanNested(data); m.Next(); {
			d := m.Object()
			for d.Next() {
				scratch, _ = wire.AppendText(scratch[:0], d.Value())
			}
			m.Pass(&d)
		}
	})
	if allocs > 0 {
		t.Errorf("%.1f allocations", allocs)
	}
}

// FuzzQuote writes text as JSON and reads it back with encoding/json and ours.
func TestNestingEndsWhereThatOfEncodingJSONDoes(t *testing.T) {
	for depth := 9_998; depth <= 10_001; depth++ {
		for _, inmost := range []string{"", "1", "{}"} {
			array := strings.Repeat("[", depth) + inmost + strings.Repeat("]", depth)
			for _, text := range []string{array, `{"a":` + array + `}`} {
				if got, want := wire.Valid([]byte(text)), json.Valid([]byte(text)); got != want {
					t.Errorf("%d arrays around %q in %.1q: Valid is %t, encoding/json says %t", depth, inmost, text, got, want)
				}
			}
			m := wire.ScanObject([]byte(`{"a":` + array + `}`))
			for m.Next() {
			}
			if got, want := m.Err() == nil, json.Valid([]byte(`{"a":`+array+`}`)); got != want {
				t.Errorf("%d arrays around %q: a scan says %v, encoding/json %t", depth, inmost, m.Err(), want)
			}
		}
	}
}

func FuzzQuote(f *testing.F) {
	for _, s := range []string{"", "a\"b\\c\n\x00\x1f", "é😀\u2028<&>", "\xff\xed\xa0\x80"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		quoted := wire.AppendKept(nil, s)
		var got string
		if err := json.Unmarshal(quoted, &got); err != nil {
			t.Fatalf("%q becomes %s: %v", s, quoted, err)
		}
		if want := strings.ToValidUTF8(s, "\uFFFD"); utf8.ValidString(s) && got != want {
			t.Fatalf("%q comes back as %q", s, got)
		}
		if !utf8.Valid(quoted) || wire.Text(quoted) != got {
			t.Fatalf("%q: ours reads %q, encoding/json %q", s, wire.Text(quoted), got)
		}
		if sent := wire.Text(wire.AppendQuoted(nil, s)); sent != strings.ReplaceAll(got, "\x00", "\uFFFD") {
			t.Fatalf("%q is sent as %q", s, sent)
		}
	})
}
