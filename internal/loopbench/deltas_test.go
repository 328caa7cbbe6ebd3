package loopbench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/processor"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/anthropic"
)

// manyDeltas is how many text deltas the long answer has.
const manyDeltas = 20_000

// longAnswer is the bytes of one answer of many deltas.
func longAnswer() []byte {
	var b bytes.Buffer
	sse(&b, "message_start", `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"stop_reason":null,"usage":{"input_tokens":100,"output_tokens":1}}}`)
	sse(&b, "content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
	for range manyDeltas {
		sse(&b, "content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"some words of text "}}`)
	}
	sse(&b, "content_block_stop", `{"type":"content_block_stop","index":0}`)
	sse(&b, "message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":60000}}`)
	sse(&b, "message_stop", `{"type":"message_stop"}`)
	return b.Bytes()
}

// inProcess is a transport that answers without a network, so that only the
// loop's own work is measured.
type inProcess func(*http.Request) []byte

func (f inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil, err
	}
	body := f(r)
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}, nil
}

// BenchmarkTwentyThousandDeltas decodes an answer and publishes every delta of
// it to one subscriber of a run, beside bufio.Scanner with encoding/json into a
// struct on the same bytes.
func BenchmarkTwentyThousandDeltas(b *testing.B) {
	body := longAnswer()
	e := engine.New(memory.New(nil), newMachine, engine.Options{})
	defer e.Close()
	client := &http.Client{Transport: inProcess(func(*http.Request) []byte { return body })}
	model := anthropic.New(anthropic.Options{APIKey: "k", HTTP: client})
	var ratios, ours, scanner []float64
	for b.Loop() {
		start := processor.Time(b)
		if err := scan(body); err != nil {
			b.Fatal(err)
		}
		middle := processor.Time(b)
		if err := follow(e, model); err != nil {
			b.Fatal(err)
		}
		end := processor.Time(b)
		scanner = append(scanner, float64(middle-start)/manyDeltas)
		ours = append(ours, float64(end-middle)/manyDeltas)
		ratios = append(ratios, float64(end-middle)/float64(middle-start))
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(ratios), "ratio")
	b.ReportMetric(median(ours), "cpu-ns/delta")
	b.ReportMetric(median(scanner), "scanner-cpu-ns/delta")
}

// scan is the yardstick: every line, every event into a struct, nothing kept.
func scan(body []byte) error {
	seen := 0
	for sc := bufio.NewScanner(bytes.NewReader(body)); sc.Scan(); {
		data, ok := bytes.CutPrefix(sc.Bytes(), []byte("data: "))
		if !ok {
			continue
		}
		var e struct {
			Type         string `json:"type"`
			Index        int    `json:"index"`
			ContentBlock struct {
				Type string `json:"type"`
				Text string `json:"text"`
			} `json:"content_block"`
			Delta struct {
				Type        string `json:"type"`
				Text        string `json:"text"`
				PartialJSON string `json:"partial_json"`
				StopReason  string `json:"stop_reason"`
			} `json:"delta"`
		}
		if err := json.Unmarshal(data, &e); err != nil {
			return err
		}
		seen += len(e.Delta.Text)
	}
	if seen == 0 {
		return fmt.Errorf("the yardstick read nothing")
	}
	return nil
}

// follow runs one answer and reads every event of it.
func follow(e *engine.Engine, model llm.Model) error {
	cfg := agent.Config{Targets: []agent.Target{{Model: "anthropic/claude-sonnet-4-5", Price: &llm.Price{}}}, MaxTokens: 100_000}
	started, err := agent.Start(cfg.WithDefaults(), llm.UserText("go"))
	if err != nil {
		return err
	}
	ctx := context.Background()
	r, err := e.Start(ctx, started, perform.Env{
		Model: func(string) (llm.Model, string, error) { return model, "claude-sonnet-4-5", nil },
	})
	if err != nil {
		return err
	}
	bytes := 0
	for ev, err := range r.Events(ctx, true) {
		if err != nil {
			return err
		}
		if d, ok := ev.Data.(event.Text); ok {
			bytes += len(d.Text)
		}
	}
	if want := manyDeltas * len("some words of text "); bytes != want {
		return fmt.Errorf("the subscriber saw %d bytes of %d", bytes, want)
	}
	return nil
}
