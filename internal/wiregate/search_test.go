package wiregate

import (
	"encoding/json"
	"fmt"
	"slices"
)

// clientSearch is the item by which a model asks its client to search for tools.
const clientSearch = "tool_search_call"

// addSearches counts the searches for tools among the calls. Two of the readers count
// calls of functions only and leave such an item to the caller; the third reads it as
// the call that it is, and a loop that trusted the others would end there.
func (e *Expected) addSearches() error {
	told := e.Oracle.Disputed["tool_calls"]["ai-sdk"]
	if told == nil || !slices.Contains(e.ServerItems, clientSearch) {
		return nil
	}
	var calls []struct {
		Name      string `json:"name"`
		Arguments struct {
			CallID    string          `json:"call_id"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"arguments"`
	}
	if err := json.Unmarshal(told, &calls); err != nil {
		return fmt.Errorf("searches for tools: %w", err)
	}
	for _, c := range calls {
		if c.Name != "tool_search" {
			continue
		}
		e.ToolCalls = append(e.ToolCalls, ExpectedCall{
			ID: c.Arguments.CallID, Name: c.Name, Arguments: c.Arguments.Arguments, Valid: true,
		})
		unified := "tool-calls"
		e.Finish.Unified = &unified
	}
	return nil
}
