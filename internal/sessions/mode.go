package sessions

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/policy"
)

// Modes returns the modes of the permissions that a session switches between.
func Modes() []policy.Mode {
	return []policy.Mode{policy.ModeDefault, policy.ModeAcceptEdits, policy.ModePlan}
}

// ModeOf returns the mode of a run after an event, "" if the event does not change it.
func ModeOf(data event.Data) policy.Mode {
	switch d := data.(type) {
	case event.RunStarted:
		return cmp.Or(configOf(d).Policy.Mode, policy.ModeDefault)
	case event.InputReceived:
		return policy.Mode(d.Mode)
	}
	return ""
}

// Settings returns the mode and the model of a run now.
func (h *Host) Settings(ctx context.Context, run string) (mode policy.Mode, model string, err error) {
	for e, err := range drive.AsStored(ctx, h.Store, run, event.TypeRunStarted, event.TypeInputReceived) {
		if err != nil {
			return "", "", err
		}
		if d, is := e.Data.(event.RunStarted); is {
			if targets := configOf(d).Targets; len(targets) > 0 {
				model = targets[0].Model
			}
		}
		mode = cmp.Or(ModeOf(e.Data), mode)
	}
	return mode, model, nil
}

// configOf returns the configuration of an agent's run, the zero value for another run.
func configOf(d event.RunStarted) agent.Config {
	var c agent.Config
	if json.Unmarshal(d.Config, &c) != nil {
		return agent.Config{}
	}
	return c
}
