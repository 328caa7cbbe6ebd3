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

// patience bounds what a request does to a run once it was read; the client's
// going away does not, so that nothing is left half-done.
const patience = 30 * time.Second

// said is the answer to a request that acts on a run.
type said struct {
	control.Delivery
	// Decision is what a decision was recorded as.
	Decision event.Resolving `json:"decision,omitempty"`
	// Problem says why the run does not go on, although it has heard.
	Problem *Problem `json:"problem,omitempty"`
}

// cancelling is the body of a cancel.
type cancelling struct {
	Reason string `json:"reason,omitempty" jsonschema:"why, as a text"`
}

func (s *Server) cancel(a *asked[none, cancelling]) (said, error) {
	return tell(a, s.find, func(ctx context.Context, row journal.Run) (said, error) {
		return s.send(ctx, row, journal.Command{Kind: journal.Cancel, Text: a.body.Reason})
	})
}

func (s *Server) pause(a *asked[none, none]) (said, error) {
	return tell(a, s.find, func(ctx context.Context, row journal.Run) (said, error) {
		if row.State == journal.Parked || row.State == journal.Paused {
			return said{}, kindStands.problem("POST /v1/runs/"+row.ID+"/resume resumes it", "run %s is %s: %s", row.ID, row.State, row.Detail).about(row.ID, "")
		}
		return s.send(ctx, row, journal.Command{Kind: journal.Pause})
	})
}

// message is the body of an input.
type message struct {
	Text string `json:"text" jsonschema:"the message, as a text"`
}

// input adds a message to a run. One that has parked to wait for it goes on.
func (s *Server) input(a *asked[none, message]) (said, error) {
	return tell(a, s.find, func(ctx context.Context, row journal.Run) (said, error) {
		if strings.TrimSpace(a.body.Text) == "" {
			return said{}, missing("text", "say something")
		}
		answer, err := s.send(ctx, row, journal.Command{Kind: journal.Input, Text: a.body.Text})
		if err == nil && row.Detail == string(event.ParkInput) {
			answer = s.andGoOn(ctx, answer)
		}
		return answer, err
	})
}

// tell tells something to the run that find finds, whatever becomes of the client.
func tell[B any](a *asked[none, B], find func(*http.Request) (journal.Run, error), do func(context.Context, journal.Run) (said, error)) (said, error) {
	row, err := find(a.Request)
	if err != nil {
		return said{}, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.Context()), patience)
	defer cancel()
	answer, err := do(ctx, row)
	if err != nil {
		return said{}, err
	}
	a.status = statusOf(answer)
	return answer, nil
}

// send delivers a command in the name of who asks.
func (s *Server) send(ctx context.Context, row journal.Run, c journal.Command) (said, error) {
	c.Principal = principalOf(ctx)
	surface, _ := ctx.Value(surfaceKey{}).(string)
	c.By = Caller{c.Principal, cmp.Or(surface, "http")}.By()
	d, err := s.controller.Send(ctx, row, c)
	if errors.Is(err, journal.ErrEnded) && c.CallID != "" {
		// That it was decided before says more than that the run is over.
		if made, readErr := s.controller.Decided(ctx, named(row, c)); readErr == nil && made != nil {
			err = &engine.DecidedError{Decision: made}
		}
	}
	if err != nil && c.Kind == journal.Raise {
		return said{}, err
	}
	if err != nil {
		return said{}, problemOf(err).about(row.ID, c.CallID)
	}
	return said{Delivery: d}, nil
}

// named is a command to the run that a path names.
func named(row journal.Run, c journal.Command) journal.Command {
	c.Run = row.ID
	return c
}

// andGoOn drives the run on. What keeps it from going on does not undo what was
// said to it, so it is told beside that.
func (s *Server) andGoOn(ctx context.Context, answer said) said {
	row, err := s.goOn(ctx, answer.Run)
	if err != nil {
		s.log.Error("run does not go on", "run", answer.Run, "error", err)
		answer.Problem = problemOf(err)
	} else {
		answer.State = row.State
	}
	return answer
}

// statusOf says whether a command has had its effect already.
func statusOf(answer said) int {
	if answer.Taken {
		return http.StatusOK
	}
	return http.StatusAccepted
}

// resume drives a run on that has parked, or that its process left.
func (s *Server) resume(a *asked[none, none]) (journal.Run, error) {
	row, err := s.find(a.Request)
	if err != nil {
		return row, err
	}
	if err := s.takeUp(row.ID); err != nil {
		return row, problemOf(err).about(row.ID, "")
	}
	return s.moved(context.WithoutCancel(a.Context()), row.ID, row.Seq)
}
