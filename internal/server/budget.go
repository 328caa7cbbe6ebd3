package server

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/journal"
)

// limit is the body of a request to change a limit.
type limit struct {
	Setting string          `json:"setting" jsonschema:"the name of a limit, as a text"`
	Value   json.RawMessage `json:"value" jsonschema:"a number, or \"none\" to take the limit away"`
}

// number returns the new value of the limit.
func (l limit) number() (float64, error) {
	wrong := func(pointer, format string, args ...any) error {
		return kindBody.problem("the limits are "+strings.Join(budget.Settings(), ", ")+"; a value is a number, or \"none\"", format, args...).at(pointer)
	}
	value := float64(budget.None)
	switch {
	case l.Setting == "":
		return 0, wrong("/setting", "setting is missing")
	case string(l.Value) == `"none"`:
	case json.Unmarshal(l.Value, &value) != nil || value < 0:
		return 0, wrong("/value", "the value is %q", l.Value)
	}
	switch err := new(budget.Limits).Set(l.Setting, value); {
	case errors.Is(err, budget.ErrUnknownSetting):
		return 0, wrong("/setting", "there is no limit %q", l.Setting)
	case err != nil:
		return 0, wrong("/value", "the value is %s: %s", l.Value, strings.TrimPrefix(err.Error(), budget.ErrBadValue.Error()+": "))
	}
	return value, nil
}

// raise changes a limit of a run. A run that parked at that limit continues.
func (s *Server) raise(a *apiRequest[none, limit]) (commandResult, error) {
	value, err := a.body.number()
	if err != nil {
		return commandResult{}, err
	}
	return sendTo(a, s.find, func(ctx context.Context, row journal.Run) (commandResult, error) {
		if err := s.mayRaise(ctx, row.ID, a.body.Setting, value); err != nil {
			return commandResult{}, err
		}
		state, err := s.engine.State(ctx, row.ID)
		if err != nil {
			return commandResult{}, err
		}
		answer, err := s.send(ctx, row, journal.Command{Kind: journal.Raise, Setting: a.body.Setting, Value: value})
		if small, is := errors.AsType[*engine.RaiseError](err); is {
			return commandResult{}, kindLimit.problem("give a larger value, or \"none\"", "%v", small).about(row.ID, "").at("/value")
		}
		if unpriced, is := errors.AsType[*budget.UnpricedError](err); is {
			return commandResult{}, kindLimit.problem("change another limit", "%v", unpriced).about(row.ID, "").at("/setting")
		}
		if p := state.Parked; err == nil && p != nil && p.Limit == a.body.Setting {
			answer = s.continueRun(ctx, answer)
		}
		return answer, err
	})
}

// mayRaise stops an editor from setting a limit in money above the editor's
// maximum.
func (s *Server) mayRaise(ctx context.Context, run, setting string, value float64) error {
	if !budget.IsMoney(setting) {
		return nil
	}
	started, err := drive.At[event.RunStarted](ctx, s.store, run, 0)
	if err != nil {
		return err
	}
	file, err := fileCap(started)
	if err != nil {
		return err
	}
	if value == budget.None {
		value = math.Inf(1)
	}
	return s.maySpend(ctx, value, file, "/value")
}
