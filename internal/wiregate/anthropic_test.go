package wiregate

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/anthropic"
)

func anthropicAdapter() Adapter {
	return Adapter{
		API: "anthropic-messages", Provider: "anthropic", Parse: parseAnthropic, ItemType: anthropicItem,
		New: func(baseURL string, client *http.Client) Model {
			return anthropic.New(anthropic.Options{BaseURL: baseURL, HTTP: client, APIKey: "test"})
		},
	}
}

// rows: ALF-29, ALF-30, ALF-32, HAR-87
func TestRecordedTrafficOfAnthropic(t *testing.T) { holdToGates(t, anthropicAdapter()) }

func anthropicItem(p llm.Part) string {
	switch p := p.(type) {
	case llm.Text:
		return "text"
	case llm.Reasoning:
		if p.Signature == "" && p.Text == "" {
			return "redacted_thinking"
		}
		return "thinking"
	case llm.ToolCall:
		return "tool_use"
	case llm.Item:
		return p.Type
	}
	return "?"
}

type wireRequest struct {
	Model     string `json:"model"`
	MaxTokens int    `json:"max_tokens"`
	System    []struct {
		Text string `json:"text"`
	} `json:"system"`
	Tools    []json.RawMessage `json:"tools"`
	Messages []struct {
		Role    string            `json:"role"`
		Content []json.RawMessage `json:"content"`
	} `json:"messages"`
	Output struct {
		Format struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"format"`
	} `json:"output_config"`
}

// parseAnthropic reads what a request body means, with encoding/json alone.
func parseAnthropic(body []byte) (llm.Request, error) {
	var w wireRequest
	if err := json.Unmarshal(body, &w); err != nil {
		return llm.Request{}, err
	}
	req := llm.Request{Model: w.Model, MaxTokens: w.MaxTokens, Schema: w.Output.Format.Schema}
	for _, s := range w.System {
		req.System += s.Text
	}
	for _, raw := range w.Tools {
		if err := parseTool(&req, raw); err != nil {
			return req, err
		}
	}
	for _, m := range w.Messages {
		messages, err := parseMessage(m.Role, m.Content)
		if err != nil {
			return req, err
		}
		req.Messages = append(req.Messages, messages...)
	}
	return req, nil
}

func parseTool(req *llm.Request, raw json.RawMessage) error {
	var tool struct {
		Type, Name, Description string
		Schema                  json.RawMessage `json:"input_schema"`
	}
	if err := json.Unmarshal(raw, &tool); err != nil {
		return err
	}
	if tool.Schema == nil && !strings.HasPrefix(tool.Type, "computer_") {
		req.ProviderTools = append(req.ProviderTools, string(raw))
		return nil
	}
	if tool.Schema == nil {
		tool.Schema = json.RawMessage(`{"type":"object"}`)
	}
	req.Tools = append(req.Tools, llm.ToolDef{Name: tool.Name, Description: tool.Description, Schema: tool.Schema})
	return nil
}

// parseMessage tells results from what the user says, as the neutral form does.
func parseMessage(role string, content []json.RawMessage) ([]*llm.Message, error) {
	m := &llm.Message{Role: llm.Role(role)}
	results := &llm.Message{Role: llm.RoleTool}
	for _, raw := range content {
		part, err := parseBlock(raw)
		if err != nil {
			return nil, err
		}
		if _, ok := part.(llm.ToolResult); ok {
			results.Parts = append(results.Parts, part)
		} else {
			m.Parts = append(m.Parts, part)
		}
	}
	var out []*llm.Message
	for _, m := range []*llm.Message{results, m} {
		if len(m.Parts) > 0 {
			out = append(out, m)
		}
	}
	return out, nil
}

type wireBlock struct {
	Type, Text, Thinking, Signature, ID, Name string
	Input                                     json.RawMessage
	ToolUseID                                 string `json:"tool_use_id"`
	IsError                                   bool   `json:"is_error"`
	Content                                   json.RawMessage
	Citations                                 json.RawMessage
	Title                                     string
	Source                                    struct {
		Type, Data, URL string
		MediaType       string `json:"media_type"`
	}
}

func parseBlock(raw json.RawMessage) (llm.Part, error) {
	var b wireBlock
	if err := json.Unmarshal(raw, &b); err != nil {
		return nil, err
	}
	switch b.Type {
	case "text":
		t := llm.Text{Text: b.Text}
		if len(b.Citations) > 0 && string(b.Citations) != "null" && string(b.Citations) != "[]" {
			t.Raw = json.RawMessage(fmt.Sprintf(`{"citations":%s}`, b.Citations))
		}
		return t, nil
	case "thinking":
		return llm.Reasoning{Text: b.Thinking, Signature: b.Signature}, nil
	case "redacted_thinking":
		return llm.Reasoning{Raw: raw}, nil
	case "image", "document":
		return b.media()
	case "tool_use":
		return llm.ToolCall{ProviderID: b.ID, Name: b.Name, Args: b.Input}, nil
	case "tool_result":
		return b.result()
	}
	return llm.Item{Type: b.Type, Raw: raw}, nil
}

func (b wireBlock) media() (llm.Part, error) {
	m := llm.Media{MediaType: b.Source.MediaType, URL: b.Source.URL, Name: b.Title}
	switch b.Source.Type {
	case "base64":
		data, err := base64.StdEncoding.DecodeString(b.Source.Data)
		if err != nil {
			return nil, err
		}
		m.Data = data
	case "text":
		m.Data = []byte(b.Source.Data)
	}
	return m, nil
}

func (b wireBlock) result() (llm.Part, error) {
	r := llm.ToolResult{ProviderID: b.ToolUseID, IsError: b.IsError}
	if len(b.Content) == 0 {
		return r, nil
	}
	if !bytes.HasPrefix(b.Content, []byte("[")) {
		return r, json.Unmarshal(b.Content, &r.Output)
	}
	var blocks []json.RawMessage
	if err := json.Unmarshal(b.Content, &blocks); err != nil {
		return nil, err
	}
	for _, raw := range blocks {
		part, err := parseBlock(raw)
		if err != nil {
			return nil, err
		}
		switch p := part.(type) {
		case llm.Text:
			r.Output += p.Text
		case llm.Media:
			r.Media = append(r.Media, p)
		}
	}
	return r, nil
}
