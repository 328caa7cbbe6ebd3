package compact_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/rules/compact"
	"github.com/pawlrun/pawl/llm"
)

// rows: ALF-46
func TestATextIsEstimatedByItsUTF16Units(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "a": 1, "abcd": 1, "abcde": 2, "äöüß": 1, "äöüßé": 2,
		"😀": 1, "😀😀": 1, "😀😀a": 2, "日本語日": 1, "\uffff\uffff\uffff\uffff": 1, "日本語日本": 2, "\xff\xfeab": 1, "\xff\xfeabc": 2,
		strings.Repeat("x", 4001): 1001,
	} {
		if got := compact.Tokens(text); got != want {
			t.Errorf("%q is %d tokens, want %d", text, got, want)
		}
	}
}

func FuzzTokensCountsUTF16Units(f *testing.F) {
	f.Add("plain")
	f.Add("mixed ä 😀 \xff")
	f.Fuzz(func(t *testing.T, text string) {
		if got, want := compact.Tokens(text), (len(utf16.Encode([]rune(text)))+3)/4; got != want {
			t.Errorf("%q is %d tokens, want %d", text, got, want)
		}
	})
}

// rows: ALF-47
func TestAConversationIsEstimatedWithAllThatItCarries(t *testing.T) {
	conversation := []*llm.Message{
		llm.UserText("12345678"),
		{Role: llm.RoleAssistant, Parts: llm.Parts{
			llm.Text{Text: "1234"}, llm.ToolCall{CallID: "c", Name: "read", Args: json.RawMessage(`{"path":"a"}`)},
		}},
		{Role: llm.RoleTool, Parts: llm.Parts{llm.ToolResult{CallID: "c", Name: "read", Output: "12345"}}},
	}
	if got, want := compact.Messages(conversation), 2+1+1+3+2; got != want {
		t.Errorf("%d tokens, want %d", got, want)
	}
	image := llm.Media{MediaType: "image/png", Data: []byte("1234")}
	for _, c := range []struct {
		part llm.Part
		want int
	}{
		{llm.Reasoning{Text: "123456789"}, 3},
		{llm.Reasoning{Text: "1234", Signature: "12345"}, 2},
		{llm.Reasoning{Text: "1234", Signature: "12345", Raw: json.RawMessage(`"1234"`)}, 3},
		{llm.ToolCall{Name: "read", ArgsText: `{"path":`}, 1 + 2},
		{image, 1600},
		{llm.Media{MediaType: "text/plain", Data: []byte(strings.Repeat("a word ", 1000))}, 1750},
		{llm.Media{MediaType: "text/plain", URL: "https://example.com/a.txt"}, 1600},
		{llm.ToolResult{Output: "12345", Media: []llm.Media{{MediaType: "text/csv", Data: []byte("1234567")}}}, 2 + 2},
		{llm.ToolResult{Output: "12345", Media: []llm.Media{image, image}}, 2 + 2*1600},
		{llm.Item{Raw: json.RawMessage(`"1234567"`)}, 3},
	} {
		if got := compact.Message(&llm.Message{Parts: llm.Parts{c.part}}); got != c.want {
			t.Errorf("%d tokens, want %d: %.200v", got, c.want, c.part)
		}
	}
	tools := []llm.ToolDef{{Name: "read", Description: "12345678", Schema: json.RawMessage(`{}`)}}
	if got, want := compact.Overhead("1234", tools), 1+1+2+1; got != want {
		t.Errorf("overhead of %d tokens, want %d", got, want)
	}
}

func TestMeterAgreesWithEstimate(t *testing.T) {
	var m compact.Meter
	conversation := talk(40)
	check := func(messages []*llm.Message) {
		t.Helper()
		sizes, total := m.Measure(messages)
		if want := compact.Messages(messages); total != want || len(sizes) != len(messages) {
			t.Errorf("%d messages measure %d (%d sizes), want %d", len(messages), total, len(sizes), want)
		}
	}
	check(nil)
	check(conversation[:7])
	check(conversation)
	check(conversation[:3])
	check(conversation[10:30])
	m.Reset()
	check(conversation)
	shorter, err := compact.Apply(conversation, event.HistoryCompressed{Cleared: []string{"c3"}})
	if err != nil {
		t.Fatal(err)
	}
	m.Reset() // the same number of messages, with the same last one
	check(shorter)
}

func TestAWarmMeterAllocatesAndReadsNothing(t *testing.T) {
	var m compact.Meter
	conversation := talk(1000)
	m.Measure(conversation)
	if n := testing.AllocsPerRun(50, func() { m.Measure(conversation) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
