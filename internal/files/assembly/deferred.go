package assembly

import (
	"slices"

	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/find"
)

// DeferShare is the share of the context window above which the definitions of servers'
// tools are deferred.
const DeferShare = 0.1

// Defer selects the tools that requests do not contain: always those for which may
// returns always, and, if all definitions take a large part of the smallest window,
// also the other tools that may allows.
func Defer(cfg *agent.Config, tools []tool.Tool, may func(name string) (may, always bool)) []string {
	size, window := 0, 0
	for _, t := range tools {
		size += Tokens(t)
	}
	for _, t := range cfg.Targets {
		if w, _ := cfg.Compact.WindowFor(t.ContextWindow); window == 0 || w < window {
			window = w
		}
	}
	var names []string
	for _, t := range tools {
		may, always := may(t.Name)
		_, hidden := cfg.Policy.Hides(Visible(t))
		if !hidden && (always || may && float64(size) > DeferShare*float64(window)) {
			names = append(names, t.Name)
		}
	}
	return names
}

// Deferred returns the names of the tools that a run deferred when it began.
func Deferred(cfg agent.Config) []string {
	var names []string
	for _, t := range cfg.Tools {
		if t.Deferred {
			names = append(names, t.Name)
		}
	}
	return names
}

// WithSearch marks the deferred tools, and adds the tools that find and call them.
func WithSearch(tools []tool.Tool, names []string) []tool.Tool {
	var deferred []tool.Tool
	for i := range tools {
		if tools[i].Deferred = slices.Contains(names, tools[i].Name); tools[i].Deferred {
			deferred = append(deferred, tools[i])
		}
	}
	if len(deferred) == 0 {
		return tools
	}
	return append(tools, find.Tools(deferred)...)
}

// Tokens estimates the tokens of a tool's definition at four characters per token.
func Tokens(t tool.Tool) int { return (len(t.Name) + len(t.Description) + len(t.Schema)) / 4 }
