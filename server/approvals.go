package server

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/pawlrun/pawl/control"
	"github.com/pawlrun/pawl/journal"
)

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
	runs := pageOf(rows, q.limit, func(row journal.Run) string { return row.ID })
	standings, err := s.desk.Standings(r.Context(), runs.Items)
	if err != nil {
		return err
	}
	page := list[control.Pending]{Items: []control.Pending{}, Next: runs.Next}
	for _, row := range standings {
		if row.Answered || row.Expired {
			continue // without reading it whole
		}
		pending, err := s.desk.PendingIn(r.Context(), row.ID)
		switch {
		case err != nil && r.Context().Err() != nil:
			return err
		case err != nil: // the other runs' calls can be decided about all the same
			s.log.Error("a run's calls cannot be read", "run", row.ID, "error", err)
		}
		page.Items = append(page.Items, pending...)
	}
	s.answer(w, r, http.StatusOK, page)
	return nil
}
