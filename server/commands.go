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

func (s *Server) approve(w http.ResponseWriter, r *http.Request) error {
	c := journal.Command{Kind: journal.Approve}
	return s.decide(w, r, &c, append(decisionFields(&c), field{"args", &c.Args, "the arguments to run the call with instead, as an object"}))
}

func (s *Server) reject(w http.ResponseWriter, r *http.Request) error {
	c := journal.Command{Kind: journal.Reject}
	return s.decide(w, r, &c, decisionFields(&c))
}

func decisionFields(c *journal.Command) []field {
	return []field{
		{"callId", &c.CallID, "the id of a call that waits, as a text"},
		{"reason", &c.Text, "why, as a text"},
	}
}

// decide resolves a pending call and makes the run go on from the decision,
// whoever drove it before (ALDO-59, ALDO-60).
func (s *Server) decide(w http.ResponseWriter, r *http.Request, c *journal.Command, fields []field) error {
	row, err := s.find(r)
	if err != nil {
		return err
	}
	if err := readBody(w, r, fields...); err != nil {
		return err
	}
	switch {
	case c.CallID == "":
		return missing("callId", "name one of the calls at /v1/runs/"+row.ID+"/approvals")
	case c.Kind == journal.Reject && strings.TrimSpace(c.Text) == "":
		return missing("reason", "say why: it is what the model is told")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), patience)
	defer cancel()
	if err := s.checkArgs(ctx, row.ID, c); err != nil {
		return err
	}
	answer, err := s.send(ctx, row, *c)
	if err != nil {
		return err
	}
	if answer.Decision, err = s.desk.Decided(ctx, named(row, *c)); err != nil {
		return err
	}
	return s.andGoOn(ctx, w, r, answer)
}

// missing is the problem of a body that lacks a key.
func missing(key, next string) error {
	return kindBody.problem(next, "%s is missing", key).at(pointerTo(key))
}

// checkArgs refuses other arguments for a call that its tool would refuse.
func (s *Server) checkArgs(ctx context.Context, run string, c *journal.Command) error {
	if c.Args == nil {
		return nil
	}
	pending, err := s.desk.Pending(ctx, run)
	if err != nil {
		return err
	}
	for _, p := range pending {
		if p.CallID != c.CallID {
			continue
		}
		err := s.desk.CheckArgs(ctx, p, c.Args)
		if wrong, ok := errors.AsType[*control.ArgsError](err); ok {
			return kindArgs.problem("give arguments that fit the schema of "+p.Tool, "%s", wrong.Message).about(run, c.CallID).at("/args")
		}
		return err
	}
	return nil // what is wrong with the call is told by sending
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

// showApprovals lists the calls of a run, and of the runs that it started, that
// wait for a decision.
func (s *Server) showApprovals(w http.ResponseWriter, r *http.Request) error {
	row, err := s.find(r)
	if err != nil {
		return err
	}
	if _, err := readQuery(r); err != nil {
		return err
	}
	pending, err := s.desk.Pending(r.Context(), row.ID)
	if err != nil {
		return err
	}
	s.answer(w, r, http.StatusOK, list[control.Pending]{Items: append([]control.Pending{}, pending...)})
	return nil
}

// listApprovals lists the calls of all runs that wait for a decision, those of
// the newest runs first. A page ends with a run: limit is how many runs are
// looked at, and its items may be more or none. A run that cannot be read is left
// out.
func (s *Server) listApprovals(w http.ResponseWriter, r *http.Request) error {
	q, err := readQuery(r)
	if err != nil {
		return err
	}
	if err := s.knowsCursor(r.Context(), q); err != nil {
		return err
	}
	rows, err := s.store.Runs(r.Context(), journal.Filter{
		States: []journal.State{journal.Running, journal.Waiting, journal.Parked}, Before: q.cursor, Limit: q.limit + 1,
	})
	if err != nil {
		return err
	}
	page := list[control.Pending]{Items: []control.Pending{}}
	for _, row := range rows[:min(len(rows), q.limit)] {
		pending, err := s.desk.PendingIn(r.Context(), row.ID)
		switch {
		case err != nil && r.Context().Err() != nil:
			return err
		case err != nil: // the other runs' calls can be decided about all the same
			s.log.Error("a run's calls cannot be read", "run", row.ID, "error", err)
		}
		page.Items = append(page.Items, pending...)
	}
	if len(rows) > q.limit {
		page.Next = rows[q.limit-1].ID
	}
	s.answer(w, r, http.StatusOK, page)
	return nil
}
