package server

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/compare"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/engine/replay"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
)

// requestQuery selects one of the requests of a cycle.
type requestQuery struct {
	Purpose string `json:"purpose,omitempty" jsonschema:"summary for the request with which a compaction in that cycle asked for a summary; the cycle's own request if it is absent"`
}

// showRequest makes a request of a cycle again.
func (s *Server) showRequest(a *apiRequest[requestQuery, none]) (replay.Request, error) {
	row, err := s.find(a.Request)
	if err != nil {
		return replay.Request{}, err
	}
	purpose := event.Purpose(a.query.Purpose)
	if purpose != "" && purpose != event.PurposeSummary {
		return replay.Request{}, kindQuery.problem("give summary, or leave it out", "purpose is %q", purpose)
	}
	cycle, err := strconv.Atoi(a.PathValue("cycle"))
	if err != nil || cycle < 1 {
		return replay.Request{}, kindNotFound.problem("give the number of a cycle, from 1", "%q is no cycle", a.PathValue("cycle")).about(row.ID, "")
	}
	found, err := s.controller.Request(a.Context(), row.ID, cycle, purpose, s.launch)
	switch {
	case errors.Is(err, replay.ErrNoRequest) && purpose != "":
		return found, kindNotFound.problem("give one of its summaries", "run %s asked for no summary in cycle %d", row.ID, cycle).about(row.ID, "")
	case errors.Is(err, replay.ErrNoRequest):
		return found, kindNotFound.problem("give one of its cycles", "run %s asked no model in cycle %d", row.ID, cycle).about(row.ID, "")
	}
	return found, err
}

// showDiff compares a run with another one.
func (s *Server) showDiff(a *apiRequest[none, none]) (compare.Diff, error) {
	row, err := s.find(a.Request)
	if err != nil {
		return compare.Diff{}, err
	}
	other := a.PathValue("other")
	if _, err := s.store.Run(a.Context(), other); errors.Is(err, journal.ErrNotFound) {
		return compare.Diff{}, kindNotFound.problem("list the runs at /v1/runs", "there is no run %q", other).about(other, "")
	}
	for _, run := range []string{row.ID, other} {
		if _, err := journal.Verify(a.Context(), s.store, run, ""); err != nil {
			return compare.Diff{}, err
		}
	}
	return compare.Runs(a.Context(), s.store, row.ID, other)
}

// replayRun replays a run and those below it.
func (s *Server) replayRun(a *apiRequest[none, none]) (control.Replayed, error) {
	row, err := s.find(a.Request)
	if err != nil {
		return control.Replayed{}, err
	}
	return s.controller.Replay(a.Context(), row.ID, s.launch)
}

// verifyRun checks the hash chain of a run and of those below it.
func (s *Server) verifyRun(a *apiRequest[none, none]) (control.Verified, error) {
	row, err := s.find(a.Request)
	if err != nil {
		return control.Verified{}, err
	}
	return s.controller.Verify(a.Context(), row.ID, "")
}

// spending is what a run and those below it spent.
type spending struct {
	Items []control.Spent `json:"items"`
	// Parts divides the same by what the requests carried, nil unless asked for.
	Parts []replay.Share `json:"parts,omitempty"`
	// Cost is that of the run's account, which is the sum of the items.
	Cost llm.Cost `json:"cost"`
}

// spendQuery selects what a spend has.
type spendQuery struct {
	Parts bool `json:"parts,omitempty" jsonschema:"also what each tool result, the rest of the requests by kind, and the answers cost"`
}

// showSpend lists what a run and those below it spent.
func (s *Server) showSpend(a *apiRequest[spendQuery, none]) (spending, error) {
	row, err := s.find(a.Request)
	if err != nil {
		return spending{}, err
	}
	items, err := s.controller.Spend(a.Context(), row.ID)
	if err != nil {
		return spending{}, err
	}
	var parts []replay.Share
	if a.query.Parts {
		if parts, err = s.controller.SpendByPart(a.Context(), items); err != nil {
			return spending{}, err
		}
	}
	state, err := s.engine.State(a.Context(), row.ID)
	return spending{items, parts, state.Cost}, err
}

// exportedRun is a run as JSON lines.
type exportedRun string

// exportRun sends a run as 'pawl runs export' writes it. A failure cuts the answer off:
// its last line, which counts what was written, is then missing.
func (s *Server) exportRun(a *apiRequest[none, none]) (exportedRun, error) {
	row, err := s.find(a.Request)
	if err != nil {
		return "", err
	}
	h := a.w.Header()
	h.Set("Content-Type", "application/jsonl")
	h.Set("Content-Disposition", `attachment; filename="`+row.ID+`.jsonl"`)
	h.Set("Cache-Control", "no-store")
	a.w.WriteHeader(a.status)
	if _, err := journal.Export(a.Context(), s.store, row.ID, a.w); err != nil {
		s.log.Warn("export is incomplete", "run", row.ID, "error", err)
		panic(http.ErrAbortHandler)
	}
	return "", errAnswered
}
