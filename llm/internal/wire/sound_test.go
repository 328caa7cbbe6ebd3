package wire_test

import (
	"encoding/json"
	"testing"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

func TestWhatIsNoCharacterIsReplaced(t *testing.T) {
	for _, c := range []struct{ raw, kept, sent string }{
		{`{"a":"x\ud83d y"}`, `{"a":"x\ufffd y"}`, ""},
		{`{"a":"\uDE00"}`, `{"a":"\ufffd"}`, ""},
		{`{"a":"\ude00\ud83d"}`, `{"a":"\ufffd\ufffd"}`, ""},
		{`{"a":"\ud83d\ud83d\ude00"}`, `{"a":"\ufffd\ud83d\ude00"}`, ""},
		{`{"a":"\ud83d"}`, `{"a":"\ufffd"}`, ""},
		{`{"\ud83d":1}`, `{"\ufffd":1}`, ""},
		{`{"a":"\\ud83d"}`, `{"a":"\\ud83d"}`, ""},
		{`{"a":"\\\ud83d"}`, `{"a":"\\\ufffd"}`, ""},
		{`{"a":"\u00e9\n"}`, `{"a":"\u00e9\n"}`, ""},
		{"{\"a\":\"\xed\xa0\xbd\"}", "{\"a\":\"\uFFFD\"}", ""},
		{`{"a":"b\u0000c"}`, `{"a":"b\u0000c"}`, `{"a":"b\ufffdc"}`},
	} {
		if got := string(wire.Sound(json.RawMessage(c.raw))); got != c.kept {
			t.Errorf("%s is kept as %s, want %s", c.raw, got, c.kept)
		}
		if c.sent == "" {
			c.sent = c.kept
		}
		if got := string(wire.AppendCompact(nil, json.RawMessage(c.raw), "")); got != c.sent {
			t.Errorf("%s is sent as %s, want %s", c.raw, got, c.sent)
		}
	}
}

func TestArgumentsThatAreNoObjectAreSentAsNone(t *testing.T) {
	for raw, want := range map[string]string{
		`{"a": 1}`: `{"a": 1}`, ` {"a":[{"b":1},{"b":2}]}`: ` {"a":[{"b":1},{"b":2}]}`, `{"a":"\u0000"}`: `{"a":"\ufffd"}`,
		``: `{}`, `null`: `{}`, `[]`: `{}`, `"{\"a\":1}"`: `{}`, `1`: `{}`, `{"a":1}{"b":2}`: `{}`, `{"a":NaN}`: `{}`, `{"a":"\d"}`: `{}`, `{"a":`: `{}`,
		`{"a":1,"a":2}`: `{}`, `{"a":[{"b":{"c":1,"c":2}}]}`: `{}`, `{"a":1,"\u0061":2}`: `{}`,
	} {
		if got := string(wire.SentArguments(&llm.ToolCall{Args: json.RawMessage(raw)})); got != want {
			t.Errorf("%s is sent as %s, want %s", raw, got, want)
		}
	}
	if got := string(wire.SentArguments(&llm.ToolCall{ArgsText: `{"a":`})); got != `{}` {
		t.Errorf("a fragment is sent as %s", got)
	}
}
