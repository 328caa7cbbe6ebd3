package server

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/pawlrun/pawl/control"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
)

// listRuns gives the newest runs first. The cursor is the last run of the page
// before.
func (s *Server) listRuns(w http.ResponseWriter, r *http.Request) error {
	q, err := readQuery(r, "state")
	if err != nil {
		return err
	}
	filter := journal.Filter{Before: q.cursor, Limit: q.limit + 1}
	if filter.States, err = statesOf(q.values["state"]); err != nil {
		return err
	}
	if err := s.knowsCursor(r.Context(), q); err != nil {
		return err
	}
	rows, err := s.store.Runs(r.Context(), filter)
	if err != nil {
		return err
	}
	page := pageOf(rows, q.limit, func(row journal.Run) string { return row.ID })
	items, err := s.desk.Standings(r.Context(), page.Items)
	if err != nil {
		return err
	}
	s.answer(w, r, http.StatusOK, list[control.Standing]{Items: items, Next: page.Next})
	return nil
}

// statesOf reads the states that a list is narrowed to.
func statesOf(names []string) ([]journal.State, error) {
	var out []journal.State
	for _, name := range names {
		if !slices.Contains(journal.States(), journal.State(name)) {
			return nil, kindQuery.problem("state can be queued, running, waiting, parked, paused or ended", "there is no state %q", name)
		}
		out = append(out, journal.State(name))
	}
	return out, nil
}

// knowsCursor refuses a cursor that is no run, which would give an empty page
// like the end of the list.
func (s *Server) knowsCursor(ctx context.Context, q query) error {
	if q.cursor == "" {
		return nil
	}
	_, err := s.store.Run(ctx, q.cursor)
	if errors.Is(err, journal.ErrNotFound) {
		return noSuchPlace("run", q.cursor)
	}
	return err
}

// shown is a run as it stands, from its row and from a fold of its journal.
type shown struct {
	control.Standing
	Usage   llm.Usage         `json:"usage"`
	Cost    llm.Cost          `json:"cost"`
	Pending []control.Pending `json:"pending"`
	Taint   event.Taint       `json:"taint,omitzero"`
}

func (s *Server) showRun(w http.ResponseWriter, r *http.Request) error {
	row, err := s.find(r)
	if err != nil {
		return err
	}
	m, err := s.engine.Inspect(r.Context(), row.ID)
	if err != nil {
		return err
	}
	pending, err := s.desk.Pending(r.Context(), row.ID)
	if err != nil {
		return err
	}
	standing, err := s.desk.Standing(r.Context(), row)
	if err != nil {
		return err
	}
	state := m.State()
	s.answer(w, r, http.StatusOK, shown{
		Standing: standing, Usage: state.Usage, Cost: state.Cost, Taint: state.Taint, Pending: append([]control.Pending{}, pending...),
	})
	return nil
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
