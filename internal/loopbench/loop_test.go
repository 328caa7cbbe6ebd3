// Package loopbench compares Pawl's loop with a lean one over HTTP and SSE on
// loopback, in the same run and against the same server.
package loopbench

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/tool"
)

var noopSchema = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`)

func noop() tool.Tool {
	return tool.Tool{
		Name: "noop", Description: "Do nothing.", Schema: noopSchema, Effect: event.EffectPure, ReadOnly: true, Concurrent: true,
		Run: func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{Output: "ok"}, nil },
	}
}

func newMachine(string) (machine.Machine, error) { return agent.New(), nil }

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}
