package agent

import (
	"encoding/json"
	"slices"

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
