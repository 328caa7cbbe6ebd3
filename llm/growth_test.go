package llm_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/processor"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/anthropic"
	"github.com/pawlrun/pawl/llm/gemini"
	"github.com/pawlrun/pawl/llm/openai"
	"github.com/pawlrun/pawl/llm/openaichat"
)

// growing is an answer of n pieces: what stands before them, each, and what
// stands behind.
type growing struct {
	before string
	piece  func(i int) string
	after  string
}

func (g growing) stream(n int) string {
	var b strings.Builder
	b.WriteString(g.before)
	for i := range n {
		b.WriteString(g.piece(i))
	}
	b.WriteString(g.after)
	return b.String()
}

// fromMemory answers with a body that is there at once.
type fromMemory string

func (f fromMemory) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(f))), Request: req}, nil
}

const (
	anthropicBegin = "data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"model\":\"c\"}}\n\n"
	anthropicEnd   = "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n"
	openaiEnd      = "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\"}}\n\n"
)

// reading is what it takes to read an answer several times.
func reading(t *testing.T, model func(*http.Client) llm.Streamer, body string, times int) time.Duration {
	t.Helper()
	m := model(&http.Client{Transport: fromMemory(body)})
	req := &llm.Request{Model: "m", Messages: []*llm.Message{llm.UserText("go")}}
	begun := processor.Time(t)
	for range times {
		if resp, err := m.Stream(t.Context(), req, func(llm.Delta) {}); err != nil || len(resp.Parts) == 0 {
			t.Fatalf("the answer is not read: %v", err)
		}
	}
	return (processor.Time(t) - begun) / time.Duration(times)
}

// A service that is hostile or out of order must not hold a processor for longer
// than its bytes are worth, however it cuts its answer.
func TestReadingAnAnswerTakesAsLongAsTheAnswerIs(t *testing.T) {
	wires := map[string]func(*http.Client) llm.Streamer{
		"anthropic":   func(c *http.Client) llm.Streamer { return anthropic.New(anthropic.Options{HTTP: c}) },
		"google":      func(c *http.Client) llm.Streamer { return gemini.New(gemini.Options{HTTP: c}) },
		"openai":      func(c *http.Client) llm.Streamer { return openai.New(openai.Options{HTTP: c}) },
		"openai-chat": func(c *http.Client) llm.Streamer { return openaichat.New(openaichat.Options{HTTP: c}) },
	}
	event := func(format string) func(int) string {
		return func(i int) string { return "data: " + strings.ReplaceAll(format, "#", fmt.Sprint(i)) + "\n\n" }
	}
	chat := func(delta string) growing {
		return growing{
			piece: event(`{"choices":[{"index":0,"delta":` + delta + `}]}`),
			after: "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"so\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
		}
	}
	for name, tt := range map[string]struct {
		wire   string
		answer func(n int) string
	}{
		"growing items of a kind that is not known": {"anthropic", growing{
			before: anthropicBegin + "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"later\",\"said\":\"\"}}\n\n",
			piece:  event(`{"type":"content_block_delta","index":0,"delta":{"type":"later_delta","said":"word #"}}`),
			after:  "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n" + anthropicEnd}.stream},
		"citations": {"anthropic", growing{
			before: anthropicBegin + "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"so\"}}\n\n",
			piece:  event(`{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"at":#}}}`),
			after:  "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n" + anthropicEnd}.stream},
		"entries of reasoning":                         {"openai-chat", chat(`{"reasoning_details":[{"type":"reasoning.text","index":#,"text":"so"}]}`).stream},
		"members of an entry of reasoning":             {"openai-chat", chat(`{"reasoning_details":[{"type":"reasoning.text","index":0,"member#":"so"}]}`).stream},
		"calls with numbers":                           {"openai-chat", chat(`{"tool_calls":[{"index":#,"id":"c#","function":{"name":"ls","arguments":"{}"}}]}`).stream},
		"calls with one number and ids":                {"openai-chat", chat(`{"tool_calls":[{"index":0,"id":"c#","function":{"name":"ls","arguments":"{}"}}]}`).stream},
		"calls with one number and no ids":             {"openai-chat", chat(`{"tool_calls":[{"index":0,"function":{"name":"ls","arguments":"{}"}}]}`).stream},
		"calls with one number, many names and no ids": {"openai-chat", chat(`{"tool_calls":[{"index":0,"function":{"name":"ls#","arguments":"{}"}}]}`).stream},
		"objects within arguments": {"openai-chat", growing{
			before: event(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"ls","arguments":"{\"at\":\""}}]}}]}`)(0),
			piece:  chat(`{"tool_calls":[{"index":0,"function":{"name":"ls","arguments":"{}"}}]}`).piece, after: chat("").after}.stream},
		"objects behind broken arguments": {"openai-chat", func(n int) string {
			long := `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"ls","arguments":"{\"at\":[` + strings.Repeat("0,", 8*n) + `0]}x"}}]}}]}`
			return event(long)(0) + chat(`{"tool_calls":[{"index":0,"function":{"name":"ls","arguments":"{}"}}]}`).stream(n)
		}},
		"tools that the service ran": {"openai-chat", chat(`{"executed_tools":[{"index":#,"type":"search"}]}`).stream},
		"items that begin as they end": {"openai", growing{
			piece: event(`{"type":"response.output_item.done","output_index":#,"item":{"type":"message","id":"m#","content":[{"type":"output_text","text":"so"}]}}`), after: openaiEnd}.stream},
		"items that are open side by side": {"openai", growing{
			piece: event(`{"type":"response.output_text.delta","output_index":#,"content_index":0,"delta":"so"}`), after: openaiEnd}.stream},
		"pieces of one message": {"openai", growing{
			piece: event(`{"type":"response.output_text.delta","output_index":0,"content_index":#,"delta":"so"}`), after: openaiEnd}.stream},
		"pieces of one message that comes whole": {"openai", growing{
			before: `data: {"type":"response.output_item.done","output_index":0,"item":{"type":"message","id":"m","content":[`,
			piece:  func(int) string { return `{"type":"output_text","text":"so"},` },
			after:  "{\"type\":\"output_text\",\"text\":\"so\"}]}}\n\n" + openaiEnd}.stream},
		"members of arguments": {"google", growing{
			before: `data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"ls","partialArgs":[`,
			piece:  func(i int) string { return fmt.Sprintf(`{"jsonPath":"$.a%d","numberValue":1},`, i) },
			after:  "{\"jsonPath\":\"$.b\",\"numberValue\":1}]}}]},\"finishReason\":\"STOP\"}]}\n\n"}.stream},
		"line ends of one byte": {"openai-chat", growing{
			before: ":" + strings.Repeat(" ", 1<<22) + "\r",
			piece:  func(i int) string { return strings.Repeat(":\r", 16) }, after: strings.ReplaceAll(chat("").after, "\n", "\r")}.stream},
	} {
		t.Run(name, func(t *testing.T) {
			// What grows with the square takes 4096 times as long for 64 times the length.
			const short, times, most, attempts = 500, 64, 300, 5
			few, many := tt.answer(short), tt.answer(times*short)
			var ratio float64
			for range attempts {
				ratio = float64(reading(t, wires[tt.wire], many, 1)) / float64(reading(t, wires[tt.wire], few, 20))
				if ratio < most {
					t.Logf("%.0f times", ratio)
					return
				}
			}
			t.Errorf("an answer that is %d times as long takes %.0f times as long to read", times, ratio)
		})
	}
}
