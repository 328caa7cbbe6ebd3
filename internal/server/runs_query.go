package server

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

// mostConsidered bounds the rows that one page of a filtered list reads. The next page
// continues after them.
const mostConsidered = 20_000

// runsQuery holds the parameters of the list of runs.
type runsQuery struct {
	paging
	State    []journal.State `json:"state,omitempty" jsonschema:"the states of the runs; all when left out"`
	Outcome  []event.Status  `json:"outcome,omitempty" jsonschema:"how the runs ended, completed, stopped, failed or cancelled; also those that have not ended when left out"`
	Kind     string          `json:"kind,omitempty" jsonschema:"the kind of the runs' file"`
	Name     string          `json:"name,omitempty" jsonschema:"the name of the runs' file"`
	Text     string          `json:"text,omitempty" jsonschema:"a part of the beginning of the input or of the name, in any case"`
	Since    string          `json:"since,omitempty" jsonschema:"the earliest time of the start, as in RFC 3339"`
	Until    string          `json:"until,omitempty" jsonschema:"the time before which the runs started, as in RFC 3339"`
	Children bool            `json:"children,omitempty" jsonschema:"whether runs are listed that other runs started"`
}

// fits rejects the parameters of pages for a stream, which reports all roots.
func (q runsQuery) fits() error {
	return applies(true, []givenParameter{
		{"limit", q.Limit != 0, false}, {"cursor", q.Cursor != "", false}, {"state", len(q.State) > 0, false}, {"outcome", len(q.Outcome) > 0, false}, {"kind", q.Kind != "", false},
		{"name", q.Name != "", false}, {"text", q.Text != "", false}, {"since", q.Since != "", false}, {"until", q.Until != "", false}, {"children", q.Children, false},
	})
}

// runChoice selects rows by conditions that a [journal.Filter] does not support.
type runChoice struct {
	outcomes     []event.Status
	text         string
	since, until time.Time
}

// choice returns the part of a query that the store does not apply.
func (q runsQuery) choice() (c runChoice, err error) {
	if err := knownIn("state", journal.States(), q.State); err != nil {
		return c, err
	}
	if err := knownIn("outcome", []event.Status{event.StatusCompleted, event.StatusStopped, event.StatusFailed, event.StatusCancelled}, q.Outcome); err != nil {
		return c, err
	}
	c.outcomes, c.text = q.Outcome, strings.ToLower(q.Text)
	if c.since, err = timeOf("since", q.Since); err != nil {
		return c, err
	}
	c.until, err = timeOf("until", q.Until)
	return c, err
}

// knownIn rejects an unknown value of a parameter.
func knownIn[T ~string](name string, known, given []T) error {
	for _, value := range given {
		if !slices.Contains(known, value) {
			texts := make([]string, len(known))
			for i, k := range known {
				texts[i] = string(k)
			}
			last := len(texts) - 1
			return kindQuery.problem(name+" can be "+strings.Join(texts[:last], ", ")+" or "+texts[last], "there is no %s %q", name, string(value))
		}
	}
	return nil
}

// timeOf parses a time, the zero time for none.
func timeOf(name, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, kindQuery.problem("give a time like 2026-01-31T09:00:00Z", "%s is %q", name, text)
	}
	return t, nil
}

// some reports whether the choice can exclude a row.
func (c runChoice) some() bool {
	return len(c.outcomes) > 0 || c.text != "" || !c.since.IsZero() || !c.until.IsZero()
}

// has reports whether a row is selected. input returns the beginning of the run's
// input.
func (c runChoice) has(row journal.Run, input func() (string, error)) (bool, error) {
	switch {
	case !c.since.IsZero() && row.Created.Before(c.since), !c.until.IsZero() && !row.Created.Before(c.until):
		return false, nil
	case len(c.outcomes) > 0:
		var o struct {
			Status event.Status `json:"status"`
		}
		if len(row.Outcome) == 0 {
			return false, nil
		}
		if err := json.Unmarshal(row.Outcome, &o); err != nil {
			return false, fmt.Errorf("server: outcome of run %s: %w", row.ID, err)
		}
		if !slices.Contains(c.outcomes, o.Status) {
			return false, nil
		}
	}
	if c.text == "" || strings.Contains(strings.ToLower(row.Name), c.text) {
		return true, nil
	}
	text, err := input()
	return strings.Contains(strings.ToLower(text), c.text), err
}

// selectRuns returns a page of rows and the cursor of the next page: the last row that
// this page considered, whether it was selected or not.
func (s *Server) selectRuns(ctx context.Context, q runsQuery) (page []journal.Run, next string, err error) {
	c, err := q.choice()
	if err != nil {
		return nil, "", err
	}
	last, err := s.lastRun(ctx, "runs", q.paging)
	if err != nil {
		return nil, "", err
	}
	filter := journal.Filter{States: q.State, Kind: q.Kind, Name: q.Name, Limit: q.limit() + 1, Roots: !q.Children}
	if c.some() {
		filter.Limit = max(filter.Limit, pageMost)
	}
	for considered := 0; considered < mostConsidered; {
		filter.Before = last
		rows, err := s.store.Runs(ctx, filter)
		if err != nil {
			return nil, "", err
		}
		considered += len(rows)
		for _, row := range rows {
			has, err := c.has(row, func() (string, error) {
				first, err := s.startOf(ctx, row.ID)
				return first.beginning(), err
			})
			if err != nil {
				return nil, "", err
			}
			if has && len(page) == q.limit() {
				return page, "runs:" + last, nil
			}
			if has {
				page = append(page, row)
			}
			last = row.ID
		}
		if len(rows) < filter.Limit {
			return page, "", nil
		}
	}
	return page, "runs:" + last, nil
}
