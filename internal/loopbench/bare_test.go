package loopbench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// bare is the loop that one writes on an afternoon: net/http, bufio.Scanner and
// encoding/json, history re-encoded for every request, nothing kept, nothing
// checked.
type bare struct {
	client *http.Client
	url    string
}

type bareBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   string          `json:"content,omitempty"`
}

type bareMessage struct {
	Role    string      `json:"role"`
	Content []bareBlock `json:"content"`
}

type bareRequest struct {
	Model     string        `json:"model"`
	MaxTokens int           `json:"max_tokens"`
	Stream    bool          `json:"stream"`
	Tools     []bareTool    `json:"tools"`
	Messages  []bareMessage `json:"messages"`
}

type bareTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
}

type bareEvent struct {
	Type         string    `json:"type"`
	Index        int       `json:"index"`
	ContentBlock bareBlock `json:"content_block"`
	Delta        struct {
		Type        string `json:"type"`
		Text        string `json:"text"`
		PartialJSON string `json:"partial_json"`
		StopReason  string `json:"stop_reason"`
	} `json:"delta"`
}

func (l *bare) run(task string) (string, error) {
	messages := []bareMessage{{Role: "user", Content: []bareBlock{{Type: "text", Text: task}}}}
	for {
		blocks, stop, err := l.call(messages)
		if err != nil {
			return "", err
		}
		messages = append(messages, bareMessage{Role: "assistant", Content: blocks})
		if stop != "tool_use" {
			return blocks[0].Text, nil
		}
		var results []bareBlock
		for _, b := range blocks {
			if b.Type != "tool_use" {
				continue
			}
			var args struct{ N int }
			if err := json.Unmarshal(b.Input, &args); err != nil {
				return "", err
			}
			results = append(results, bareBlock{Type: "tool_result", ToolUseID: b.ID, Content: "ok"})
		}
		messages = append(messages, bareMessage{Role: "user", Content: results})
	}
}

func (l *bare) call(messages []bareMessage) ([]bareBlock, string, error) {
	body, err := json.Marshal(bareRequest{
		Model: "claude-sonnet-4-5", MaxTokens: 4096, Stream: true, Messages: messages,
		Tools: []bareTool{{Name: "noop", Description: "Do nothing.", InputSchema: noopSchema}},
	})
	if err != nil {
		return nil, "", err
	}
	req, err := http.NewRequest(http.MethodPost, l.url+"/v1/messages", bytes.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("x-api-key", "k")
	req.Header.Set("anthropic-version", "2023-06-01")
	resp, err := l.client.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, "", fmt.Errorf("status %d", resp.StatusCode)
	}
	return readBare(bufio.NewScanner(resp.Body))
}

func readBare(sc *bufio.Scanner) ([]bareBlock, string, error) {
	var blocks []bareBlock
	var args strings.Builder
	stop := ""
	for sc.Scan() {
		data, ok := strings.CutPrefix(sc.Text(), "data: ")
		if !ok {
			continue
		}
		var e bareEvent
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return nil, "", err
		}
		switch e.Type {
		case "content_block_start":
			blocks = append(blocks, e.ContentBlock)
			args.Reset()
		case "content_block_delta":
			if e.Delta.Type == "text_delta" {
				blocks[e.Index].Text += e.Delta.Text
			} else {
				args.WriteString(e.Delta.PartialJSON)
			}
		case "content_block_stop":
			if blocks[e.Index].Type == "tool_use" {
				blocks[e.Index].Input = json.RawMessage(args.String())
			}
		case "message_delta":
			stop = e.Delta.StopReason
		}
	}
	return blocks, stop, sc.Err()
}
