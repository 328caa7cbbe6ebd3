package server

import (
	"context"
	"errors"
	"net/http"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/files/kinds"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/journal"
)

// forking is the body of a fork.
type forking struct {
	Seq    int64  `json:"seq" jsonschema:"the number of the event that the fork shares last, as a number"`
	Model  string `json:"model,omitempty" jsonschema:"provider/model, as a text"`
	Prompt string `json:"prompt,omitempty" jsonschema:"another system prompt, as a text"`
	Window int    `json:"contextWindow,omitempty" jsonschema:"another context window in tokens, as a number"`
	Run    *bool  `json:"run,omitempty" jsonschema:"whether the fork is run, true or false; true where it is left out"`
}

// forked is a fork.
type forked struct {
	journal.Run
	// Problem is why the fork does not run, although it was created.
	Problem *Problem `json:"problem,omitempty"`
}

// fork creates a run that shares another run's events up to one of them, and drives
// it unless the body prevents that.
func (s *Server) fork(a *apiRequest[none, forking]) (forked, error) {
	row, err := s.makeFork(a)
	if err != nil {
		return forked{Run: row}, err
	}
	return s.runFork(a.w, a.Request, row, a.body.Run)
}

// runFork drives a fork unless run is false.
func (s *Server) runFork(w http.ResponseWriter, r *http.Request, row journal.Run, run *bool) (answer forked, err error) {
	answer.Run = row
	w.Header().Set("Location", "/v1/runs/"+row.ID)
	if run != nil && !*run {
		return answer, nil
	}
	if err := s.resumeRun(row.ID); err != nil {
		s.log.Error("fork does not run", "run", row.ID, "error", err)
		answer.Problem = problemOf(err).about(row.ID, "")
		return answer, nil
	}
	answer.Run, err = s.moved(context.WithoutCancel(r.Context()), row.ID, row.Seq)
	return answer, err
}

// makeFork creates the fork that a body describes, without driving it.
func (s *Server) makeFork(a *apiRequest[none, forking]) (journal.Run, error) {
	row, err := s.find(a.Request)
	if err != nil {
		return row, err
	}
	if a.body.Seq == 0 {
		return row, missing("seq", "name an event of /v1/runs/"+row.ID+"/events")
	}
	if err := a.body.mayChange(a.Context()); err != nil {
		return row, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.Context()), patience)
	defer cancel()
	leave, err := s.admitStart(a.Context())
	if err != nil {
		return row, err
	}
	defer leave()
	branch, err := s.engine.Branch(ctx, row.ID, a.body.Seq)
	if errors.Is(err, drive.ErrNoSuchEvent) {
		return row, kindFork.problem("give the seq of an event of /v1/runs/"+row.ID+"/events", "run %s has the events 1 to %d", row.ID, row.Seq).about(row.ID, "").at("/seq")
	}
	if err != nil {
		return row, problemOf(err).about(row.ID, "")
	}
	if err := s.mayBranch(ctx, branch); err != nil {
		return row, err
	}
	if err := launch.ConfineScript(s.launch.Dir, a.body.Model); err != nil {
		return row, kindFork.problem("name a file of the agents directory", "%v", err).at("/model")
	}
	if err := s.controller.Redact(ctx, row.ID, &a.body.Prompt); err != nil {
		return row, problemOf(err).about(row.ID, "")
	}
	change, _, err := kinds.Fork(branch, launch.ForkChanges{Model: a.body.Model, Prompt: a.body.Prompt, Window: a.body.Window}, s.launch)
	if err != nil {
		return row, kindFork.problem("change something else, or fork at another event", "%s", control.Plain(err)).about(row.ID, "")
	}
	change.Principal = principalOf(ctx)
	id, err := s.engine.Fork(ctx, branch, change)
	if err != nil {
		return row, problemOf(err).about(row.ID, "")
	}
	return s.store.Run(ctx, id)
}

// retrying is the body of a retry.
type retrying struct {
	Run *bool `json:"run,omitempty" jsonschema:"whether the retry is run, true or false; true where it is left out"`
}

// retry creates a run that repeats the failed steps of an ended workflow, and
// drives it unless the body prevents that.
func (s *Server) retry(a *apiRequest[none, retrying]) (forked, error) {
	row, err := s.find(a.Request)
	if err != nil {
		return forked{Run: row}, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.Context()), patience)
	defer cancel()
	branch, _, err := launch.Retry(ctx, s.engine, s.store, row)
	if errors.Is(err, launch.ErrNoRetry) {
		return forked{Run: row}, kindFork.problem("fork it, or start another run", "%s", control.Plain(err)).about(row.ID, "")
	}
	if err == nil {
		err = s.mayBranch(ctx, branch)
	}
	if err != nil {
		return forked{Run: row}, err
	}
	id, err := s.engine.Fork(ctx, branch, event.RunForked{Principal: principalOf(ctx)})
	if err == nil {
		row, err = s.store.Run(ctx, id)
	}
	if err != nil {
		return forked{Run: row}, problemOf(err).about(row.ID, "")
	}
	return s.runFork(a.w, a.Request, row, a.body.Run)
}
