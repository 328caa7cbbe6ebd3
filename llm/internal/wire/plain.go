package wire

import (
	"encoding/json"
	"fmt"

	"github.com/pawlrun/pawl/llm"
)

// plainPrefix is the part of a plain request before its messages.
type plainPrefix struct {
	Model         string          `json:"model,omitempty"`
	System        string          `json:"system,omitempty"`
	Tools         []llm.ToolDef   `json:"tools,omitempty"`
	MaxTokens     int             `json:"max_tokens,omitempty"`
	Temperature   *float64        `json:"temperature,omitempty"`
	Schema        json.RawMessage `json:"schema,omitempty"`
	ProviderTools []string        `json:"provider_tools,omitempty"`
}

// Plain encodes a request in Pawl's own format, a line of JSON for each piece, for
// models that send nothing, so that their runs can be replayed byte for byte too.
func Plain(req *llm.Request) (*llm.Encoded, error) {
	var broken error
	line := func(dst []byte, v any) []byte {
		b, err := json.Marshal(v)
		if err != nil && broken == nil {
			broken = fmt.Errorf("encode the request: %w", err)
		}
		return append(append(dst, b...), '\n')
	}
	const key = "plain"
	body := llm.NewAssembly(len(req.Messages) + 1)
	body.Add(req.Memo.RequestPrefix(key, "", req, func() []byte {
		return line(nil, plainPrefix{req.Model, req.System, req.Tools, req.MaxTokens, req.Temperature, req.Schema, req.ProviderTools})
	}))
	for _, seg := range req.Memo.Messages(key, req.Messages, func(dst []byte, m *llm.Message) []byte { return line(dst, m) }) {
		body.Add(seg)
	}
	return body.Encoded(), broken
}
