package anthropic_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/anthropic"
)

// transcript is an answer of n text deltas, as the service streams it.
func transcript(n int) []byte {
	var b bytes.Buffer
	b.WriteString("event: message_start\n" + `data: {"type":"message_start","message":{"model":"claude-sonnet-4-5","id":"msg_1","type":"message",` +
		`"role":"assistant","content":[],"stop_reason":null,"usage":{"input_tokens":10,"output_tokens":1}}}` + "\n\n")
	b.WriteString("event: content_block_start\n" + `data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n")
	for i := range n {
		fmt.Fprintf(&b, "event: content_block_delta\n"+`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" word\n%d"}}`+"\n\n", i)
	}
	b.WriteString("event: content_block_stop\n" + `data: {"type":"content_block_stop","index":0}` + "\n\n")
	b.WriteString("event: message_delta\n" + `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":20000}}` + "\n\n")
	b.WriteString("event: message_stop\n" + `data: {"type":"message_stop"}` + "\n\n")
	return b.Bytes()
}

// canned answers from memory, so that what is measured is the decoder.
type canned struct {
	status int
	header http.Header
	body   []byte
}

func (c canned) RoundTrip(req *http.Request) (*http.Response, error) {
	if _, err := io.Copy(io.Discard, req.Body); err != nil {
		return nil, err
	}
	status := c.status
	if status == 0 {
		status = http.StatusOK
	}
	header := c.header
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(bytes.NewReader(c.body)), Request: req}, nil
}

func modelOf(body []byte) *anthropic.Model {
	return anthropic.New(anthropic.Options{APIKey: "key", HTTP: &http.Client{Transport: canned{body: body}}})
}

func ask() *llm.Request {
	return &llm.Request{Model: "claude-sonnet-4-5", Messages: []*llm.Message{llm.UserText("go")}}
}

const benchDeltas = 20_000

// BenchmarkDeltas decodes 20,000 text deltas, beside the plainest reader of the
// same bytes: bufio.Scanner with encoding/json into a struct.
func BenchmarkDeltas(b *testing.B) {
	body := transcript(benchDeltas)
	b.Run("pawl", func(b *testing.B) {
		m := modelOf(body)
		b.ReportAllocs()
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			n := 0
			if _, err := m.Stream(b.Context(), ask(), func(llm.Delta) { n++ }); err != nil || n != benchDeltas {
				b.Fatal(n, err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchDeltas, "ns/delta")
	})
	b.Run("scanner and encoding_json", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			if n := plainRead(b, body); n != benchDeltas {
				b.Fatal(n)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchDeltas, "ns/delta")
	})
}

func plainRead(b *testing.B, body []byte) int {
	n := 0
	var text strings.Builder
	lines := bufio.NewScanner(bytes.NewReader(body))
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok {
			continue
		}
		var event struct {
			Type  string `json:"type"`
			Index int    `json:"index"`
			Delta struct {
				Type string `json:"type"`
				Text string `json:"text"`
			} `json:"delta"`
		}
		if err := json.Unmarshal(data, &event); err != nil {
			b.Fatal(err)
		}
		if event.Type == "content_block_delta" {
			text.WriteString(event.Delta.Text)
			n++
		}
	}
	return n
}

// TestADeltaCostsAtMostOneAllocation holds decoding to the figure that the
// whole path to a subscriber may take.
func TestADeltaCostsAtMostOneAllocation(t *testing.T) {
	short, long := 1_000, 5_000
	cost := func(n int) float64 {
		m := modelOf(transcript(n))
		return testing.AllocsPerRun(5, func() {
			if _, err := m.Stream(t.Context(), ask(), func(llm.Delta) {}); err != nil {
				t.Fatal(err)
			}
		})
	}
	per := (cost(long) - cost(short)) / float64(long-short)
	t.Logf("%.4f allocations per delta", per)
	if per > 0.02 {
		t.Errorf("a delta costs %.3f allocations; decoding it should cost none of its own", per)
	}
}

// conversation is a history of n messages: task, answers with calls, results.
func conversation(n int) []*llm.Message {
	messages := []*llm.Message{llm.UserText("fix the failing test in this repository")}
	for i := 1; len(messages)+2 <= n; i++ {
		id, provider := fmt.Sprintf("run-%d-1", i), fmt.Sprintf("toolu_%d", i)
		messages = append(messages,
			&llm.Message{Role: llm.RoleAssistant, Origin: "anthropic/claude-sonnet-4-5", Parts: llm.Parts{
				llm.Reasoning{Text: strings.Repeat("thinking about it. ", 20), Signature: strings.Repeat("c2ln", 100)},
				llm.Text{Text: "Let me look at the file."},
				llm.ToolCall{CallID: id, ProviderID: provider, Name: "fs.read", Args: json.RawMessage(`{"path":"main.go"}`)},
			}},
			&llm.Message{Role: llm.RoleTool, Parts: llm.Parts{
				llm.ToolResult{CallID: id, ProviderID: provider, Name: "fs.read", Output: strings.Repeat("func main() { println(\"x\") }\n", 60)},
			}})
	}
	return messages
}

// BenchmarkEncode encodes a conversation of 400 messages that is all known but
// for the last two, as each cycle of a run does.
func BenchmarkEncode(b *testing.B) {
	m := modelOf(nil)
	req := llm.Request{Model: "claude-sonnet-4-5", System: strings.Repeat("You are careful. ", 100), Tools: []llm.ToolDef{
		{Name: "fs.read", Description: "Read a file.", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)},
	}}
	all := conversation(401)
	for _, memo := range []bool{true, false} {
		b.Run(fmt.Sprintf("memo %t", memo), func(b *testing.B) {
			b.ReportAllocs()
			var size int64
			r := req
			if memo {
				r.Memo = new(llm.Memo)
				r.Messages = all[:399]
				if _, err := m.Encode(&r); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				fresh := [2]llm.Message{*all[399], *all[400]}
				r.Messages = append(all[:399:399], &fresh[0], &fresh[1])
				e, err := m.Encode(&r)
				if err != nil {
					b.Fatal(err)
				}
				size = e.Len()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(size), "ns/byte")
		})
	}
}
