package event_test

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// plainly is a payload as encoding/json writes it by its tags.
func plainly(d event.Data) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(d)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// sameAsPlainly fails where an event is not written as its tags say.
func sameAsPlainly(t *testing.T, d event.Data) {
	t.Helper()
	want, wantErr := plainly(d)
	body, err := event.Encode(&event.Event{Seq: 1, Run: "r", Time: noon, Data: d})
	if (err != nil) != (wantErr != nil) {
		t.Fatalf("%s: %v, with encoding/json %v", d.EventType(), err, wantErr)
	}
	if err != nil {
		return
	}
	_, got, _ := bytes.Cut(body, []byte(`,"data":`))
	if got = bytes.TrimSuffix(got, []byte("}")); !bytes.Equal(got, want) {
		t.Errorf("%s is written as\n%s\nand encoding/json writes\n%s", d.EventType(), got, want)
	}
}

func TestEveryPayloadIsWrittenAsItsTagsSay(t *testing.T) {
	for _, zero := range event.All() {
		sameAsPlainly(t, zero)
		sameAsPlainly(t, filled(zero))
		for i := range reflect.TypeOf(zero).NumField() {
			one := reflect.New(reflect.TypeOf(zero)).Elem()
			if !written(one.Type().Field(i)) {
				continue
			}
			fill(one.Field(i), 2)
			sameAsPlainly(t, one.Interface().(event.Data))
		}
	}
}

func TestTheEdgesOfValuesAreWrittenAsEncodingJSONDoes(t *testing.T) {
	for _, usd := range []float64{
		0, math.Copysign(0, -1), 1e-6, 9.99e-7, -1e-7, 1e20, 1e21, -1e21, math.MaxFloat64, math.SmallestNonzeroFloat64, 0.1 + 0.2,
		math.NaN(), math.Inf(1),
	} {
		sameAsPlainly(t, event.BudgetReserved{USD: usd, Input: math.MinInt64, Output: math.MaxInt64})
		sameAsPlainly(t, event.ModelResponse{Cost: llm.Cost{USD: usd}})
	}
	for _, text := range []string{
		"", "<&>", `"quoted" \ back`, "line\nbreak\ttab\r\b\f\x00\x1f", "delete \x7f", "grüße", "\u2028\u2029", "\xff\xfe cut \xe2\x82",
	} {
		sameAsPlainly(t, event.ToolResult{Output: text, Media: []llm.Media{}, Tools: []string{}})
		sameAsPlainly(t, event.ModelResponse{
			ToolCalls: []event.CallRef{}, Parts: event.Answer{llm.Text{Text: text, Raw: json.RawMessage(`{ "a" : "<" }`)}},
		})
	}
	for _, raw := range []string{`{"a": [1, 2]}`, `"<"`, `{`, ``} {
		sameAsPlainly(t, event.ToolCall{Args: json.RawMessage(raw), Access: []event.Access{}})
		sameAsPlainly(t, event.ModelResponse{Parts: event.Answer{llm.Item{Type: "search", Raw: json.RawMessage(raw)}}})
	}
}

func TestAnInstantHasAFixedWidth(t *testing.T) {
	for _, c := range []struct{ at, want string }{
		{"2026-11-21T12:00:00.123456Z", "2026-11-21T12:00:00.123456Z"},
		{"0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z"},
		{"0987-02-03T04:05:06.000007899Z", "0987-02-03T04:05:06.000007Z"},
		{"9999-12-31T23:59:59.999999999+00:00", "9999-12-31T23:59:59.999999Z"},
		{"2024-02-29T23:30:00.5-02:00", "2024-03-01T01:30:00.500000Z"},
	} {
		at, err := time.Parse(time.RFC3339Nano, c.at)
		if err != nil {
			t.Fatal(err)
		}
		body, err := event.Encode(&event.Event{Seq: 1, Run: "r", Time: at, Data: event.CycleStart{}})
		if err != nil || !bytes.Contains(body, []byte(`"time":"`+c.want+`"`)) {
			t.Errorf("%s: %s, %v", c.at, body, err)
		}
	}
}

// JSON has no form for other years, and what is written must be readable.
func TestAnInstantOfAYearWithoutFourDigitsIsRefused(t *testing.T) {
	utc := func(year int) time.Time { return time.Date(year, 7, 1, 0, 0, 0, 0, time.UTC) }
	for at, ok := range map[time.Time]bool{
		utc(-1): false, utc(0): true, utc(9999): true, utc(10_000): false,
		time.Date(9999, 12, 31, 23, 0, 0, 0, time.FixedZone("west", -2*3600)): false,
		time.Date(10_000, 1, 1, 0, 0, 0, 0, time.FixedZone("east", 2*3600)):   true,
		time.Date(0, 1, 1, 0, 0, 0, 0, time.FixedZone("east", 2*3600)):        false,
	} {
		body, err := event.Encode(&event.Event{Seq: 1, Run: "r", Time: at, Data: event.CycleStart{}})
		if (err == nil) != ok {
			t.Errorf("%v: %s, %v", at, body, err)
		}
		if err != nil {
			continue
		}
		if e, err := event.Decode(body); err != nil || !e.Time.Equal(at) {
			t.Errorf("%v is read as %+v, %v", at, e, err)
		}
	}
}

func FuzzEncode(f *testing.F) {
	f.Add("text <&> \u2028", int64(-1), 0.5, true, []byte(`{"a":1}`))
	f.Add("\xff", int64(0), 1e-9, false, []byte(`{`))
	f.Fuzz(func(t *testing.T, text string, n int64, x float64, flag bool, raw []byte) {
		if len(raw) > 9_000 {
			return // may be nested deeper than encoding/json reads, which no event is
		}
		for _, d := range []event.Data{
			event.CycleStart{Cycle: int(n)},
			event.BudgetReserved{ID: text, USD: x, Input: n},
			event.BudgetCommitted{ID: text, USD: x, Output: n, Estimated: flag},
			event.ModelRequested{Attempt: int(n), Model: text, Prompt: &event.PromptSums{Kept: int(n), New: text}},
			event.ModelResponse{
				TextLength: int(n), ToolCalls: []event.CallRef{{CallID: text}}, Usage: llm.Usage{Input: n, Estimated: flag},
				Parts: event.Answer{
					llm.Text{Text: text, Raw: raw}, llm.ToolCall{Name: text, Args: raw, Raw: raw}, llm.Reasoning{Text: text, Raw: raw},
				},
			},
			event.ToolCall{CallID: text, Args: raw, ReadOnly: flag, Labels: event.Labels{Private: flag}},
			event.PolicyDecision{CallID: text, Reason: text, Sandbox: flag},
			event.ToolStarted{CallID: text, Attempt: int(n)},
			event.ToolResult{Output: text, IsError: flag, DurationMs: n, Tools: []string{text}, Contains: []string{text}},
			event.ToolResults{Results: []event.ResultRef{{CallID: text, IsError: flag}}},
		} {
			sameAsPlainly(t, d)
		}
	})
}

// cycle is what a cycle with one call of a tool leaves.
func cycle() []event.Data {
	return []event.Data{
		event.ModelResponse{
			Cycle: 26, Attempt: 1, TextLength: 380, ToolCalls: []event.CallRef{{CallID: "awmtqchslkrp-26-1", Tool: "noop"}},
			FinishReason: "tool", RawFinish: "tool_use", Usage: llm.Usage{Input: 100, Output: 60}, Model: "anthropic/claude-sonnet-4-5",
			Cost: llm.Cost{USD: 0.0012, Priced: true}, ResponseID: "msg_1",
			Parts: event.Answer{
				llm.Text{Text: string(bytes.Repeat([]byte("some words of text "), 20))},
				llm.ToolCall{CallID: "awmtqchslkrp-26-1", ProviderID: "toolu_26", Name: "noop"},
			},
		},
		event.BudgetCommitted{ID: "26.1", USD: 0.0012, Input: 100, Output: 60},
		event.ToolCall{CallID: "awmtqchslkrp-26-1", Tool: "noop", Args: json.RawMessage(`{"n":26}`), Effect: "pure", Digest: "ceef7447965c099a"},
		event.PolicyDecision{CallID: "awmtqchslkrp-26-1", Decision: "allow", Rule: "tools.allow", Digest: "ceef7447965c099a"},
		event.ToolStarted{CallID: "awmtqchslkrp-26-1", Attempt: 1, Key: "awmtqchslkrp:awmtqchslkrp-26-1"},
		event.ToolResult{CallID: "awmtqchslkrp-26-1", Tool: "noop", Output: "ok", Untrusted: true},
		event.ToolResults{Cycle: 26, Results: []event.ResultRef{{CallID: "awmtqchslkrp-26-1", Tool: "noop"}}},
		event.CycleStart{Cycle: 27, MaxCycles: 100},
		event.BudgetReserved{ID: "27.1", USD: 0.062262, Input: 274, Output: 4096},
		event.ModelRequested{
			Attempt: 1, Model: "anthropic/claude-sonnet-4-5", RequestDigest: "2362901346b31b68", RequestBytes: 15310,
			Prompt: &event.PromptSums{Kept: 49, Messages: 51, New: "ef779f2d3c19437a"},
		},
	}
}

// BenchmarkEncodeCycle is what it costs to write down one cycle.
func BenchmarkEncodeCycle(b *testing.B) {
	events := cycle()
	b.ReportAllocs()
	for b.Loop() {
		for _, d := range events {
			if _, err := event.Encode(&event.Event{Seq: 7, Run: "awmtqchslkrp", Time: noon, Cycle: 26, Data: d, Prev: "ee74e3ed17afac25"}); err != nil {
				b.Fatal(err)
			}
		}
	}
}
