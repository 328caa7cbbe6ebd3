// Package sdkbench compares the wire decoders with the official SDKs'
// accumulators on the same bytes. It is a module of its own, so that no SDK is
// a dependency of Pawl.
package sdkbench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"syscall"
	"testing"

	anthropicsdk "github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	openaisdk "github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"google.golang.org/genai"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/anthropic"
	"github.com/pawlrun/pawl/llm/gemini"
	"github.com/pawlrun/pawl/llm/openai"
	"github.com/pawlrun/pawl/llm/openaichat"
)

// deltas is how many text deltas the answer has, piece what each adds.
const (
	deltas = 20_000
	piece  = "some words of text "
)

// transport answers every request with the same bytes.
type transport []byte

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return nil, err
		}
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: io.NopCloser(bytes.NewReader(t)), Request: r,
	}, nil
}

// contender is one wire: the answer's bytes and both readers of it. Each
// returns the length of the whole text.
type contender struct {
	name  string
	body  []byte
	ours  func(*http.Client) llm.Streamer
	model string
	sdk   func(context.Context, *http.Client) (int, error)
}

func named(b *bytes.Buffer, name, data string) {
	fmt.Fprintf(b, "event: %s\ndata: %s\n\n", name, data)
}

func plain(b *bytes.Buffer, data string) { fmt.Fprintf(b, "data: %s\n\n", data) }

func messages() contender {
	var b bytes.Buffer
	named(&b, "message_start", `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":100,"output_tokens":1}}}`)
	named(&b, "content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
	for range deltas {
		named(&b, "content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"`+piece+`"}}`)
	}
	named(&b, "content_block_stop", `{"type":"content_block_stop","index":0}`)
	named(&b, "message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":60000}}`)
	named(&b, "message_stop", `{"type":"message_stop"}`)
	return contender{
		name: "anthropic", body: b.Bytes(), model: "m",
		ours: func(c *http.Client) llm.Streamer { return anthropic.New(anthropic.Options{APIKey: "k", HTTP: c}) },
		sdk: func(ctx context.Context, c *http.Client) (int, error) {
			client := anthropicsdk.NewClient(anthropicoption.WithAPIKey("k"), anthropicoption.WithHTTPClient(c), anthropicoption.WithMaxRetries(0))
			stream := client.Messages.NewStreaming(ctx, anthropicsdk.MessageNewParams{
				Model: "m", MaxTokens: 100_000,
				Messages: []anthropicsdk.MessageParam{anthropicsdk.NewUserMessage(anthropicsdk.NewTextBlock("go"))},
			})
			var m anthropicsdk.Message
			for stream.Next() {
				if err := m.Accumulate(stream.Current()); err != nil {
					return 0, err
				}
			}
			if err := stream.Err(); err != nil {
				return 0, err
			}
			return len(m.Content[0].Text), nil
		},
	}
}

func responsesAPI() contender {
	var b bytes.Buffer
	item := `{"type":"message","id":"msg_1","role":"assistant","status":"%s","content":[%s]}`
	named(&b, "response.created", `{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","model":"m","output":[]}}`)
	named(&b, "response.output_item.added", `{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":`+fmt.Sprintf(item, "in_progress", "")+`}`)
	named(&b, "response.content_part.added", `{"type":"response.content_part.added","sequence_number":2,"item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}`)
	var text bytes.Buffer
	for i := range deltas {
		named(&b, "response.output_text.delta", fmt.Sprintf(`{"type":"response.output_text.delta","sequence_number":%d,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"`+piece+`","logprobs":[]}`, i+3))
		text.WriteString(piece)
	}
	part := `{"type":"output_text","text":"` + text.String() + `","annotations":[]}`
	done := fmt.Sprintf(item, "completed", part)
	named(&b, "response.output_text.done", `{"type":"response.output_text.done","sequence_number":1,"item_id":"msg_1","output_index":0,"content_index":0,"text":"`+text.String()+`"}`)
	named(&b, "response.content_part.done", `{"type":"response.content_part.done","sequence_number":1,"item_id":"msg_1","output_index":0,"content_index":0,"part":`+part+`}`)
	named(&b, "response.output_item.done", `{"type":"response.output_item.done","sequence_number":1,"output_index":0,"item":`+done+`}`)
	named(&b, "response.completed", `{"type":"response.completed","sequence_number":1,"response":{"id":"resp_1","object":"response","status":"completed","model":"m","output":[`+done+`],"usage":{"input_tokens":100,"output_tokens":60000,"total_tokens":60100}}}`)
	return contender{
		name: "responses", body: b.Bytes(), model: "m",
		ours: func(c *http.Client) llm.Streamer { return openai.New(openai.Options{APIKey: "k", HTTP: c}) },
		sdk: func(ctx context.Context, c *http.Client) (int, error) {
			client := openaisdk.NewClient(openaioption.WithAPIKey("k"), openaioption.WithHTTPClient(c), openaioption.WithMaxRetries(0))
			stream := client.Responses.NewStreaming(ctx, responses.ResponseNewParams{
				Model: "m", Input: responses.ResponseNewParamsInputUnion{OfString: openaisdk.String("go")},
			})
			n := 0
			for stream.Next() {
				if e := stream.Current(); e.Type == "response.completed" {
					n = len(e.Response.OutputText())
				}
			}
			return n, stream.Err()
		},
	}
}

func chat() contender {
	var b bytes.Buffer
	for range deltas {
		plain(&b, `{"id":"chat_1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"`+piece+`"},"finish_reason":null}]}`)
	}
	plain(&b, `{"id":"chat_1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`)
	plain(&b, `{"id":"chat_1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":60000,"total_tokens":60100}}`)
	plain(&b, "[DONE]")
	return contender{
		name: "chat", body: b.Bytes(), model: "m",
		ours: func(c *http.Client) llm.Streamer { return openaichat.New(openaichat.Options{APIKey: "k", HTTP: c}) },
		sdk: func(ctx context.Context, c *http.Client) (int, error) {
			client := openaisdk.NewClient(openaioption.WithAPIKey("k"), openaioption.WithHTTPClient(c), openaioption.WithMaxRetries(0))
			stream := client.Chat.Completions.NewStreaming(ctx, openaisdk.ChatCompletionNewParams{
				Model: "m", Messages: []openaisdk.ChatCompletionMessageParamUnion{openaisdk.UserMessage("go")},
			})
			var acc openaisdk.ChatCompletionAccumulator
			for stream.Next() {
				acc.AddChunk(stream.Current())
			}
			if err := stream.Err(); err != nil {
				return 0, err
			}
			return len(acc.Choices[0].Message.Content), nil
		},
	}
}

func generateContent() contender {
	var b bytes.Buffer
	for i := range deltas {
		finish := ""
		if i == deltas-1 {
			finish = `"finishReason":"STOP",`
		}
		plain(&b, `{"candidates":[{"content":{"parts":[{"text":"`+piece+`"}],"role":"model"},`+finish+`"index":0}],"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":5,"totalTokenCount":105},"modelVersion":"m","responseId":"r"}`)
	}
	return contender{
		name: "gemini", body: b.Bytes(), model: "m",
		ours: func(c *http.Client) llm.Streamer { return gemini.New(gemini.Options{APIKey: "k", HTTP: c}) },
		sdk: func(ctx context.Context, c *http.Client) (int, error) {
			client, err := genai.NewClient(ctx, &genai.ClientConfig{APIKey: "k", Backend: genai.BackendGeminiAPI, HTTPClient: c})
			if err != nil {
				return 0, err
			}
			n := 0
			for r, err := range client.Models.GenerateContentStream(ctx, "m", genai.Text("go"), nil) {
				if err != nil {
					return 0, err
				}
				n += len(r.Text())
			}
			return n, nil
		},
	}
}

// BenchmarkAgainstTheOfficialSDK counts the CPU time of both readers of the
// same bytes, in turn.
func BenchmarkAgainstTheOfficialSDK(b *testing.B) {
	for _, c := range []contender{messages(), responsesAPI(), chat(), generateContent()} {
		b.Run(c.name, func(b *testing.B) {
			client := clientOf(c)
			model := c.ours(client)
			var ratios, ours, theirs []float64
			for b.Loop() {
				start := cpu(b)
				if err := read(b.Context(), model, c.model); err != nil {
					b.Fatal(err)
				}
				middle := cpu(b)
				n, err := c.sdk(b.Context(), client)
				if err != nil || n != deltas*len(piece) {
					b.Fatalf("the SDK read %d bytes: %v", n, err)
				}
				end := cpu(b)
				ours = append(ours, (middle-start)/deltas)
				theirs = append(theirs, (end-middle)/deltas)
				ratios = append(ratios, (end-middle)/(middle-start))
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(ours), "cpu-ns/delta")
			b.ReportMetric(median(theirs), "sdk-cpu-ns/delta")
			b.ReportMetric(median(ratios), "times-less")
		})
	}
}

func clientOf(c contender) *http.Client { return &http.Client{Transport: transport(c.body)} }

func read(ctx context.Context, m llm.Streamer, model string) error {
	seen := 0
	resp, err := m.Stream(ctx, &llm.Request{Model: model, Messages: []*llm.Message{llm.UserText("go")}}, func(d llm.Delta) { seen += len(d.Text) })
	if err != nil {
		return err
	}
	if n := len(resp.Parts.Text()); n != deltas*len(piece) || seen != n {
		return fmt.Errorf("read %d bytes and saw %d", n, seen)
	}
	return nil
}

// cpu is the CPU time of this process in nanoseconds.
func cpu(b *testing.B) float64 {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return float64(r.Utime.Nano() + r.Stime.Nano())
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}
