package wiregate

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/openaichat"
)

// chatAdapter describes chat completions to the gates. Each scenario runs under
// the profile of the service it was recorded from.
func chatAdapter() Adapter {
	return Adapter{
		API: "openai-chat", Provider: "openai-chat", New: newChat(profileOf("openai")), Parse: parseChat, ItemType: chatItem,
		Vary: func(a Adapter, s *Scenario) Adapter {
			profile := profileOf(s.Provider)
			// The recorder put other ids in the place of the service's.
			profile.ShortIDs = false
			a.New = newChat(profile)
			return a
		},
	}
}

func profileOf(service string) openaichat.Profile {
	if profile, ok := openaichat.ProfileNamed(service); ok {
		return profile
	}
	return openaichat.ProfileFor("")
}

func newChat(profile openaichat.Profile) func(string, *http.Client) Model {
	return func(base string, client *http.Client) Model {
		return openaichat.New(openaichat.Options{APIKey: "k", BaseURL: base + "/v1", HTTP: client, Profile: &profile})
	}
}

// rows: ALF-29, ALF-30, ALF-32, HAR-86
func TestRecordedTrafficOfChat(t *testing.T) { holdToGates(t, chatAdapter()) }

// chatItem names nothing: a chat message has no order of parts.
func chatItem(llm.Part) string { return "" }

// The request as a reader of the API's documentation understands it.
type chatRequest struct {
	Model               string `json:"model"`
	MaxTokens           int    `json:"max_tokens"`
	MaxCompletionTokens int    `json:"max_completion_tokens"`
	Messages            []struct {
		Role             string           `json:"role"`
		Content          json.RawMessage  `json:"content"`
		ReasoningContent string           `json:"reasoning_content"`
		ReasoningDetails []map[string]any `json:"reasoning_details"`
		ToolCallID       string           `json:"tool_call_id"`
		ToolCalls        []struct {
			ID       string `json:"id"`
			Function struct {
				Name      string `json:"name"`
				Arguments string `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
	} `json:"messages"`
	Tools []struct {
		Function struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
	ResponseFormat struct {
		JSONSchema struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	} `json:"response_format"`
}

func parseChat(body []byte) (llm.Request, error) {
	var r chatRequest
	if err := json.Unmarshal(body, &r); err != nil {
		return llm.Request{}, err
	}
	req := llm.Request{Model: r.Model, MaxTokens: max(r.MaxTokens, r.MaxCompletionTokens), Schema: r.ResponseFormat.JSONSchema.Schema}
	for _, t := range r.Tools {
		req.Tools = append(req.Tools, llm.ToolDef{Name: t.Function.Name, Description: t.Function.Description, Schema: t.Function.Parameters})
	}
	for _, m := range r.Messages {
		content, err := parseChatContent(m.Content)
		if err != nil {
			return req, err
		}
		switch m.Role {
		case "system", "developer":
			req.System += content.Text()
		case "user":
			req.Messages = append(req.Messages, &llm.Message{Role: llm.RoleUser, Parts: content})
		case "tool":
			result := llm.ToolResult{ProviderID: m.ToolCallID, Output: content.Text()}
			req.Messages = append(req.Messages, &llm.Message{Role: llm.RoleTool, Parts: llm.Parts{result}})
		case "assistant":
			var parts llm.Parts
			if len(m.ReasoningDetails) > 0 {
				parts = append(parts, detailsOf(m.ReasoningDetails))
			} else if m.ReasoningContent != "" {
				parts = append(parts, llm.Reasoning{Text: m.ReasoningContent})
			}
			parts = append(parts, content...)
			for _, c := range m.ToolCalls {
				parts = append(parts, llm.ToolCall{ProviderID: c.ID, Name: c.Function.Name, Args: json.RawMessage(c.Function.Arguments)})
			}
			req.Messages = append(req.Messages, &llm.Message{Role: llm.RoleAssistant, Parts: parts})
		default:
			return req, fmt.Errorf("role %q", m.Role)
		}
	}
	return req, nil
}

// detailsOf reduces reasoning_details to what a service checks: the text and
// what seals it. Null members and formats differ from recorder to recorder.
func detailsOf(details []map[string]any) llm.Reasoning {
	var r llm.Reasoning
	var sealed []any
	for _, d := range details {
		if s, ok := d["text"].(string); ok {
			r.Text += s
		}
		if s, ok := d["signature"].(string); ok {
			r.Signature += s
		}
		if s, ok := d["data"]; ok {
			sealed = append(sealed, s)
		}
	}
	if sealed != nil {
		r.Raw, _ = json.Marshal(sealed)
	}
	return r
}

func parseChatContent(raw json.RawMessage) (llm.Parts, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return llm.Parts{llm.Text{Text: text}}, nil
	}
	var list []struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		ImageURL struct {
			URL string `json:"url"`
		} `json:"image_url"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	var parts llm.Parts
	for _, p := range list {
		switch p.Type {
		case "text":
			parts = append(parts, llm.Text{Text: p.Text})
		case "image_url":
			image, err := imageAt(p.ImageURL.URL)
			if err != nil {
				return nil, err
			}
			parts = append(parts, image)
		default:
			return nil, fmt.Errorf("content of type %q", p.Type)
		}
	}
	return parts, nil
}
