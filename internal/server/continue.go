package server

import (
	"context"
	"encoding/json"
	"errors"
	"os"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/files/assembly"
	"github.com/pawlrun/pawl/internal/files/kinds"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal"
)

// continuing is the body of a continuation.
type continuing struct {
	Text   string   `json:"text,omitempty" jsonschema:"the message, as a text"`
	Budget *float64 `json:"budget,omitempty" jsonschema:"an amount in USD, as a number"`
}

// continueEnded starts a run that has the conversation of an ended one, with a message
// or with another budget.
func (s *Server) continueEnded(a *apiRequest[none, continuing]) (journal.Run, error) {
	row, err := s.find(a.Request)
	if err != nil {
		return row, err
	}
	if row.State != journal.Ended {
		return row, kindGoing.problem("POST /v1/runs/"+row.ID+"/input adds a message to it", "run %s is %s", row.ID, row.State).about(row.ID, "")
	}
	if b := a.body.Budget; b != nil && *b <= 0 {
		return row, kindBody.problem("give more than 0, or leave it out for the limit of the ended run", "the budget is %g", *b).at("/budget")
	}
	leave, err := s.admitStart(a.Context())
	if err != nil {
		return row, err
	}
	defer leave()
	l := s.launch
	l.Flags = launch.Flags{Dir: s.launch.Dir, BudgetUSD: a.body.Budget}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.Context()), patience)
	defer cancel()
	before, _, err := drive.Began(ctx, s.store, row.ID)
	if err != nil {
		return row, err
	}
	elsewhere := s.dispatcher != nil || !l.Here.Has(before.Place)
	if elsewhere {
		empty, err := os.MkdirTemp("", "pawl-elsewhere-")
		if err != nil {
			return row, err
		}
		defer os.RemoveAll(empty)
		l.Workspace = empty
	}
	started, env, err := kinds.Continue(ctx, s.store, row.ID, a.body.Text, l)
	switch {
	case errors.Is(err, launch.ErrNothingNew):
		return row, missing("text", "say how it goes on")
	case err != nil:
		return row, kindCannotGo.problem("start another run", "%s", control.Plain(err)).about(row.ID, "")
	}
	if err := s.mayContinue(a.Context(), started); err != nil {
		return row, assembly.Closing(env, err)
	}
	s.owners.own(a.Context(), &started)
	id := engine.NewID()
	if elsewhere {
		started.Place, started.Workspace = before.Place, before.Workspace
		err = s.queue(ctx, id, started, env)
	} else {
		err = s.start(id, started, env)
	}
	if err != nil {
		return row, problemOf(err).about(row.ID, "")
	}
	a.w.Header().Set("Location", "/v1/runs/"+id)
	return s.store.Run(ctx, id)
}

// mayContinue stops an editor from continuing a run with a limit above the editor's
// maximum, which an admin may have set.
func (s *Server) mayContinue(ctx context.Context, started event.RunStarted) error {
	file, err := fileCap(started)
	if err != nil {
		return err
	}
	var cfg agent.Config
	if err := json.Unmarshal(started.Config, &cfg); err != nil {
		return err
	}
	return s.maySpend(ctx, launch.CapUSD(cfg.Limits), file, "/budget")
}
