package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
)

// runItem is a run in the list, with its input.
type runItem struct {
	control.RunStatus
	// Input is the beginning of the run's input.
	Input string `json:"input,omitempty"`
}

// listRuns lists the newest runs first, without children unless children=true, or
// streams the roots that change.
func (s *Server) listRuns(a *apiRequest[runsQuery, none]) (list[runItem], error) {
	q := a.query
	if wantsStream(a.Request) {
		if err := q.fits(); err != nil {
			return list[runItem]{}, err
		}
		return list[runItem]{}, s.streamRuns(a)
	}
	rows, next, err := s.selectRuns(a.Context(), q)
	if err != nil {
		return list[runItem]{}, err
	}
	items, err := s.runItems(a.Context(), rows)
	return list[runItem]{Items: items, Next: next}, err
}

// runItems returns rows as the list has them.
func (s *Server) runItems(ctx context.Context, rows []journal.Run) ([]runItem, error) {
	statuses, err := s.controller.RunStatuses(ctx, rows)
	if err != nil {
		return nil, err
	}
	items := make([]runItem, len(statuses))
	for i, status := range statuses {
		first, err := s.startOf(ctx, status.ID)
		if err != nil {
			return nil, err
		}
		items[i] = runItem{status, first.beginning()}
	}
	return items, nil
}

// start is the part of a run's first event that lists need.
type start struct {
	Step string `json:"step"`
	Data struct {
		Step   string `json:"step"`
		Source string `json:"source"`
		Spec   string `json:"spec"`
		Input  struct {
			Parts []struct {
				Text string `json:"text"`
			} `json:"parts"`
		} `json:"input"`
	} `json:"data"`
}

// startOf reads a run's first event.
func (s *Server) startOf(ctx context.Context, run string) (first start, err error) {
	records, err := s.store.Records(ctx, run, 0, 1)
	if err != nil || len(records) == 0 {
		return first, err
	}
	return first, json.Unmarshal(records[0].Body, &first)
}

// beginning returns the beginning of the run's input on one line.
func (s start) beginning() string {
	const most = 200
	var b strings.Builder
	for _, part := range s.Data.Input.Parts {
		for word := range strings.FieldsSeq(part.Text) {
			if b.Len() > 0 {
				b.WriteByte(' ')
			}
			if b.WriteString(word); b.Len() > most {
				return strings.ToValidUTF8(b.String()[:most], "") + "…"
			}
		}
	}
	return b.String()
}

// lastRun returns the run of a cursor. An unknown run would give an empty page,
// like the end of the list.
func (s *Server) lastRun(ctx context.Context, list string, p paging) (string, error) {
	run, err := p.after(list)
	if err != nil || run == "" {
		return "", err
	}
	_, err = s.store.Run(ctx, run)
	if errors.Is(err, journal.ErrNotFound) {
		return "", noSuchPlace("run", p.Cursor)
	}
	return run, err
}

// runDetail is the state of a run, from its row and from a fold of its journal.
type runDetail struct {
	control.RunStatus
	Usage   llm.Usage         `json:"usage"`
	Cost    llm.Cost          `json:"cost"`
	Pending []control.Call    `json:"pending"`
	Waiting []control.Pending `json:"waiting"`
	Taint   event.Taint       `json:"taint,omitzero"`
	// Limits is how much of each limit of the run is used.
	Limits []budget.Use `json:"limits"`
}

func (s *Server) showRun(a *apiRequest[none, none]) (runDetail, error) {
	row, err := s.find(a.Request)
	if err != nil {
		return runDetail{}, err
	}
	return s.detailOf(a.Context(), row)
}

func (s *Server) detailOf(ctx context.Context, row journal.Run) (runDetail, error) {
	state, err := s.engine.State(ctx, row.ID)
	if err != nil {
		return runDetail{}, err
	}
	pending, err := s.controller.Pending(ctx, row.ID)
	if err != nil {
		return runDetail{}, err
	}
	status, err := s.controller.RunStatus(ctx, row)
	if err != nil {
		return runDetail{}, err
	}
	return runDetail{
		RunStatus: status, Usage: state.Usage, Cost: state.Cost, Taint: state.Taint, Limits: append([]budget.Use{}, state.Limits...), Pending: control.Calls(pending), Waiting: append([]control.Pending{}, pending...),
	}, nil
}

// find returns the row of the run that a path names.
func (s *Server) find(r *http.Request) (journal.Run, error) {
	id := r.PathValue("id")
	row, err := s.store.Run(r.Context(), id)
	if errors.Is(err, journal.ErrNotFound) {
		return row, kindNotFound.problem("list the runs at /v1/runs", "there is no run %q", id).about(id, "")
	}
	if err != nil {
		return row, problemOf(err).about(id, "")
	}
	return row, nil
}
