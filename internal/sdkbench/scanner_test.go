package sdkbench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
)

// The structs of the plain yardstick: what a loop needs of each wire's events.
type (
	messagesEvent struct {
		Type  string `json:"type"`
		Index int    `json:"index"`
		Delta struct {
			Type       string `json:"type"`
			Text       string `json:"text"`
			StopReason string `json:"stop_reason"`
		} `json:"delta"`
		Usage struct {
			OutputTokens int `json:"output_tokens"`
		} `json:"usage"`
	}
	responsesEvent struct {
		Type     string          `json:"type"`
		Delta    string          `json:"delta"`
		Response json.RawMessage `json:"response"`
	}
	chatEvent struct {
		ID      string `json:"id"`
		Model   string `json:"model"`
		Choices []struct {
			Delta struct {
				Content string `json:"content"`
			} `json:"delta"`
			FinishReason string `json:"finish_reason"`
		} `json:"choices"`
		Usage struct {
			PromptTokens     int `json:"prompt_tokens"`
			CompletionTokens int `json:"completion_tokens"`
		} `json:"usage"`
	}
	geminiEvent struct {
		Candidates []struct {
			Content struct {
				Parts []struct {
					Text string `json:"text"`
				} `json:"parts"`
			} `json:"content"`
			FinishReason string `json:"finishReason"`
		} `json:"candidates"`
		UsageMetadata struct {
			PromptTokenCount     int `json:"promptTokenCount"`
			CandidatesTokenCount int `json:"candidatesTokenCount"`
		} `json:"usageMetadata"`
	}
)

// scan reads every line and decodes every event into a fresh T.
func scan[T any](body []byte) error {
	sc := bufio.NewScanner(bytes.NewReader(body))
	sc.Buffer(nil, 4<<20)
	seen := 0
	for sc.Scan() {
		data, ok := bytes.CutPrefix(sc.Bytes(), []byte("data: "))
		if !ok || string(data) == "[DONE]" {
			continue
		}
		var e T
		if err := json.Unmarshal(data, &e); err != nil {
			return err
		}
		seen++
	}
	if seen < deltas {
		return fmt.Errorf("the yardstick saw %d events", seen)
	}
	return sc.Err()
}

// BenchmarkAgainstScannerAndEncodingJSON counts the CPU time of each decoder
// beside bufio.Scanner with encoding/json into a struct on the same bytes.
func BenchmarkAgainstScannerAndEncodingJSON(b *testing.B) {
	yardsticks := map[string]func([]byte) error{
		"anthropic": scan[messagesEvent], "responses": scan[responsesEvent], "chat": scan[chatEvent], "gemini": scan[geminiEvent],
	}
	for _, c := range []contender{messages(), responsesAPI(), chat(), generateContent()} {
		b.Run(c.name, func(b *testing.B) {
			model := c.ours(clientOf(c))
			var ratios, theirs []float64
			for b.Loop() {
				start := cpu(b)
				if err := read(b.Context(), model, c.model); err != nil {
					b.Fatal(err)
				}
				middle := cpu(b)
				if err := yardsticks[c.name](c.body); err != nil {
					b.Fatal(err)
				}
				end := cpu(b)
				theirs = append(theirs, (end-middle)/deltas)
				ratios = append(ratios, (middle-start)/(end-middle))
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(theirs), "scanner-cpu-ns/delta")
			b.ReportMetric(median(ratios), "ratio")
		})
	}
}
