// Package toy is a machine that is no agent, for tests of what holds for all
// machines: it starts two runs beside each other, waits an hour once both have
// ended, runs a program, evaluates an expression over what they gave, and ends with
// that.
package toy

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/machine/tree"
	"github.com/pawlrun/pawl/internal/machine/versions"
)

// Helper is the name of what its children are.
const Helper = "helper"

const version = "toy/1"

type toy struct{ tree.Run }

func (t *toy) Next() []machine.Action { return t.OrPark(t.due()) }

func (t *toy) due() []machine.Action {
	due, more := t.Due()
	if !more {
		return due
	}
	for _, id := range []string{"left", "right"} {
		due = append(due, t.Start(machine.StartChild{ID: id, Kind: agent.Kind, Name: Helper, Step: "deploy." + id, Input: json.RawMessage(`{"task":"find it"}`)})...)
	}
	left, right := t.Finished("left"), t.Finished("right")
	if left == nil || right == nil {
		return due
	}
	if pause := t.Until("pause", t.Now.Add(time.Hour)); len(pause) > 0 {
		return append(due, pause...)
	}
	if due = append(due, t.Command(machine.RunCommand{ID: "check", Argv: []string{"make"}, Effect: event.EffectIdempotent})...); t.Ran("check") == nil {
		return due
	}
	sum, known := t.Value("both")
	if !known {
		variables, _ := json.Marshal(map[string]string{"left": left.FinalOutput, "right": right.FinalOutput})
		return append(due, machine.Evaluate{ID: "both", Expression: "left + right", Variables: variables})
	}
	var output string
	_ = json.Unmarshal(sum.Value, &output)
	return t.End(event.RunTerminatedBy{Reason: event.ReasonConditionMet, Output: output})
}

// Machines is the table of a program that has toys besides all other machines.
func Machines(v string) (machine.Machine, error) {
	if v == version {
		return &toy{}, nil
	}
	return versions.Make(v)
}

// Started is the first event of a toy's run.
func Started() event.RunStarted {
	return event.RunStarted{Vocabulary: event.Version, Machine: version, Kind: "Toy", Name: "toy", Config: json.RawMessage(`{}`)}
}

// Evaluate gives what the toy's expression comes to.
func Evaluate(_ context.Context, expression string, variables json.RawMessage) (json.RawMessage, error) {
	var of map[string]string
	if err := json.Unmarshal(variables, &of); err != nil || expression != "left + right" {
		return nil, errors.Join(err, errors.New(expression))
	}
	return json.Marshal(of["left"] + " and " + of["right"])
}
