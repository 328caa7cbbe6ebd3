package server

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/journal"
)

// decision is what a body says about something that a run asks.
type decision struct {
	CallID string `json:"callId" jsonschema:"the id of a call that waits, as a text"`
	Reason string `json:"reason,omitempty" jsonschema:"why, as a text"`
}

// permission may change the call that it is about.
type permission struct {
	decision
	Args json.RawMessage `json:"args,omitempty" jsonschema:"the arguments to run the call with instead, as an object"`
}

func (s *Server) approve(a *asked[none, permission]) (said, error) {
	return decide(s, a, journal.Command{Kind: journal.Approve, CallID: a.body.CallID, Text: a.body.Reason, Args: a.body.Args})
}

func (s *Server) reject(a *asked[none, decision]) (said, error) {
	return decide(s, a, journal.Command{Kind: journal.Reject, CallID: a.body.CallID, Text: a.body.Reason})
}

// decide resolves a question and makes the run go on from the decision,
// whoever drove it before (ALDO-59, ALDO-60).
func decide[B any](s *Server, a *asked[none, B], c journal.Command) (said, error) {
	return tell(a, s.find, func(ctx context.Context, row journal.Run) (said, error) {
		switch {
		case c.CallID == "":
			return said{}, missing("callId", "name one of the calls at /v1/runs/"+row.ID+"/approvals")
		case c.Kind == journal.Reject && strings.TrimSpace(c.Text) == "":
			return said{}, missing("reason", "say why: it is what the model is told")
		}
		if err := s.checkArgs(ctx, row.ID, &c); err != nil {
			return said{}, err
		}
		return s.decided(ctx, row, c)
	})
}

// decided sends a decision and has the run go on.
func (s *Server) decided(ctx context.Context, row journal.Run, c journal.Command) (said, error) {
	answer, err := s.send(ctx, row, c)
	if err != nil {
		return said{}, err
	}
	if answer.Taken { // what was not taken up yet may still come second
		if answer.Decision, err = s.controller.Decided(ctx, named(row, c)); err != nil {
			return said{}, err
		}
	}
	return s.andGoOn(ctx, answer), nil
}

// checkArgs refuses other arguments for a call that its tool would refuse.
func (s *Server) checkArgs(ctx context.Context, run string, c *journal.Command) error {
	if c.Args == nil {
		return nil
	}
	pending, err := s.controller.Pending(ctx, run)
	if err != nil {
		return err
	}
	for _, p := range pending {
		if p.ID != c.CallID {
			continue
		}
		err := s.controller.CheckArgs(ctx, p, c.Args)
		if wrong, ok := errors.AsType[*control.ArgsError](err); ok {
			return kindArgs.problem("give arguments that fit the schema of "+p.Subject, "%s", wrong.Message).about(run, c.CallID).at("/args")
		}
		return err
	}
	return nil // what is wrong with the call is told by sending
}

// showApprovals lists the calls of a run, and of the runs that it started, that
// wait for a decision.
func (s *Server) showApprovals(a *asked[none, none]) (list[control.Call], error) {
	row, err := s.find(a.Request)
	if err != nil {
		return list[control.Call]{}, err
	}
	pending, err := s.controller.Pending(a.Context(), row.ID)
	return list[control.Call]{Items: control.Calls(pending)}, err
}

// listApprovals lists the calls of all runs that wait for a decision. See
// [Server.questionsOfAll] for its pages.
func (s *Server) listApprovals(a *asked[paging, none]) (list[control.Call], error) {
	page, err := s.questionsOfAll(a.Context(), a.query)
	return list[control.Call]{Items: control.Calls(page.Items), Next: page.Next}, err
}

// listQuestions lists what all runs ask people.
func (s *Server) listQuestions(a *asked[paging, none]) (list[control.Pending], error) {
	return s.questionsOfAll(a.Context(), a.query)
}

// questionsQuery is what the list of a run's questions is asked for.
type questionsQuery struct {
	Tree bool `json:"tree,omitempty" jsonschema:"whether what the runs below ask is listed, too"`
}

// showQuestions lists what a run asks people, and where it is wanted also what those
// below it do.
func (s *Server) showQuestions(a *asked[questionsQuery, none]) (list[control.Pending], error) {
	row, err := s.find(a.Request)
	if err != nil {
		return list[control.Pending]{}, err
	}
	read := s.asks
	if a.query.Tree {
		read = func(ctx context.Context, row journal.Run) ([]control.Pending, error) {
			return s.controller.Pending(ctx, row.ID)
		}
	}
	pending, err := read(a.Context(), row)
	return list[control.Pending]{Items: append([]control.Pending{}, pending...)}, err
}

// questionsOfAll are what all runs ask people, those of the newest runs first. A page
// ends with a run: limit is how many runs are looked at, and its items may be more or
// none. A run that cannot be read is left out.
func (s *Server) questionsOfAll(ctx context.Context, q paging) (list[control.Pending], error) {
	page := list[control.Pending]{Items: []control.Pending{}}
	last, err := s.lastRun(ctx, "questions", q)
	if err != nil {
		return page, err
	}
	rows, err := s.store.Runs(ctx, journal.Filter{
		States: []journal.State{journal.Running, journal.Waiting, journal.Parked}, Before: last, Limit: q.limit() + 1,
	})
	if err != nil {
		return page, err
	}
	runs := pageOf("questions", rows, q.limit(), func(row journal.Run) string { return row.ID })
	statuses, err := s.controller.RunStatuses(ctx, runs.Items)
	if err != nil {
		return page, err
	}
	page.Next = runs.Next
	for _, row := range statuses {
		if row.Answered || row.Expired {
			continue // without reading it whole
		}
		pending, err := s.asks(ctx, row.Run)
		switch {
		case err != nil && ctx.Err() != nil:
			return page, err
		case err != nil: // the other runs' questions can be decided all the same
			s.log.Error("a run's questions cannot be read", "run", row.ID, "error", err)
		}
		page.Items = append(page.Items, pending...)
	}
	return page, nil
}

// asks are what a run asks people: its questions and, where it has parked at a limit of
// its own, whether that is to be raised, which [Server.raise] answers.
func (s *Server) asks(ctx context.Context, row journal.Run) ([]control.Pending, error) {
	pending, err := s.controller.Asked(ctx, row.ID)
	if err != nil || len(pending) > 0 || row.State != journal.Parked {
		return pending, err
	}
	last, err := s.store.Records(ctx, row.ID, row.Seq-1, 1)
	if err != nil || len(last) == 0 {
		return nil, err
	}
	e, err := decoded(last[0])
	if err != nil {
		return nil, err
	}
	d, parked := e.Data.(event.RunParked)
	if !parked || d.Limit == "" {
		return nil, nil
	}
	return []control.Pending{{Run: row.ID, Above: []string{row.ID}, Question: event.Question{
		ID: "limit-" + d.Limit, Kind: event.QuestionLimit, Reason: d.Detail, What: view.Limit{Run: row.ID, Setting: d.Limit, AtLeast: d.AtLeast},
	}}}, nil
}
