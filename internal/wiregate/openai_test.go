package wiregate

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/openai"
)

func responsesAdapter() Adapter {
	return Adapter{
		API: "openai-responses", Provider: "openai", Parse: parseResponses, ItemType: responsesItem, Vary: varyResponses,
		New: func(baseURL string, client *http.Client) Model {
			return openai.New(openai.Options{BaseURL: baseURL + "/v1", APIKey: "test", HTTP: client})
		},
	}
}

// rows: ALF-29, ALF-30, ALF-32, HAR-85
func TestRecordedTrafficOfResponses(t *testing.T) { holdToGates(t, responsesAdapter()) }

// thoughtless is a session whose client did not send the reasoning back, which
// the service bears and costs the model its thoughts.
const thoughtless = "responses-reasoning-summary-tool-loop-stream"

// varyResponses reads what a client left out as left out on both sides.
func varyResponses(a Adapter, s *Scenario) Adapter {
	if s.ID != thoughtless {
		return a
	}
	a.Parse = func(raw []byte) (llm.Request, error) {
		req, err := parseResponses(raw)
		req.Messages = slices.DeleteFunc(req.Messages, func(m *llm.Message) bool {
			_, thought := m.Parts[0].(llm.Reasoning)
			return thought
		})
		return req, err
	}
	return a
}

func responsesItem(p llm.Part) string {
	switch p := p.(type) {
	case llm.Text:
		return "message"
	case llm.Reasoning:
		return "reasoning"
	case llm.ToolCall:
		for _, kind := range []string{"custom_tool_call", "tool_search_call"} {
			if strings.Contains(string(p.Raw), kind) {
				return kind
			}
		}
		return "function_call"
	case llm.Item:
		return p.Type
	}
	return ""
}

// responsesBody is a request of this wire, as far as the gates compare it.
type responsesBody struct {
	Model           string          `json:"model"`
	Instructions    string          `json:"instructions"`
	MaxOutputTokens int             `json:"max_output_tokens"`
	Input           json.RawMessage `json:"input"`
	Tools           []bodyTool      `json:"tools"`
	Text            struct {
		Format struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"format"`
	} `json:"text"`
}

type bodyTool struct {
	Type        string          `json:"type"`
	Execution   string          `json:"execution"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Deferred    bool            `json:"defer_loading"`
}

// def is the tool as it is offered; one that searches has no name of its own.
func (t *bodyTool) def() llm.ToolDef {
	d := llm.ToolDef{Name: t.Name, Description: t.Description, Schema: t.Parameters, Deferred: t.Deferred}
	if t.Type == "tool_search" {
		d.Name, d.Search = t.Type, true
	}
	return d
}

type inputItem struct {
	Type             string          `json:"type"`
	Role             string          `json:"role"`
	Content          json.RawMessage `json:"content"`
	CallID           string          `json:"call_id"`
	Name             string          `json:"name"`
	Arguments        json.RawMessage `json:"arguments"`
	Output           json.RawMessage `json:"output"`
	EncryptedContent string          `json:"encrypted_content"`
	Summary          []contentPart   `json:"summary"`
	Execution        string          `json:"execution"`
	Tools            []bodyTool      `json:"tools"`
}

type contentPart struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Refusal  string `json:"refusal"`
	ImageURL string `json:"image_url"`
}

func parseResponses(raw []byte) (llm.Request, error) {
	var b responsesBody
	if err := json.Unmarshal(raw, &b); err != nil {
		return llm.Request{}, err
	}
	req := llm.Request{Model: b.Model, System: b.Instructions, MaxTokens: b.MaxOutputTokens, Schema: b.Text.Format.Schema}
	for _, t := range b.Tools {
		if t.Type == "function" || t.Execution == "client" {
			req.Tools = append(req.Tools, t.def())
		} else {
			req.ProviderTools = append(req.ProviderTools, t.Type)
		}
	}
	var text string
	if json.Unmarshal(b.Input, &text) == nil {
		req.Messages = []*llm.Message{llm.UserText(text)}
		return req, nil
	}
	var items []json.RawMessage
	if err := json.Unmarshal(b.Input, &items); err != nil {
		return req, err
	}
	for _, raw := range items {
		if err := parseInput(&req, raw); err != nil {
			return req, err
		}
	}
	return req, nil
}

func parseInput(req *llm.Request, raw []byte) error {
	var in inputItem
	if err := json.Unmarshal(raw, &in); err != nil {
		return err
	}
	say := func(role llm.Role, parts ...llm.Part) {
		req.Messages = append(req.Messages, &llm.Message{Role: role, Parts: parts})
	}
	switch in.Type {
	case "", "message":
		parts, err := parseResponsesContent(in.Content)
		if in.Role == "system" || in.Role == "developer" {
			req.System = parts.Text()
			return err
		}
		say(llm.Role(in.Role), parts...)
		return err
	case "reasoning":
		var open []contentPart
		_ = json.Unmarshal(in.Content, &open)
		r := llm.Reasoning{Signature: in.EncryptedContent}
		for _, c := range append(in.Summary, open...) {
			r.Text += c.Text
		}
		say(llm.RoleAssistant, r)
	case "function_call":
		var arguments string
		if err := json.Unmarshal(in.Arguments, &arguments); err != nil {
			return err
		}
		say(llm.RoleAssistant, llm.ToolCall{ProviderID: plainID(in.CallID), Name: in.Name, Args: json.RawMessage(arguments)})
	case "tool_search_call":
		if in.Execution != "client" {
			return fmt.Errorf("a search that the service made, which no recording has: %s", raw)
		}
		say(llm.RoleAssistant, llm.ToolCall{ProviderID: in.CallID, Name: in.Type[:len("tool_search")], Args: in.Arguments})
	case "tool_search_output":
		found, err := foundTools(req.Tools, in.Tools)
		say(llm.RoleTool, llm.ToolResult{ProviderID: in.CallID, Tools: found})
		return err
	case "function_call_output":
		parts, err := parseResponsesContent(in.Output)
		r := llm.ToolResult{ProviderID: plainID(in.CallID), Output: parts.Text()}
		for _, p := range parts {
			if m, ok := p.(llm.Media); ok {
				r.Media = append(r.Media, m)
			}
		}
		say(llm.RoleTool, r)
		return err
	default:
		say(llm.RoleAssistant, llm.Item{Type: in.Type, Raw: raw})
	}
	return nil
}

// foundTools are the names of what a search found, which must stand there as it
// is offered.
func foundTools(offered []llm.ToolDef, found []bodyTool) ([]string, error) {
	var names []string
	for _, t := range found {
		i := slices.IndexFunc(offered, func(d llm.ToolDef) bool { return d.Name == t.Name })
		if i < 0 || offered[i].Description != t.Description || !t.Deferred || !sameJSON(offered[i].Schema, t.Parameters) {
			return nil, fmt.Errorf("%s was found otherwise than it is offered", t.Name)
		}
		names = append(names, t.Name)
	}
	return names, nil
}

func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

func parseResponsesContent(raw []byte) (llm.Parts, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return llm.Parts{llm.Text{Text: text}}, nil
	}
	var content []contentPart
	if err := json.Unmarshal(raw, &content); err != nil {
		return nil, err
	}
	var parts llm.Parts
	for _, c := range content {
		if c.Type != "input_image" {
			parts = append(parts, llm.Text{Text: c.Text + c.Refusal})
			continue
		}
		image, err := imageAt(c.ImageURL)
		if err != nil {
			return nil, err
		}
		parts = append(parts, image)
	}
	return parts, nil
}

// madeUnique finds the provider's id in one that a client made unique, because
// the provider counts its ids up from nought: ours ("call_0_run-1-1") and that
// of the recorded one ("resp_…:call_0").
var madeUnique = regexp.MustCompile(`^(?:resp_\w+:)?(call_\d+)(?:_run-[\d-]+)?$`)

func plainID(id string) string {
	if m := madeUnique.FindStringSubmatch(id); m != nil {
		return m[1]
	}
	return id
}
