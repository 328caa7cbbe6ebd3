package wire_test

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/pawlrun/pawl/llm/internal/wire"
)

func TestEventsReadTheSameHoweverTheBytesAreCut(t *testing.T) {
	for name, stream := range map[string]string{
		"lf":   "\xef\xbb\xbfevent: a\ndata: 1\ndata:2\n\n: comment\ndata: {}\n\n",
		"crlf": "\xef\xbb\xbfevent: a\r\ndata: 1\r\ndata:2\r\n\r\n: comment\r\ndata: {}\r\n\r\n",
		"cr":   "\xef\xbb\xbfevent: a\rdata: 1\rdata:2\r\r: comment\rdata: {}\r\r",
		"cut":  "\xef\xbb\xbfevent: a\ndata: 1\ndata:2\n\nid: 7\ndata: {}\n\nevent: lost\ndata: never finished\n",
	} {
		for _, r := range []io.Reader{strings.NewReader(stream), iotest.OneByteReader(strings.NewReader(stream))} {
			e := wire.NewEventReader(r)
			var got []string
			for {
				name, data, err := e.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, string(name)+"|"+string(data))
			}
			if want := "a|1\n2 |{}"; strings.Join(got, " ") != want {
				t.Errorf("%s: got %q, want %q", name, strings.Join(got, " "), want)
			}
		}
	}
}

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
