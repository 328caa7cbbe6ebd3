package openai_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/openai"
)

// longAnswer is a stream of n text deltas, of the size and with the members
// that OpenAI sends.
func longAnswer(n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "event: response.created\ndata: %s\n\n", created)
	for i := range n {
		fmt.Fprintf(&b, "event: response.output_text.delta\ndata: "+
			`{"type":"response.output_text.delta","sequence_number":%d,"item_id":"msg_68c2e7054ae481938354ab3e4e77abad02d3a5742c7ddae9",`+
			`"output_index":0,"content_index":0,"delta":" word\n","logprobs":[],"obfuscation":"tCwKuXJBWcm"}`+"\n\n", i)
	}
	fmt.Fprintf(&b, "event: response.output_item.done\ndata: "+
		`{"type":"response.output_item.done","output_index":0,"item":{"type":"message","id":"m","content":[{"type":"output_text","text":"%s"}]}}`+"\n\n",
		strings.Repeat(` word\n`, n))
	fmt.Fprintf(&b, "event: response.completed\ndata: %s\n\n", completed)
	return b.String()
}

func readLong(t testing.TB, m *openai.Model, want int) {
	deltas := 0
	resp, err := m.Stream(t.Context(), question(), func(llm.Delta) { deltas++ })
	if err != nil || deltas != want || len(resp.Parts.Text()) != 6*want {
		t.Fatalf("%d deltas, error %v", deltas, err)
	}
}

func TestDeltaCostsAtMostOneAllocation(t *testing.T) {
	const few, many = 1000, 11000
	allocations := func(n int) float64 {
		s := &service{body: longAnswer(n)}
		m := s.model(openai.Options{})
		return testing.AllocsPerRun(3, func() { readLong(t, m, n) })
	}
	perDelta := (allocations(many) - allocations(few)) / (many - few)
	t.Logf("%.4f allocations a delta", perDelta)
	if perDelta > 1 {
		t.Errorf("a delta costs %.2f allocations", perDelta)
	}
}

// BenchmarkDeltas reads 20,000 deltas; beside it the least that a reader
// without this package would do with them.
func BenchmarkDeltas(b *testing.B) {
	const n = 20_000
	body := longAnswer(n)
	b.Run("adapter", func(b *testing.B) {
		s := &service{body: body}
		m := s.model(openai.Options{})
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			readLong(b, m, n)
		}
	})
	b.Run("scanner and encoding-json", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			readPlainly(b, body, n)
		}
	})
}

func readPlainly(b *testing.B, body string, want int) {
	var text strings.Builder
	deltas := 0
	lines := bufio.NewScanner(strings.NewReader(body))
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var e struct {
			Type        string `json:"type"`
			OutputIndex int    `json:"output_index"`
			Delta       string `json:"delta"`
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			b.Fatal(err)
		}
		if e.Type == "response.output_text.delta" {
			text.WriteString(e.Delta)
			deltas++
		}
	}
	if deltas != want || text.Len() != 6*want {
		b.Fatalf("%d deltas", deltas)
	}
}

// BenchmarkEncode encodes the request of the n-th cycle of a run whose earlier
// messages are memoised.
func BenchmarkEncode(b *testing.B) {
	m, memo := openai.New(openai.Options{}), new(llm.Memo)
	req := llm.Request{Model: "gpt-5", System: strings.Repeat("Be brief. ", 200), CacheKey: "run", Memo: memo}
	for i := range 12 {
		req.Tools = append(req.Tools, llm.ToolDef{Name: fmt.Sprintf("tool.n%d", i), Schema: raw(`{"type":"object","properties":{"path":{"type":"string"}}}`)})
	}
	for range 200 {
		req.Messages = append(req.Messages,
			assistant(own, thought("rs"), llm.ToolCall{CallID: "run-1", ProviderID: "call_a1b2c3d4e5", Name: "tool.n1", Args: raw(`{}`)}),
			result("call_a1b2c3d4e5", strings.Repeat("line\n", 400)))
	}
	b.ReportAllocs()
	for b.Loop() {
		enc, err := m.Encode(&req)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(enc.Len())
	}
}

func TestAnswersShareAConnection(t *testing.T) {
	var connections atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(sse(textDone, completed)))
		_ = http.NewResponseController(w).Flush()
		_, _ = w.Write([]byte(strings.Repeat(": what follows the last event\n", 1000)))
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	m := openai.New(openai.Options{BaseURL: server.URL})
	for range 3 {
		if _, err := m.Stream(t.Context(), question(), func(llm.Delta) {}); err != nil {
			t.Fatal(err)
		}
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("3 answers took %d connections", n)
	}
}
