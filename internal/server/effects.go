package server

import (
	"errors"
	"strconv"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/journal"
)

// effectsQuery names the event after which effects count.
type effectsQuery struct {
	Seq string `json:"seq,omitempty" jsonschema:"the number of the event at which a fork would begin"`
}

// effectsLeft is what a fork does not undo.
type effectsLeft struct {
	// Seq is the last event that a fork at Requested shares: no call is open there.
	Seq       int64         `json:"seq"`
	Requested int64         `json:"requested"`
	Items     []view.Effect `json:"items"`
	// Earlier counts the effects before those of Items, which are the last ones.
	Earlier int `json:"earlier,omitempty"`
}

// showEffects lists what a run and the runs below it did after an event. It changes
// nothing.
func (s *Server) showEffects(a *apiRequest[effectsQuery, none]) (effectsLeft, error) {
	row, err := s.find(a.Request)
	if err != nil {
		return effectsLeft{}, err
	}
	seq, err := strconv.ParseInt(a.query.Seq, 10, 64)
	if err != nil || seq < 1 || seq > row.Seq {
		return effectsLeft{}, kindQuery.problem("give the seq of an event of /v1/runs/"+row.ID+"/events", "seq is %q, and run %s has the events 1 to %d", a.query.Seq, row.ID, row.Seq)
	}
	b, err := s.engine.Branch(a.Context(), row.ID, seq)
	if err != nil {
		return effectsLeft{}, problemOf(err).about(row.ID, "")
	}
	all, err := s.engine.Past().EffectsAfter(a.Context(), row.ID, b.Seq)
	if err != nil {
		return effectsLeft{}, err
	}
	earlier := max(len(all)-pageMost, 0)
	return effectsLeft{Seq: b.Seq, Requested: b.Requested, Items: append([]view.Effect{}, all[earlier:]...), Earlier: earlier}, nil
}

// forkItem is a run of a family of forks.
type forkItem struct {
	control.RunStatus
	// Changed names what the fork changed.
	Changed []string `json:"changed,omitempty"`
}

// forkFamily is the runs that share events, each before its forks.
type forkFamily struct {
	Items []forkItem `json:"items"`
}

// showForks lists the run that a run was forked from at the beginning, and all forks of
// it: at most [pageMost].
func (s *Server) showForks(a *apiRequest[none, none]) (forkFamily, error) {
	row, err := s.find(a.Request)
	if err != nil {
		return forkFamily{}, err
	}
	for row.ForkOf != "" {
		origin, err := s.store.Run(a.Context(), row.ForkOf)
		if errors.Is(err, journal.ErrNotFound) {
			break
		}
		if err != nil {
			return forkFamily{}, err
		}
		row = origin
	}
	var rows []journal.Run
	var add func(journal.Run) error
	add = func(r journal.Run) error {
		if rows = append(rows, r); len(rows) >= pageMost {
			return nil
		}
		forks, err := s.store.Runs(a.Context(), journal.Filter{ForkOf: r.ID})
		for i := len(forks) - 1; err == nil && i >= 0 && len(rows) < pageMost; i-- { // they come newest first
			err = add(forks[i])
		}
		return err
	}
	if err := add(row); err != nil {
		return forkFamily{}, err
	}
	statuses, err := s.controller.RunStatuses(a.Context(), rows)
	if err != nil {
		return forkFamily{}, err
	}
	f := forkFamily{Items: make([]forkItem, len(statuses))}
	for i, status := range statuses {
		f.Items[i].RunStatus = status
		if status.ForkOf == "" {
			continue
		}
		forked, err := drive.At[event.RunForked](a.Context(), s.store, status.ID, status.ForkSeq)
		if err != nil {
			return forkFamily{}, err
		}
		f.Items[i].Changed = changedBy(forked)
	}
	return f, nil
}

// changedBy names what a fork changed.
func changedBy(d event.RunForked) []string {
	changed := append([]string{}, d.Changed...)
	for _, r := range d.Results {
		changed = append(changed, "result of "+r.CallID)
	}
	return changed
}
