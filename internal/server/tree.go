package server

import (
	"cmp"

	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/journal"
)

// branch is a run of a tree.
type branch struct {
	control.RunStatus
	// Step is the step of the parent's workflow that the run performs.
	Step string `json:"step,omitempty"`
}

// tree lists a run and its descendants in the order in which they were started; a
// parent comes before its children. The cursor is the last run of the previous
// page.
func (s *Server) tree(a *apiRequest[paging, none]) (list[branch], error) {
	page := list[branch]{}
	row, err := s.find(a.Request)
	if err != nil {
		return page, err
	}
	below, err := s.controller.Below(a.Context(), row.ID)
	if err != nil {
		return page, err
	}
	rows := make([]journal.Run, 1, len(below)+1)
	rows[0] = row
	for _, b := range below {
		rows = append(rows, b.Run)
	}
	part, err := pageIn("tree-"+row.ID, "run of this tree", rows, a.query, func(r journal.Run) string { return r.ID })
	if err != nil {
		return page, err
	}
	statuses, err := s.controller.RunStatuses(a.Context(), part.Items)
	if err != nil {
		return page, err
	}
	page.Items, page.Next = make([]branch, len(statuses)), part.Next
	for i, status := range statuses {
		first, err := s.startOf(a.Context(), status.ID)
		if err != nil {
			return page, err
		}
		page.Items[i] = branch{status, cmp.Or(first.Data.Step, first.Step)}
	}
	return page, nil
}
