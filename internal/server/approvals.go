package server

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/journal"
)

// decision is the body of a decision about a question of a run.
type decision struct {
	CallID string `json:"callId" jsonschema:"the id of a call that waits, as a text"`
	Reason string `json:"reason,omitempty" jsonschema:"why, as a text"`
	Digest string `json:"digest,omitempty" jsonschema:"the digest of the question that was read; a question with another digest is not decided"`
}

// permission is a decision that may change the call.
type permission struct {
	decision
	Args json.RawMessage `json:"args,omitempty" jsonschema:"the arguments to run the call with instead, as an object"`
	// Remember accepts the rule that the question offers.
	Remember bool `json:"remember,omitempty" jsonschema:"true to allow for the rest of the run what the question offers (its offer)"`
	// Input answers a form.
	Input json.RawMessage `json:"input,omitempty" jsonschema:"the answer to a question of kind form, an object that fits its schema"`
}

func (s *Server) approve(a *apiRequest[none, permission]) (commandResult, error) {
	c, member := journal.Command{Kind: journal.Approve, CallID: a.body.CallID, Text: a.body.Reason, Args: a.body.Args, Remember: a.body.Remember}, "args"
	if a.body.Input != nil {
		if c.Args != nil {
			return commandResult{}, kindBody.problem("leave one of them out", "it has both args and input").at("/input")
		}
		c.Args, member = a.body.Input, "input"
	}
	return decide(s, a, c, stated{a.body.Digest, member})
}

func (s *Server) reject(a *apiRequest[none, decision]) (commandResult, error) {
	return decide(s, a, journal.Command{Kind: journal.Reject, CallID: a.body.CallID, Text: a.body.Reason}, stated{a.body.Digest, ""})
}

// stated is what the body of a decision says beside its command: the digest of the
// question that the person read, empty if it does not say, and the member that holds
// the arguments of the command.
type stated struct{ digest, member string }

// decide resolves a question and makes the run continue with the decision,
// whichever process drove it before.
func decide[B any](s *Server, a *apiRequest[none, B], c journal.Command, body stated) (commandResult, error) {
	return sendTo(a, s.find, func(ctx context.Context, row journal.Run) (commandResult, error) {
		switch {
		case c.CallID == "":
			return commandResult{}, missing("callId", "name one of the calls at /v1/runs/"+row.ID+"/approvals")
		case c.Kind == journal.Reject && strings.TrimSpace(c.Text) == "":
			return commandResult{}, missing("reason", "say why: the model receives the reason")
		}
		if err := s.checkDecision(ctx, row.ID, &c, body); err != nil {
			return commandResult{}, err
		}
		return s.decided(ctx, row, c)
	})
}

// decided sends a decision and makes the run continue.
func (s *Server) decided(ctx context.Context, row journal.Run, c journal.Command) (commandResult, error) {
	answer, err := s.send(ctx, row, c)
	if err != nil {
		return commandResult{}, err
	}
	if answer.Taken { // a decision that is not taken up yet may still lose to another
		if answer.Decision, err = s.controller.Decided(ctx, named(row, c)); err != nil {
			return commandResult{}, err
		}
	}
	return s.continueRun(ctx, answer), nil
}

// checkDecision rejects a decision about another question than the one that was read,
// changed arguments that the tool of the call would reject, and an answer that does not
// fit its form.
func (s *Server) checkDecision(ctx context.Context, run string, c *journal.Command, body stated) error {
	if c.Kind != journal.Approve && body.digest == "" {
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
		if body.digest != "" && body.digest != p.Digest {
			return kindChanged.problem("read the question again at /v1/runs/"+run+"/questions", "the question %s has changed since it was read", c.CallID).about(run, c.CallID).at("/digest")
		}
		if c.Remember && (p.Offer == nil || c.Args != nil) {
			return kindArgs.problem("leave remember out: it is for a call as it is, whose question has an offer", "the question %s offers no rule for that", c.CallID).about(run, c.CallID).at("/remember")
		}
		takes := "args"
		if p.Kind == event.QuestionForm {
			takes = "input"
		}
		switch {
		case c.Kind != journal.Approve, c.Args == nil && takes == "args":
			return nil
		case c.Args != nil && takes != body.member:
			return kindArgs.problem("give "+takes+" in their place", "the question is of kind %s, which takes no %s", p.Kind, body.member).about(run, c.CallID).at("/" + body.member)
		}
		err := s.controller.CheckArgs(ctx, p, c.Args)
		if wrong, ok := errors.AsType[*control.ArgsError](err); ok {
			problem := kindArgs.problem("give arguments that fit the schema of "+p.Subject, "%s", wrong.Message).about(run, c.CallID).at("/" + takes)
			problem.Fields = wrong.Fields
			return problem
		}
		return err
	}
	return nil // sending the decision reports what is wrong with the call
}

// showApprovals lists the calls of a run and of its descendants that wait for a
// decision.
func (s *Server) showApprovals(a *apiRequest[none, none]) (list[control.Call], error) {
	row, err := s.find(a.Request)
	if err != nil {
		return list[control.Call]{}, err
	}
	pending, err := s.controller.Pending(a.Context(), row.ID)
	return list[control.Call]{Items: control.Calls(pending)}, err
}

// listApprovals lists the calls of all runs that wait for a decision. See
// [Server.questionsOfAll] for its pages.
func (s *Server) listApprovals(a *apiRequest[paging, none]) (list[control.Call], error) {
	page, err := s.questionsOfAll(a.Context(), a.query)
	return list[control.Call]{Items: control.Calls(page.Items), Next: page.Next}, err
}

// listQuestions lists the open questions of all runs.
func (s *Server) listQuestions(a *apiRequest[paging, none]) (list[control.Pending], error) {
	return s.questionsOfAll(a.Context(), a.query)
}

// questionsQuery selects the questions of a run.
type questionsQuery struct {
	Tree bool `json:"tree,omitempty" jsonschema:"whether what the runs below ask is listed, too"`
}

// showQuestions lists the open questions of a run and, on request, those of its
// descendants.
func (s *Server) showQuestions(a *apiRequest[questionsQuery, none]) (list[control.Pending], error) {
	row, err := s.find(a.Request)
	if err != nil {
		return list[control.Pending]{}, err
	}
	read := s.openQuestions
	if a.query.Tree {
		read = func(ctx context.Context, row journal.Run) ([]control.Pending, error) {
			return s.controller.Pending(ctx, row.ID)
		}
	}
	pending, err := read(a.Context(), row)
	return list[control.Pending]{Items: append([]control.Pending{}, pending...)}, err
}

// questionsOfAll lists the open questions of all runs, newest runs first. A page
// ends with a run: limit counts the runs that are read, so a page may have more
// items or none. A run that cannot be read is left out.
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
			continue // the row alone shows that nothing waits
		}
		pending, err := s.openQuestions(ctx, row.Run)
		switch {
		case err != nil && ctx.Err() != nil:
			return page, err
		case err != nil: // the questions of the other runs can still be decided
			s.log.Error("a run's questions cannot be read", "run", row.ID, "error", err)
		}
		page.Items = append(page.Items, pending...)
	}
	return page, nil
}

// openQuestions returns a run's questions to people and, if it has parked at a limit of
// its own, the question whether to raise it, which [Server.raise] answers.
func (s *Server) openQuestions(ctx context.Context, row journal.Run) ([]control.Pending, error) {
	pending, err := s.controller.PendingWithAncestors(ctx, row.ID)
	if err != nil || len(pending) > 0 || row.State != journal.Parked {
		return pending, err
	}
	d, err := s.controller.AtLimit(ctx, row)
	if err != nil || d == nil {
		return nil, err
	}
	return []control.Pending{{Run: row.ID, Above: []string{row.ID}, Open: drive.Open{Since: row.Updated, Question: event.Question{
		ID: "limit-" + d.Limit, Kind: event.QuestionLimit, Reason: d.Detail, What: view.Limit{Run: row.ID, Setting: d.Limit, AtLeast: d.AtLeast},
	}}}}, nil
}
