package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/files/assembly"
	"github.com/pawlrun/pawl/internal/files/kinds"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/rules/access"
	"github.com/pawlrun/pawl/internal/server/rondo"
	"github.com/pawlrun/pawl/journal"
)

// rondoPaths is the prefix of the paths of RondoFlow's API.
const rondoPaths = "/api/agents/"

// loopAnswer is the envelope of that API's answers.
type loopAnswer struct {
	Success bool       `json:"success"`
	Data    rondo.Loop `json:"data"`
	// Meta is the result of the command to the loop.
	Meta *commandResult `json:"meta,omitempty"`
}

// refusal is a problem in that envelope.
type refusal struct {
	Success bool      `json:"success"`
	Error   rondoFail `json:"error"`
	Problem
}

type rondoFail struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// refusalOf uses RondoFlow's code for a problem if there is one.
func refusalOf(p Problem, err error) refusal {
	fail := rondoFail{strings.ToUpper(strings.ReplaceAll(strings.TrimPrefix(p.Type, problemType), "-", "_")), p.Detail}
	if denied, ok := errors.AsType[*access.DeniedError](err); ok && denied.Role != "" {
		fail = rondoFail{"POLICY_ERROR", denied.Policy()}
	}
	return refusal{Error: fail, Problem: p}
}

// problem returns the type of a failed answer of an operation.
func (o operation) problem() reflect.Type {
	if strings.HasPrefix(o.path, rondoPaths) {
		return reflect.TypeFor[refusal]()
	}
	return reflect.TypeFor[Problem]()
}

// agentFile returns the file of the agent that a path names.
func (s *Server) agentFile(r *http.Request) (kinds.File, error) {
	agents, _ := families()
	f, err := s.files.find(agents, r.PathValue("id"))
	if p, is := errors.AsType[*Problem](err); is && p.Status == http.StatusUnprocessableEntity {
		return f, kindNotFound.problem(p.Next, "%s", p.Detail)
	}
	return f, err
}

// lastLoop returns the running loop of an agent, or else the last one, from the
// journal, so it does not matter which process started it. A different file with
// other content but the same agent name is another agent. Without a loop the id is
// "".
func (s *Server) lastLoop(ctx context.Context, f kinds.File) (journal.Run, error) {
	wanted := journal.Filter{Kind: launch.KindLoop, Name: spec.ParseHeading(f.Text).Name, Roots: true, Limit: 50}
	for _, wanted.States = range [][]journal.State{open(), nil} {
		for wanted.Before = ""; ; {
			rows, err := s.store.Runs(ctx, wanted)
			if err != nil {
				return journal.Run{}, err
			}
			for _, row := range rows {
				if is, err := s.startedFrom(ctx, row.ID, f); err != nil || is {
					return row, err
				}
			}
			if len(rows) < wanted.Limit {
				break
			}
			wanted.Before = rows[len(rows)-1].ID
		}
	}
	return journal.Run{}, nil
}

// startedFrom reports whether a run was started from a file, from an earlier
// version or a copy of it.
func (s *Server) startedFrom(ctx context.Context, run string, f kinds.File) (bool, error) {
	first, err := s.startOf(ctx, run)
	return err == nil && (first.Data.Source == f.Path || first.Data.Spec == string(f.Text)), err
}

// open returns the states of runs that have not ended.
func open() []journal.State {
	return slices.DeleteFunc(journal.States(), func(s journal.State) bool { return s == journal.Ended })
}

// openLoop returns the running loop of the agent that a path names.
func (s *Server) openLoop(r *http.Request) (journal.Run, error) {
	f, err := s.agentFile(r)
	if err != nil {
		return journal.Run{}, err
	}
	row, err := s.lastLoop(r.Context(), f)
	if err == nil && (row.ID == "" || row.State == journal.Ended) {
		err = kindNoLoop.problem("POST "+rondoPaths+r.PathValue("id")+"/loop/start starts one", "no loop runs on the agent %q", r.PathValue("id")).about(row.ID, "")
	}
	return row, err
}

// task is the body of a start.
type task struct {
	Message string `json:"message" jsonschema:"what the loop is to do, as a text"`
}

// startLoop starts the loop of an agent unless one is running.
func (s *Server) startLoop(a *apiRequest[none, task]) (loopAnswer, error) {
	f, err := s.agentFile(a.Request)
	if err != nil {
		return loopAnswer{}, err
	}
	id := reserved(a.Context())
	if made, err := s.store.Run(a.Context(), id); id != "" && err == nil { // the same request created it
		return s.loopAnswer(a.Context(), made, nil)
	}
	switch {
	case strings.TrimSpace(a.body.Message) == "":
		return loopAnswer{}, missing("message", "say what the loop is to do")
	case f.Kind.Name != launch.KindLoop:
		return loopAnswer{}, kindLoopOff.problem("set loop.loopEnabled to true in its file", "the loop of the agent %q is not enabled", a.PathValue("id"))
	}
	leave, err := s.admitStart(a.Context())
	if err != nil {
		return loopAnswer{}, err
	}
	defer leave()
	// Launch locks the workspace, so the second of two simultaneous requests fails
	// here, or sees the run of the first.
	started, env, launchErr := f.Launch(a.body.Message, s.launch)
	held := errors.Is(launchErr, launch.ErrLoopHeld)
	if launchErr != nil && !held {
		return loopAnswer{}, cannotStart(launchErr)
	}
	if err := s.free(a.Context(), f); err != nil {
		return loopAnswer{}, assembly.Closing(env, err)
	}
	if held {
		return loopAnswer{}, kindLoopRuns.problem("wait until it has ended", "%s", control.Plain(launchErr))
	}
	s.owners.own(a.Context(), &started)
	id = cmp.Or(id, engine.NewID())
	if err := s.start(id, started, env); err != nil && !errors.Is(err, journal.ErrExists) {
		return loopAnswer{}, err
	}
	return s.loopAgain(a.Context(), id, nil)
}

// free returns nil if no loop of an agent is running.
func (s *Server) free(ctx context.Context, f kinds.File) error {
	row, err := s.lastLoop(ctx, f)
	if err != nil || row.ID == "" || row.State == journal.Ended {
		return err
	}
	return kindLoopRuns.problem("stop it, or wait until it has ended", "the loop %s, which is %s, runs on the agent %q", row.ID, row.State, row.Name).about(row.ID, "")
}

// loopStatus returns the state of an agent's loop.
func (s *Server) loopStatus(a *apiRequest[none, none]) (loopAnswer, error) {
	f, err := s.agentFile(a.Request)
	if err != nil {
		return loopAnswer{}, err
	}
	row, err := s.lastLoop(a.Context(), f)
	if err != nil || row.ID == "" {
		return loopAnswer{Success: err == nil}, err
	}
	return s.loopAnswer(a.Context(), row, nil)
}

// stopLoop ends a loop. Its open question is closed without a rejection.
func (s *Server) stopLoop(a *apiRequest[none, none]) (loopAnswer, error) {
	return sendToLoop(s, a, func(ctx context.Context, row journal.Run) (commandResult, error) {
		answer, err := s.send(ctx, row, journal.Command{Kind: journal.Cancel})
		if err == nil && answer.Taken {
			answer.State, err = s.ended(ctx, row)
		}
		return answer, err
	})
}

// ended waits briefly until a cancelled run has ended and, if this server drives
// it, has unlocked its workspace.
func (s *Server) ended(ctx context.Context, row journal.Run) (_ journal.State, err error) {
	ctx, cancel := context.WithTimeout(ctx, takenUp)
	defer cancel()
	for row.State != journal.Ended && ctx.Err() == nil && err == nil {
		row, err = s.moved(ctx, row.ID, row.Seq)
	}
	if r, ok := s.attended.Load(row.ID); ok && err == nil && row.State == journal.Ended {
		_, _ = r.(drive.Run).Wait(ctx) // attend reports its error
	}
	return row.State, err
}

// judgement is the body of an approve.
type judgement struct {
	LoopID   string `json:"loopId" jsonschema:"the id of what a loop asks, as a text"`
	Approved *bool  `json:"approved" jsonschema:"whether it is approved, true or false"`
}

// approveLoop decides the question of a loop.
func (s *Server) approveLoop(a *apiRequest[none, judgement]) (loopAnswer, error) {
	return sendToLoop(s, a, func(ctx context.Context, row journal.Run) (commandResult, error) {
		switch {
		case a.body.LoopID == "":
			return commandResult{}, missing("loopId", "GET "+rondoPaths+a.PathValue("id")+"/loop/status says what the loop asks")
		case a.body.Approved == nil:
			return commandResult{}, missing("approved", "say true or false")
		}
		c := journal.Command{Kind: journal.Reject, CallID: strings.TrimPrefix(a.body.LoopID, row.ID+"/")}
		if *a.body.Approved {
			c.Kind = journal.Approve
		}
		return s.decided(ctx, row, c)
	})
}

// pauseLoop parks a loop before its next iteration.
func (s *Server) pauseLoop(a *apiRequest[none, none]) (loopAnswer, error) {
	return sendToLoop(s, a, func(ctx context.Context, row journal.Run) (commandResult, error) {
		if row.State == journal.Parked || row.State == journal.Paused {
			return commandResult{}, kindStands.problem("POST "+rondoPaths+a.PathValue("id")+"/loop/resume resumes it", "the loop %s is %s: %s", row.ID, row.State, row.Detail).about(row.ID, "")
		}
		return s.send(ctx, row, journal.Command{Kind: journal.Pause})
	})
}

// resumeLoop resumes a loop that parked, or whose process ended.
func (s *Server) resumeLoop(a *apiRequest[none, none]) (loopAnswer, error) {
	row, err := s.openLoop(a.Request)
	if err != nil {
		return loopAnswer{}, err
	}
	if err := s.resumeRun(row.ID); err != nil {
		return loopAnswer{}, problemOf(err).about(row.ID, "")
	}
	if row, err = s.moved(context.WithoutCancel(a.Context()), row.ID, row.Seq); err != nil {
		return loopAnswer{}, err
	}
	return s.loopAnswer(a.Context(), row, nil)
}

// sendToLoop sends a command to the loop of an agent, and answers with the state of
// the loop after it.
func sendToLoop[B any](s *Server, a *apiRequest[none, B], do func(context.Context, journal.Run) (commandResult, error)) (loopAnswer, error) {
	answer, err := sendTo(a, s.openLoop, do)
	if err != nil {
		return loopAnswer{}, err
	}
	return s.loopAgain(context.WithoutCancel(a.Context()), answer.Run, &answer)
}

// loopAgain is [Server.loopAnswer] with the loop's new row.
func (s *Server) loopAgain(ctx context.Context, run string, result *commandResult) (loopAnswer, error) {
	row, err := s.store.Run(context.WithoutCancel(ctx), run)
	if err != nil {
		return loopAnswer{}, err
	}
	return s.loopAnswer(ctx, row, result)
}

// loopAnswer returns the state of a loop from its journal alone.
func (s *Server) loopAnswer(ctx context.Context, row journal.Run, result *commandResult) (loopAnswer, error) {
	now := rondo.NewLoop(row.ID, row.State != journal.Ended)
	for e, err := range drive.AsStored(ctx, s.store, row.ID) {
		if err != nil {
			return loopAnswer{}, fmt.Errorf("server: %w", err)
		}
		if err := now.Apply(e); err != nil {
			return loopAnswer{}, err
		}
	}
	if now.State.Status == "" {
		now.State.Status = "running"
		if now.Review != nil || !control.Alive(row, time.Now()) {
			now.State.Status = "paused"
		}
	}
	return loopAnswer{Success: true, Data: now, Meta: result}, nil
}
