package wiregate

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"testing"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/gemini"
)

// geminiAdapter describes the Gemini API to the gates.
func geminiAdapter() Adapter {
	return Adapter{
		API: "gemini", Provider: "google", Parse: parseGemini, ItemType: geminiItem, MergeNeighbours: true,
		New: func(base string, client *http.Client) Model {
			return gemini.New(gemini.Options{APIKey: "k", BaseURL: base, HTTP: client})
		},
	}
}

// rows: ALF-29, ALF-30, ALF-32
func TestRecordedTrafficOfGemini(t *testing.T) { holdToGates(t, geminiAdapter()) }

func geminiItem(p llm.Part) string {
	switch p := p.(type) {
	case llm.Text:
		if p.Text == "" {
			return ""
		}
		return "text"
	case llm.Reasoning:
		return "thought"
	case llm.ToolCall:
		return "functionCall"
	case llm.Item:
		return p.Type
	}
	return ""
}

// The request as a reader of the API's documentation understands it.
type geminiRequest struct {
	SystemInstruction struct {
		Parts []struct{ Text string }
	}
	Contents []struct {
		Role  string
		Parts []geminiPart
	}
	GenerationConfig struct {
		MaxOutputTokens    int
		ResponseJSONSchema json.RawMessage
		ResponseSchema     json.RawMessage
	}
	Tools []struct {
		FunctionDeclarations []struct {
			Name, Description    string
			Parameters           json.RawMessage
			ParametersJSONSchema json.RawMessage
		}
		CodeExecution, GoogleSearch *struct{}
	}
}

type geminiPart struct {
	Text             *string
	Thought          bool
	ThoughtSignature string
	FunctionCall     *struct {
		ID, Name string
		Args     json.RawMessage
	}
	FunctionResponse *struct {
		ID, Name string
		Response map[string]json.RawMessage
	}
	InlineData *struct {
		MimeType string
		Data     []byte
	}
}

func parseGemini(body []byte) (llm.Request, error) {
	var r geminiRequest
	if err := json.Unmarshal(body, &r); err != nil {
		return llm.Request{}, err
	}
	req := llm.Request{MaxTokens: r.GenerationConfig.MaxOutputTokens, Schema: r.GenerationConfig.ResponseJSONSchema}
	for _, p := range r.SystemInstruction.Parts {
		req.System += p.Text
	}
	for _, t := range r.Tools {
		for _, f := range t.FunctionDeclarations {
			schema := f.ParametersJSONSchema
			if schema == nil {
				schema = lower(f.Parameters)
			}
			req.Tools = append(req.Tools, llm.ToolDef{Name: f.Name, Description: f.Description, Schema: schema})
		}
		if t.CodeExecution != nil {
			req.ProviderTools = append(req.ProviderTools, "code_execution")
		}
		if t.GoogleSearch != nil {
			req.ProviderTools = append(req.ProviderTools, "web_search")
		}
	}
	for _, c := range r.Contents {
		m := &llm.Message{Role: llm.RoleUser}
		if c.Role == "model" {
			m.Role = llm.RoleAssistant
		}
		for _, p := range c.Parts {
			part, err := p.neutral()
			if err != nil {
				return req, err
			}
			if _, ok := part.(llm.ToolResult); ok {
				m.Role = llm.RoleTool
			}
			m.Parts = append(m.Parts, part)
		}
		req.Messages = append(req.Messages, m)
	}
	return req, nil
}

// lower turns the old schema dialect, whose types are in capitals, into JSON
// Schema.
func lower(raw json.RawMessage) json.RawMessage {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return raw
	}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, x := range v {
				if s, ok := x.(string); ok && k == "type" {
					v[k] = map[string]string{
						"OBJECT": "object", "STRING": "string", "NUMBER": "number", "INTEGER": "integer", "BOOLEAN": "boolean", "ARRAY": "array",
					}[s]
				}
				walk(x)
			}
		case []any:
			for _, x := range v {
				walk(x)
			}
		}
	}
	walk(v)
	out, _ := json.Marshal(v)
	return out
}

func (p geminiPart) neutral() (llm.Part, error) {
	switch {
	case p.FunctionCall != nil:
		return llm.ToolCall{
			ProviderID: given(p.FunctionCall.ID), Name: p.FunctionCall.Name, Args: p.FunctionCall.Args, Signature: p.ThoughtSignature,
		}, nil
	case p.FunctionResponse != nil:
		return llm.ToolResult{
			ProviderID: given(p.FunctionResponse.ID), Name: p.FunctionResponse.Name, Output: outputOf(p.FunctionResponse.Response),
		}, nil
	case p.InlineData != nil:
		return llm.Media{MediaType: p.InlineData.MimeType, Data: p.InlineData.Data}, nil
	case p.Text != nil && p.Thought:
		return llm.Reasoning{Text: *p.Text, Signature: p.ThoughtSignature}, nil
	case p.Text != nil:
		t := llm.Text{Text: *p.Text}
		if p.ThoughtSignature != "" {
			t.Raw = fmt.Appendf(nil, `{"thoughtSignature":%q}`, p.ThoughtSignature)
		}
		return t, nil
	}
	return nil, fmt.Errorf("a part of no known kind: %+v", p)
}

// given drops an id that a recorder made up: some number calls that came
// without one.
func given(id string) string {
	if _, err := strconv.Atoi(id); err == nil {
		return ""
	}
	return id
}

// outputOf reads a result in the shapes that clients give it: a text in
// "output" or "result", or a list of texts in "content".
func outputOf(response map[string]json.RawMessage) string {
	for _, key := range []string{"output", "result", "error"} {
		var s string
		if raw, ok := response[key]; ok {
			if json.Unmarshal(raw, &s) == nil {
				return s
			}
			return string(raw)
		}
	}
	var list []struct{ Text string }
	text := ""
	if json.Unmarshal(response["content"], &list) == nil {
		for _, p := range list {
			text += p.Text
		}
		return text
	}
	all, _ := json.Marshal(response)
	return string(all)
}
