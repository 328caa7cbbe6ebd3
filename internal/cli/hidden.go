package cli

import (
	"encoding/json"
	"strings"

	"github.com/pawlrun/pawl/internal/machine/agent"
)

// hiddenOf are the tools that a run does not offer, from the configuration that
// its first event pins.
func hiddenOf(config json.RawMessage) []agent.HiddenTool {
	var c struct {
		Hidden []agent.HiddenTool `json:"hidden"`
	}
	if json.Unmarshal(config, &c) != nil {
		return nil
	}
	return c.Hidden
}

func hiddenText(hidden []agent.HiddenTool) string {
	parts := make([]string, len(hidden))
	for i, h := range hidden {
		parts[i] = h.Tool + " (" + h.Rule + ")"
	}
	return strings.Join(parts, ", ")
}
