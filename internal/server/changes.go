package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

const (
	// pageOfChanges is the number of records that a stream of runs reads at once.
	pageOfChanges = 500
	// gatherRuns is the minimum interval between two reads of a stream of runs: a busy
	// run changes its row with each commit, and a list needs no more than a few updates
	// a second.
	gatherRuns = 200 * time.Millisecond
)

// place is the start of a stream of runs: the stream reports later changes.
type place struct {
	Pos int64 `json:"pos"`
}

// streamRuns sends the roots whose trees change, until the reader disconnects: event
// begin with the place, event run with the root as in the list, event question for
// each question that was asked, decided or withdrawn, and event removed for each run
// that this server removed. The id of an event is a pos.
func (s *Server) streamRuns(a *apiRequest[runsQuery, none]) error {
	after, err := placeOf(a.Header.Get("Last-Event-ID"))
	if err == nil {
		err = s.checkPlace(a.Context(), after)
	}
	first := after == 0
	if err == nil && first {
		after, err = s.store.Last(a.Context())
	}
	if err != nil {
		return err
	}
	ctx, out, done := s.openStream(a.w, a.Request, http.StatusOK)
	defer done()
	if err := out.begin(); err != nil || a.Method == http.MethodHead {
		return errAnswered
	}
	if err := s.sendRuns(ctx, out, after, first); err != nil {
		s.log.Debug("stream of runs ended", "error", err)
	}
	return errAnswered
}

// sendRuns writes the changes after a place until ctx ends.
func (s *Server) sendRuns(ctx context.Context, out *sse, after int64, first bool) error {
	committed := s.store.Watch(ctx)
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	removed, leave := s.removals.read()
	defer leave()
	if first {
		if err := out.addJSON(after, "begin", place{after}); err != nil {
			return err
		}
		if err := out.flush(); err != nil {
			return err
		}
	}
	for {
		records, err := s.store.Tail(ctx, after, pageOfChanges)
		if err != nil {
			return err
		}
		if len(records) > 0 {
			after = records[len(records)-1].Pos
			if err := s.sendChanged(ctx, out, records); err != nil {
				return err
			}
		}
		if len(records) == pageOfChanges {
			continue
		}
		if len(records) > 0 && !sleep(ctx, gatherRuns) {
			return ctx.Err()
		}
		select {
		case <-committed:
		case <-removed.wake:
			if err := s.sendRemoved(out, removed); err != nil {
				return err
			}
		case <-beat.C:
			if err := out.comment("alive"); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// sendChanged writes each root of the records once, and the questions that the records
// change. The last event has the place of the last record.
func (s *Server) sendChanged(ctx context.Context, out *sse, records []journal.Record) error {
	var rows []journal.Run
	seen := map[string]bool{}
	for _, rec := range records {
		if rec.Root == "" {
			rec.Root = rec.Run
		}
		if !seen[rec.Root] {
			seen[rec.Root] = true
			switch row, err := s.store.Run(ctx, rec.Root); {
			case err == nil:
				rows = append(rows, row)
			case !errors.Is(err, journal.ErrNotFound): // removed in the meantime
				return err
			}
		}
		if changesQuestions(event.Type(rec.Type)) {
			c, err := questionChangeOf(rec)
			if err != nil {
				return err
			}
			if err := out.addJSON(0, "question", c); err != nil {
				return err
			}
		}
	}
	items, err := s.runItems(ctx, rows)
	if err != nil {
		return err
	}
	for i, item := range items {
		at := int64(0)
		if i == len(items)-1 {
			at = records[len(records)-1].Pos
		}
		if err := out.addJSON(at, "run", item); err != nil {
			return err
		}
	}
	return out.flush()
}

// removedRun is a run that was removed.
type removedRun struct {
	Run     string `json:"run"`
	Removed bool   `json:"removed"`
}

// sendRemoved writes the runs that were removed since the last time.
func (s *Server) sendRemoved(out *sse, reader *removalReader) error {
	for _, run := range s.removals.take(reader) {
		if err := out.addJSON(0, "removed", removedRun{run, true}); err != nil {
			return err
		}
	}
	return out.flush()
}

// questionChange is a question that a run asked, or that was decided or withdrawn.
type questionChange struct {
	Run  string     `json:"run"`
	Type event.Type `json:"type"`
	// ID is the question, empty if the event closes all questions of the run.
	ID string `json:"id,omitempty"`
	// Decision is set if the event decides the question, and Approver if a person did.
	Decision event.ApprovalKind `json:"decision,omitempty"`
	Approver string             `json:"approver,omitempty"`
}

// changesQuestions reports whether events of a type open or close questions.
func changesQuestions(t event.Type) bool {
	switch t {
	case event.TypeRunParked, event.TypeRunCompleted, event.TypeBudgetRaised, event.TypeInputReceived: // questions about limits and answers
		return true
	}
	return t.Asks() || t.Resolves()
}

// questionChangeOf returns the change of a question that a stored event records.
func questionChangeOf(rec journal.Record) (questionChange, error) {
	c := questionChange{Run: rec.Run, Type: event.Type(rec.Type)}
	e, err := decoded(rec)
	if err != nil {
		return c, err
	}
	switch d := e.Data.(type) {
	case event.Resolving:
		r := d.Resolution()
		c.ID, c.Decision, c.Approver = r.ID, r.Kind, r.Approver
	case event.Asking:
		c.ID = d.Question().ID
	}
	return c, nil
}
