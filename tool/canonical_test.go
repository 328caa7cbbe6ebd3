package tool_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/tool"
)

func TestDigestDependsOnTheValueOfTheArgumentsOnly(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{`{"a":1,"b":2}`, ` { "b" : 2 , "a" : 1 } `, true},
		{`{"a":{"y":1,"x":[1,2]}}`, `{"a":{"x":[1,2],"y":1}}`, true},
		{`{"a":1}`, `{"a":1.0}`, true},
		{`{"a":100}`, `{"a":1e2}`, true},
		{`{"a":100}`, `{"a":0.1E+3}`, true},
		{`{"a":0}`, `{"a":-0.00e7}`, true},
		{`{"a":1e400}`, `{"a":10e399}`, true},
		{`{"a":"é/"}`, `{"a":"\u00e9\/"}`, true},
		{`{"a":[1,2]}`, `{"a":[2,1]}`, false},
		{`{"a":1}`, `{"a":"1"}`, false},
		{`{"a":1}`, `{"a":-1}`, false},
		{`{"a":9007199254740993}`, `{"a":9007199254740992}`, false},
		{`{"a":0.1}`, `{"a":0.10000000000000001}`, false},
		{`{"a":1e400}`, `{"a":1e401}`, false},
		{`{"a":null}`, `{}`, false},
		{`{"a":"b","c":"d"}`, `{"a":"b,c:d"}`, false},
		{`{"path":"a","path":"b"}`, `{"path":"b"}`, false},
		{`{"path":"a","path":"b"}`, `{"path":"b","path":"a"}`, false},
	} {
		x, y := tool.Digest("t", json.RawMessage(c.a), ""), tool.Digest("t", json.RawMessage(c.b), "")
		if (x == y) != c.same {
			t.Errorf("%s and %s: same digest is %v", c.a, c.b, x == y)
		}
	}
	if tool.Digest("a", json.RawMessage(`{}`), "") == tool.Digest("b", json.RawMessage(`{}`), "") {
		t.Error("two tools share a digest")
	}
	if tool.Digest("a", nil, `{"x":`) == tool.Digest("a", nil, `{"y":`) {
		t.Error("two fragments share a digest")
	}
}

// FuzzParse holds our reader against encoding/json: it reads the same value or
// refuses it.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		` {"a" : [ 1 , true,false , null ,{}, [ ] ], "b":"x\"\\", "\u00e9":"\ud83d\ude00é" } `, `[]`, `{}`, `"\ud800"`, `-1.5E+3`, `[1,]`, `{"a":1,"a":1}`, "\"\xff\"",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := tool.Parse([]byte(text))
		dec := json.NewDecoder(strings.NewReader(text))
		dec.UseNumber()
		var want any
		wantErr := dec.Decode(&want)
		if err != nil {
			return
		}
		if wantErr != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q is %#v, encoding/json reads %#v, %v", text, got, want, wantErr)
		}
	})
}

// FuzzDigest holds the digest against what encoding/json reads: reading and
// writing a value again must not change it.
func FuzzDigest(f *testing.F) {
	for _, seed := range []string{`{"b":[1,2.50,{"c":null}],"a":"é"}`, `{"a":1,"a":1}`, `1e5`, `"\ud800"`, `[`, `-0`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, args string) {
		d := tool.Digest("t", json.RawMessage(args), "")
		if len(d) != 32 {
			t.Fatalf("digest %q", d)
		}
		s, err := tool.CompileSchema(json.RawMessage(`{}`))
		if err != nil || s.Validate(json.RawMessage(args)) != nil {
			return
		}
		var v any
		if err := json.Unmarshal([]byte(args), &v); err != nil {
			return // a number that no float can hold
		}
		var raw json.RawMessage = []byte(args)
		again, err := json.Marshal(raw)
		if err != nil {
			t.Fatal(err)
		}
		if tool.Digest("t", again, "") != d {
			t.Errorf("%q and %q differ", args, again)
		}
	})
}
