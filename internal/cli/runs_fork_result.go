package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/journal"
)

// settledCall is a call of a run, with what a replaced result needs: the events of
// the result and of the end of its cycle, 0 if missing.
type settledCall struct {
	id             string
	result, closed int64
}

// nameResults replaces the user's names of the calls of --result by whole ids. It
// rejects calls without a result at the point of the fork.
func (s *session) nameResults(ctx context.Context, r journal.Run, seq int64, results []event.ForkedResult) error {
	if len(results) == 0 || seq < 1 || seq > r.Seq {
		return nil // a wrong point of the fork is reported first
	}
	calls, err := s.settledCalls(ctx, r)
	if err != nil {
		return err
	}
	named := map[string]bool{}
	for i := range results {
		c, err := findCall(r, calls, results[i].CallID)
		switch {
		case err != nil:
			return err
		case c.result == 0:
			return usagef("--result %s: the call has no result yet", c.id)
		case c.closed == 0:
			return usagef("--result %s: its result came in event %d, and calls beside it are still open", c.id, c.result)
		case c.closed > seq:
			return usagef("--result %s: its result came in event %d, and its cycle ends after the fork; fork at %d", c.id, c.result, c.closed)
		case named[c.id]:
			return usagef("--result %s is given twice", c.id)
		}
		named[c.id] = true
		results[i].CallID = c.id
	}
	return nil
}

func (s *session) settledCalls(ctx context.Context, r journal.Run) ([]settledCall, error) {
	var calls []settledCall
	for e, err := range drive.AsStored(ctx, s.store, r.ID, event.TypeModelResponse, event.TypeToolResult, event.TypeToolResults) {
		if err != nil {
			return nil, err
		}
		switch d := e.Data.(type) {
		case event.ModelResponse:
			for _, ref := range d.ToolCalls {
				calls = append(calls, settledCall{id: ref.CallID})
			}
		case event.ToolResult:
			for i := range calls {
				if calls[i].id == d.CallID {
					calls[i].result = e.Seq
				}
			}
		case event.ToolResults:
			for i := range calls {
				if calls[i].closed == 0 {
					calls[i].closed = e.Seq
				}
			}
		}
	}
	return calls, nil
}

// findCall returns the call that the user's text names.
func findCall(r journal.Run, calls []settledCall, written string) (settledCall, error) {
	var fits []settledCall
	for _, c := range calls {
		if c.id == written {
			return c, nil
		}
		if namesCall(c.id, written) {
			fits = append(fits, c)
		}
	}
	switch {
	case len(fits) == 1:
		return fits[0], nil
	case len(fits) > 1:
		return settledCall{}, usagef("--result %s: several calls match: %s", written, idsOf(fits))
	case len(calls) == 0:
		return settledCall{}, usagef("--result %s: run %s has made no calls", written, r.ID)
	}
	return settledCall{}, usagef("--result %s: run %s has no such call; it has %s", written, r.ID, idsOf(calls))
}

// idsOf lists calls, or only the newest of many.
func idsOf(calls []settledCall) string {
	const most = 8
	var ids []string
	if left := len(calls) - most; left > 0 {
		ids, calls = append(ids, fmt.Sprintf("%d more", left)), calls[left:]
	}
	for _, c := range calls {
		ids = append(ids, c.id)
	}
	return strings.Join(ids, ", ")
}
