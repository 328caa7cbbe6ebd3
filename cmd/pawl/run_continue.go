package main

import (
	"context"

	"github.com/pawlrun/pawl/engine"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/launch"
)

func (a *app) prepareContinued(ctx context.Context, from string, args []string, o launch.Options) (*session, event.RunStarted, engine.Env, error) {
	return nil, event.RunStarted{}, engine.Env{}, usagef("--continue is not there yet")
}
