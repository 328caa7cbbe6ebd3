package evaluation

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pawlrun/pawl/internal/files/decode"
)

// Comparison is how a report differs from an earlier one of the same cases.
type Comparison struct {
	// Worse reports whether a smaller share of the runs of a case passed than before.
	Worse bool     `json:"worse"`
	Cases []Change `json:"cases"`
	// USD is the difference in cost, of the runs of all cases.
	USD float64 `json:"usd"`
}

// Change is how the results of a case differ. Before or After is nil for a case that
// only one of the reports has.
type Change struct {
	Name   string `json:"name"`
	Before *Sum   `json:"before"`
	After  *Sum   `json:"after"`
	Worse  bool   `json:"worse"`
}

// Same reports whether the same share of runs passed.
func (c Change) Same() bool {
	return c.Before != nil && c.After != nil && c.Before.Share() == c.After.Share()
}

// Against compares a report with an earlier one.
func (r *Report) Against(before *Report) Comparison {
	c := Comparison{Cases: []Change{}, USD: r.USD - before.USD}
	for i := range before.Cases {
		old := &before.Cases[i]
		change := Change{Name: old.Name, Before: &old.Sum}
		if at := slices.IndexFunc(r.Cases, func(now Result) bool { return now.Name == old.Name }); at >= 0 {
			change.After = &r.Cases[at].Sum
			change.Worse = change.After.Share() < change.Before.Share()
		}
		c.Cases, c.Worse = append(c.Cases, change), c.Worse || change.Worse
	}
	for i := range r.Cases {
		now := &r.Cases[i]
		if !slices.ContainsFunc(before.Cases, func(old Result) bool { return now.Name == old.Name }) {
			c.Cases = append(c.Cases, Change{Name: now.Name, After: &now.Sum})
		}
	}
	return c
}

// ReadReport reads a report that was printed as JSON.
func ReadReport(path string) (*Report, error) {
	const most = 64 << 20
	text, err := decode.ReadUpTo(path, most)
	if err != nil {
		return nil, err
	}
	var r Report
	if err := json.Unmarshal(text, &r); err != nil || r.Evaluation == "" {
		return nil, fmt.Errorf("%s is no report of an evaluation; 'pawl eval SUITE --json > FILE' writes one", path)
	}
	return &r, nil
}
