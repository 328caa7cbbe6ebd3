package server

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/view"
)

// mostBars bounds the bars of a timeline's page.
const mostBars = 5000

// timelineQuery selects a page of a timeline.
type timelineQuery struct {
	Before string `json:"before,omitempty" jsonschema:"the event of the first bar of the page behind it; without it the page has the last bars"`
}

// timeline is what a run did over time.
type timeline struct {
	Items []view.Bar `json:"items"`
	// Earlier counts the bars before the first one here.
	Earlier int `json:"earlier,omitempty"`
	// Until is the time of the run's last event.
	Until time.Time `json:"until"`
}

// showTimeline gives what a run did as bars.
func (s *Server) showTimeline(a *apiRequest[timelineQuery, none]) (timeline, error) {
	row, err := s.find(a.Request)
	if err != nil {
		return timeline{}, err
	}
	before, err := strconv.ParseInt(cmp.Or(a.query.Before, "0"), 10, 64)
	if err != nil || before < 0 {
		return timeline{}, kindQuery.problem("give the seq of a bar", "before is %q, which is no number", a.query.Before)
	}
	var t view.Timeline
	for e, err := range drive.AsStored(a.Context(), s.store, row.ID, view.TimelineTypes()...) {
		if err != nil {
			return timeline{}, err
		}
		t.Add(e)
	}
	t.MarkCritical()
	end := len(t.Bars)
	if before > 0 {
		end, _ = slices.BinarySearchFunc(t.Bars, before, func(b view.Bar, seq int64) int { return cmp.Compare(b.Seq, seq) })
	}
	begin := max(end-mostBars, 0)
	return timeline{Items: append([]view.Bar{}, t.Bars[begin:end]...), Earlier: begin, Until: row.Updated}, nil
}
