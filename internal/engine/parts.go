package engine

import (
	"encoding/json"
	"fmt"

	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/llm"
)

// maxNesting is how deep the JSON of a call or an answer may be nested. Who reads the
// journal reads no more than 10,000 levels, of which what an answer holds is some
// below the first; no tool takes more than 256.
const maxNesting = 1000

// maxCalls is how many calls an answer may make. No model makes as many, and what
// each of them takes to be settled grows with their number.
const maxCalls = 10_000

// unfit says why an answer cannot be kept as its adapter gave it: no conversation
// holds such a part, or no journal, or it makes more calls than a run can settle.
func unfit(parts llm.Parts) error {
	calls := 0
	for i, p := range parts {
		var raw json.RawMessage
		switch p := p.(type) {
		case llm.Text:
			raw = p.Raw
		case llm.Reasoning:
			raw = p.Raw
		case llm.ToolCall:
			if calls++; calls > maxCalls {
				return adapterPanic(fmt.Sprintf("gave an answer of more than %d calls", maxCalls))
			}
			raw = p.Raw
		case llm.Item:
			raw = p.Raw
		case llm.Media:
		case llm.ToolResult:
			return adapterPanic(fmt.Sprintf("gave an answer whose part %d is the result of a call", i+1))
		default:
			return adapterPanic(fmt.Sprintf("gave an answer whose part %d is %T", i+1, p))
		}
		if len(raw) > 0 && (!json.Valid(raw) || nestedTooDeep(raw)) {
			return adapterPanic(fmt.Sprintf("gave an answer whose part %d has a raw form that is no JSON, or is nested deeper than %d levels", i+1, maxNesting))
		}
	}
	return nil
}

// nestedTooDeep reports whether a valid JSON text is nested deeper than maxNesting.
func nestedTooDeep(text []byte) bool { return drive.NestedDeeper(text, maxNesting) }
