package agent

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/llm"
)

// NoResult is why a run failed that had to give a result by its tool and did not.
const NoResult = "resultSchema defined but submit_result never called"

// isResult reports whether a call gave the run's result.
func (c *call) isResult(cfg *Config) bool {
	return cfg.Result != "" && c.ref.Name == cfg.Result && c.result != nil && c.result.EndsRun && !c.result.IsError
}

// result is what the first call gave that did so, nil where none did.
func (s *calls) result(cfg *Config) json.RawMessage {
	for _, c := range s.list {
		if c.isResult(cfg) {
			return c.resolved.Args
		}
	}
	return nil
}

// textSchema is the schema that a text must match which is the run's result, nil where no
// text is.
func (c *Config) textSchema() json.RawMessage {
	if !c.ResultText {
		return nil
	}
	i := slices.IndexFunc(c.Tools, func(tool llm.ToolDef) bool { return tool.Name == c.Result })
	if i < 0 {
		return nil
	}
	return c.Tools[i].Schema
}

// object is an answer's text where that is one JSON object and nothing else, nil for any
// other.
func (t *turn) object() json.RawMessage {
	text := strings.TrimSpace(t.answer)
	if !strings.HasPrefix(text, "{") || !json.Valid([]byte(text)) {
		return nil
	}
	return json.RawMessage(text)
}

// given is the run's result: what the call of its tool gave, or the text that was held
// against the tool's schema.
func (t *turn) given(cfg *Config, s *calls) json.RawMessage {
	if result := s.result(cfg); result != nil || cfg.textSchema() == nil || t.checked == nil || t.checked.Problem != "" {
		return result
	}
	return t.object()
}

// offered are the tools that the next request names: once the model was asked for its
// result, the one for that alone.
func (t *turn) offered(cfg *Config) []llm.ToolDef {
	if !t.resultAsked {
		return cfg.Tools
	}
	i := slices.IndexFunc(cfg.Tools, func(tool llm.ToolDef) bool { return tool.Name == cfg.Result })
	if i < 0 {
		return nil
	}
	return cfg.Tools[i : i+1 : i+1]
}
