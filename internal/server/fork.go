package server

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/files/kinds"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/journal"
)

// forking is the body of a fork.
type forking struct {
	Seq    int64  `json:"seq,omitempty" jsonschema:"the number of the event that the fork shares last, as a number; with results it may be left out"`
	Model  string `json:"model,omitempty" jsonschema:"provider/model, as a text"`
	Prompt string `json:"prompt,omitempty" jsonschema:"another system prompt, as a text"`
	Window int    `json:"contextWindow,omitempty" jsonschema:"another context window in tokens, as a number"`
	// Results replace the results of calls.
	Results []event.ForkedResult `json:"results,omitempty" jsonschema:"other results of calls, as a list of {callId, output}"`
	Message string               `json:"message,omitempty" jsonschema:"a message with which the fork goes on, as a text"`
	Limits  []limit              `json:"limits,omitempty" jsonschema:"other limits, as a list of {setting, value}"`
	Run     *bool                `json:"run,omitempty" jsonschema:"whether the fork is run, true or false; true where it is left out"`
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
	if err := a.body.mayChange(a.Context()); err != nil {
		return row, err
	}
	commands, err := s.forkCommands(a.Context(), row.ID, a.body)
	if err != nil {
		return row, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.Context()), patience)
	defer cancel()
	leave, err := s.admitStart(a.Context())
	if err != nil {
		return row, err
	}
	defer leave()
	branch, err := s.branchOf(ctx, row, a.body)
	if err != nil {
		return row, err
	}
	if err := s.mayBranch(ctx, branch); err != nil {
		return row, err
	}
	if err := launch.ConfineScript(s.launch.Dir, a.body.Model); err != nil {
		return row, kindFork.problem("name a file of the agents directory", "%v", err).at("/model")
	}
	said := []*string{&a.body.Prompt}
	for i := range a.body.Results {
		said = append(said, &a.body.Results[i].Output)
	}
	if err := s.controller.Redact(ctx, row.ID, said...); err != nil {
		return row, problemOf(err).about(row.ID, "")
	}
	change, _, err := kinds.Fork(branch, launch.ForkChanges{Model: a.body.Model, Prompt: a.body.Prompt, Window: a.body.Window, Results: a.body.Results}, s.launch)
	if err != nil {
		return row, kindFork.problem("change something else, or fork at another event", "%s", control.Plain(err)).about(row.ID, "")
	}
	change.Principal = principalOf(ctx)
	id, err := s.engine.Fork(ctx, branch, change)
	if err != nil {
		return row, problemOf(err).about(row.ID, "")
	}
	fork, err := s.store.Run(ctx, id)
	if err != nil {
		return fork, err
	}
	return fork, s.sendAll(ctx, fork, commands)
}

// forkCommands returns the commands with which a fork begins: its limits and then its
// message.
func (s *Server) forkCommands(ctx context.Context, run string, f forking) (commands []journal.Command, err error) {
	for _, l := range f.Limits {
		value, err := l.number()
		if err == nil {
			err = s.mayRaise(ctx, run, l.Setting, value)
		}
		if problem, is := errors.AsType[*Problem](err); is {
			return nil, problem.at("/limits")
		}
		if err != nil {
			return nil, err
		}
		commands = append(commands, journal.Command{Kind: journal.Raise, Setting: l.Setting, Value: value})
	}
	if strings.TrimSpace(f.Message) != "" {
		commands = append(commands, journal.Command{Kind: journal.Input, Text: f.Message})
	}
	return commands, nil
}

// sendAll sends commands to a new fork. If one is refused, the fork is deleted.
func (s *Server) sendAll(ctx context.Context, fork journal.Run, commands []journal.Command) error {
	for _, c := range commands {
		_, err := s.send(ctx, fork, c)
		if err == nil {
			continue
		}
		if c.Kind == journal.Raise {
			err = kindLimit.problem("give another value, or \"none\"", "%s", control.Plain(err)).at("/limits")
		}
		return cmp.Or(s.store.Delete(ctx, fork.ID), err)
	}
	return nil
}

// branchOf returns the point of a run at which a body forks it. Without a number it is
// the end of the cycle whose results the body replaces.
func (s *Server) branchOf(ctx context.Context, row journal.Run, f forking) (*drive.Branch, error) {
	seq := f.Seq
	if seq == 0 && len(f.Results) == 0 {
		return nil, missing("seq", "name an event of /v1/runs/"+row.ID+"/events")
	}
	if seq == 0 {
		end, err := s.engine.Branch(ctx, row.ID, row.Seq)
		if err != nil {
			return nil, problemOf(err).about(row.ID, "")
		}
		if wrong, is := errors.AsType[*drive.ResultError](end.CheckResult(f.Results[0].CallID)); is && wrong.Seq == 0 {
			return nil, kindFork.problem("name a call that has a result", "%v", wrong).about(row.ID, "").at("/results")
		} else if seq = end.Seq; is {
			seq = wrong.Seq
		}
	}
	return s.branchAt(ctx, row, seq)
}

// branchAt returns the point of a run at an event.
func (s *Server) branchAt(ctx context.Context, row journal.Run, seq int64) (*drive.Branch, error) {
	branch, err := s.engine.Branch(ctx, row.ID, seq)
	if errors.Is(err, drive.ErrNoSuchEvent) {
		return nil, kindFork.problem("give the seq of an event of /v1/runs/"+row.ID+"/events", "run %s has the events 1 to %d", row.ID, row.Seq).about(row.ID, "").at("/seq")
	}
	if err != nil {
		return nil, problemOf(err).about(row.ID, "")
	}
	return branch, nil
}

// retrying is the body of a retry.
type retrying struct {
	Step string `json:"step,omitempty" jsonschema:"the id of a step that is done again, with what depends on it, as a text; the steps that failed where it is left out"`
	Run  *bool  `json:"run,omitempty" jsonschema:"whether the retry is run, true or false; true where it is left out"`
}

// retry creates a run that repeats the failed steps of an ended workflow, or one step
// with what depends on it, and drives it unless the body prevents that.
func (s *Server) retry(a *apiRequest[none, retrying]) (forked, error) {
	row, err := s.find(a.Request)
	if err != nil {
		return forked{Run: row}, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.Context()), patience)
	defer cancel()
	branch, _, err := launch.Retry(ctx, s.engine, s.store, row, a.body.Step)
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
