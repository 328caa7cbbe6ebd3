package simulate_test

import (
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// summed checks a journal against the promises about summaries: a paid summary is in
// the next request, whatever pauses the run, sends it messages or kills it meanwhile,
// and a nudge follows it.
type summed struct {
	// paid says that a summary is there and not used yet.
	paid bool
	// used says that one was used, and no cycle has begun since.
	used bool
}

func (s *summed) event(w *world, data event.Data) {
	switch d := data.(type) {
	case event.ModelResponse:
		text := strings.TrimSpace(llm.Parts(d.Parts).Text())
		if d.Purpose == event.PurposeSummary && text != "" &&
			(d.FinishReason == llm.FinishEnd || d.FinishReason == llm.FinishTool || d.FinishReason == llm.FinishLength) {
			s.paid = true
		}
	case event.HistoryCompressed:
		if s.paid && d.Usage == nil {
			w.violate("a summary was paid for, and the history is compressed without it")
		}
		if s.paid {
			w.seen("summary used")
		}
		s.paid, s.used = false, d.Usage != nil
	case event.Nudge:
		if s.paid {
			w.violate("a nudge comes before the summary that was made for it")
		}
		if s.used {
			w.seen("summary before a nudge")
		}
	case event.CycleStart:
		if s.paid {
			w.violate("cycle %d begins without the summary that was paid for", d.Cycle)
		}
		s.paid, s.used = false, false
	}
}
