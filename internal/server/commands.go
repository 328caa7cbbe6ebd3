package server

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/journal"
)

// patience bounds the work of a request after its body is read. The work continues
// if the client disconnects, so that nothing is left half-done.
const patience = 30 * time.Second

// commandResult is the answer to a request that acts on a run.
type commandResult struct {
	control.Delivery
	// Decision is the recorded decision.
	Decision event.Resolving `json:"decision,omitempty"`
	// Problem is why the run does not continue, although it received the command.
	Problem *Problem `json:"problem,omitempty"`
}

// cancelling is the body of a cancel.
type cancelling struct {
	Reason string `json:"reason,omitempty" jsonschema:"why, as a text"`
}

func (s *Server) cancel(a *apiRequest[none, cancelling]) (commandResult, error) {
	return sendTo(a, s.find, func(ctx context.Context, row journal.Run) (commandResult, error) {
		return s.send(ctx, row, journal.Command{Kind: journal.Cancel, Text: a.body.Reason})
	})
}

func (s *Server) pause(a *apiRequest[none, none]) (commandResult, error) {
	return sendTo(a, s.find, func(ctx context.Context, row journal.Run) (commandResult, error) {
		if row.State == journal.Parked || row.State == journal.Paused {
			return commandResult{}, kindStands.problem("POST /v1/runs/"+row.ID+"/resume resumes it", "run %s is %s: %s", row.ID, row.State, row.Detail).about(row.ID, "")
		}
		return s.send(ctx, row, journal.Command{Kind: journal.Pause})
	})
}

// message is the body of an input.
type message struct {
	Text string `json:"text" jsonschema:"the message, as a text"`
}

// input adds a message to a run. A run that parked to wait for a message continues.
func (s *Server) input(a *apiRequest[none, message]) (commandResult, error) {
	return sendTo(a, s.find, func(ctx context.Context, row journal.Run) (commandResult, error) {
		if strings.TrimSpace(a.body.Text) == "" {
			return commandResult{}, missing("text", "say something")
		}
		answer, err := s.send(ctx, row, journal.Command{Kind: journal.Input, Text: a.body.Text})
		if err == nil && row.Detail == string(event.ParkInput) {
			answer = s.continueRun(ctx, answer)
		}
		return answer, err
	})
}

// sendTo sends a command to the run that find returns, even if the client
// disconnects.
func sendTo[B any](a *apiRequest[none, B], find func(*http.Request) (journal.Run, error), do func(context.Context, journal.Run) (commandResult, error)) (commandResult, error) {
	row, err := find(a.Request)
	if err != nil {
		return commandResult{}, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.Context()), patience)
	defer cancel()
	answer, err := do(ctx, row)
	if err != nil {
		return commandResult{}, err
	}
	a.status = statusOf(answer)
	return answer, nil
}

// send delivers a command in the name of the request's principal.
func (s *Server) send(ctx context.Context, row journal.Run, c journal.Command) (commandResult, error) {
	c.Principal = principalOf(ctx)
	surface, _ := ctx.Value(surfaceKey{}).(string)
	c.By = Caller{c.Principal, cmp.Or(surface, "http")}.By()
	d, err := s.controller.Send(ctx, row, c)
	if errors.Is(err, journal.ErrEnded) && c.CallID != "" {
		// An earlier decision is a better answer than "the run has ended".
		if made, readErr := s.controller.Decided(ctx, named(row, c)); readErr == nil && made != nil {
			err = &engine.DecidedError{Decision: made}
		}
	}
	if err != nil && c.Kind == journal.Raise {
		return commandResult{}, err
	}
	if err != nil {
		return commandResult{}, problemOf(err).about(row.ID, c.CallID)
	}
	return commandResult{Delivery: d}, nil
}

// named returns a command addressed to the run that a path names.
func named(row journal.Run, c journal.Command) journal.Command {
	c.Run = row.ID
	return c
}

// continueRun makes the run continue. A problem does not undo the command, so it is
// part of the answer.
func (s *Server) continueRun(ctx context.Context, answer commandResult) commandResult {
	row, err := s.ensureContinues(ctx, answer.Run)
	if err != nil {
		s.log.Error("run does not go on", "run", answer.Run, "error", err)
		answer.Problem = problemOf(err)
	} else {
		answer.State = row.State
	}
	return answer
}

// statusOf returns the status of an answer: whether the command already had its
// effect.
func statusOf(answer commandResult) int {
	if answer.Taken {
		return http.StatusOK
	}
	return http.StatusAccepted
}

// resume continues a run that parked, or whose process ended.
func (s *Server) resume(a *apiRequest[none, none]) (journal.Run, error) {
	row, err := s.find(a.Request)
	if err != nil {
		return row, err
	}
	if err := s.resumeRun(row.ID); err != nil {
		return row, problemOf(err).about(row.ID, "")
	}
	return s.moved(context.WithoutCancel(a.Context()), row.ID, row.Seq)
}
