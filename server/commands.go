package server

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/pawlrun/pawl/control"
	"github.com/pawlrun/pawl/engine"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

// patience bounds what a request does to a run once it was read; the client's
// going away does not, so that nothing is left half-done.
const patience = 30 * time.Second

// said is the answer to a request that acts on a run.
type said struct {
	control.Delivery
	// Decision is what a decision was recorded as.
	Decision *event.ToolApprovalResolved `json:"decision,omitempty"`
	// Problem says why the run does not go on, although it has heard.
	Problem *Problem `json:"problem,omitempty"`
}

func (s *Server) cancel(w http.ResponseWriter, r *http.Request) error {
	c := journal.Command{Kind: journal.Cancel}
	return s.command(w, r, &c, []field{{"reason", &c.Text, "why, as a text"}}, nil)
}

func (s *Server) pause(w http.ResponseWriter, r *http.Request) error {
	c := journal.Command{Kind: journal.Pause}
	return s.command(w, r, &c, nil, func(row journal.Run) error {
		if row.State == journal.Parked || row.State == journal.Paused {
			return kindStands.problem("POST /v1/runs/"+row.ID+"/resume makes it go on", "run %s is %s: %s", row.ID, row.State, row.Detail).about(row.ID, "")
		}
		return nil
	})
}

// input adds a message to a run. One that has parked to wait for it goes on.
func (s *Server) input(w http.ResponseWriter, r *http.Request) error {
	c := journal.Command{Kind: journal.Input}
	return s.command(w, r, &c, []field{{"text", &c.Text, "the message, as a text"}}, func(journal.Run) error {
		if strings.TrimSpace(c.Text) == "" {
			return missing("text", "say something")
		}
		return nil
	})
}

// command sends what a body says to a run, if check lets it.
func (s *Server) command(w http.ResponseWriter, r *http.Request, c *journal.Command, fields []field, check func(journal.Run) error) error {
	row, err := s.find(r)
	if err != nil {
		return err
	}
	if err := readBody(w, r, fields...); err != nil {
		return err
	}
	if check != nil {
		if err := check(row); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), patience)
	defer cancel()
	answer, err := s.send(ctx, row, *c)
	if err != nil {
		return err
	}
	if c.Kind == journal.Input && row.Detail == string(event.ParkInput) {
		return s.andGoOn(ctx, w, r, answer)
	}
	s.answer(w, r, statusOf(answer), answer)
	return nil
}

// send delivers a command in the name of this server's user.
func (s *Server) send(ctx context.Context, row journal.Run, c journal.Command) (said, error) {
	c.By = s.by
	d, err := s.desk.Send(ctx, row, c)
	if errors.Is(err, journal.ErrEnded) && c.CallID != "" {
		// That it was decided before says more than that the run is over.
		if made, readErr := s.desk.Decided(ctx, named(row, c)); readErr == nil && made != nil {
			err = &engine.DecidedError{Decision: *made}
		}
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

// andGoOn drives the run on and answers. What keeps it from going on does not
// undo what was said to it, so it is told beside that.
func (s *Server) andGoOn(ctx context.Context, w http.ResponseWriter, r *http.Request, answer said) error {
	row, err := s.goOn(ctx, answer.Run)
	if err != nil {
		s.log.Error("run does not go on", "run", answer.Run, "error", err)
		answer.Problem = problemOf(err)
	} else {
		answer.State = row.State
	}
	s.answer(w, r, statusOf(answer), answer)
	return nil
}

// statusOf says whether a command has had its effect already.
func statusOf(answer said) int {
	if answer.Taken {
		return http.StatusOK
	}
	return http.StatusAccepted
}

// resume drives a run on that has parked, or that its process left.
func (s *Server) resume(w http.ResponseWriter, r *http.Request) error {
	row, err := s.find(r)
	if err != nil {
		return err
	}
	if err := readBody(w, r); err != nil {
		return err
	}
	if err := s.takeUp(row.ID); err != nil {
		return problemOf(err).about(row.ID, "")
	}
	if row, err = s.moved(context.WithoutCancel(r.Context()), row.ID, row.Seq); err != nil {
		return err
	}
	s.answer(w, r, http.StatusOK, row)
	return nil
}
