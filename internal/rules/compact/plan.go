package compact

import (
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/rules/fence"
	"github.com/pawlrun/pawl/llm"
)

// Situation describes a conversation that is too long.
type Situation struct {
	Messages []*llm.Message
	// Sizes estimates each message, and Overhead the rest of a request.
	Sizes    []int
	Overhead int
	// Window is the model's context window in tokens.
	Window int
	// Summaries counts the run's summaries so far.
	Summaries int
	// NoSummary disables summaries, because the last one failed or too many failed.
	NoSummary bool
	// Must reports that the next request would not fit, so that any reduction is better
	// than none.
	Must    bool
	Trigger event.CompressTrigger
	// Untrusted reports that the run has read untrusted text, which a summary may
	// repeat. Fence then marks the summary.
	Untrusted bool
	Fence     fence.Fence
	// Decisions are lines about decisions of people and policies. Summaries include
	// them verbatim.
	Decisions []string
}

// Plan is the next step of a compaction. A nil Change means that there is nothing to
// do. If Summary is not nil, request the summary before applying Change.
type Plan struct {
	Change  *event.HistoryCompressed
	Summary *SummaryRequest
}

// Next returns the next step, cheapest first: clear old results, clamp, deduplicate,
// apply the strategy, shorten the newest results. A strategy that a person or a program
// chose comes first. The same situation always gives the same plan. If Next returns no
// change although Must is set, the run ends.
func (s Settings) Next(in Situation) Plan {
	w := work{Situation: in, settings: s, tail: s.tail(in.Messages), before: in.Overhead, states: statesOf(in.Messages)}
	for _, n := range in.Sizes {
		w.before += n
	}
	w.pins = pinned(in.Messages, in.Sizes, w.tail, ownWords(in.Window))
	if w.states != nil {
		w.pinStates(ownWords(in.Window))
	}
	w.goal = w.targetSize()
	if s.Strategy == "" {
		if d := w.spare(); d != nil && int(d.TokensAfter) <= w.goal {
			return Plan{Change: d}
		}
	}
	if w.maySummarize() {
		if p, ok := w.summarize(); ok {
			return p
		}
	}
	if in.Must || s.rolls(in.Summaries) {
		if d := w.roll(); d != nil {
			return Plan{Change: d}
		}
	}
	if in.Must {
		return Plan{Change: w.squeeze()}
	}
	return Plan{}
}

// rolls reports whether the settings drop turns even when the request would fit: always
// with a rolling window, and with periodic summaries after the last one. A failed
// summary does not count.
func (s Settings) rolls(summaries int) bool {
	return s.Strategy == RollingWindow || s.Strategy == PeriodicSummary && summaries >= s.summaries()
}

// work is a situation for which Next makes a plan.
type work struct {
	Situation
	settings Settings
	tail     int
	pins     []bool
	// states maps each pin to the call that produced its newest result.
	states map[string]string
	// before is the current size of the request, and goal the target size.
	before, goal int
}

// targetSize returns the target size: halfway between the pinned part and the size at
// which compaction begins, so that the next cycles do not need another compaction.
func (w *work) targetSize() int {
	floor := w.Overhead
	for i, pin := range w.pins {
		if pin {
			floor += w.Sizes[i]
		}
	}
	whole := w.Window
	if w.Must {
		whole = min(whole, w.before)
	}
	limit := int(w.settings.ratio() * float64(whole))
	return floor + (limit-floor)/2
}

// worth reports whether reducing the request to after tokens justifies the loss of the
// provider's cache: a step must remove at least a twentieth.
func (w *work) worth(after int) bool { return after <= w.before-max(w.before/20, 1) }

// change completes the description of a step with its sizes and counts. It returns nil
// if the step is not worth it.
func (w *work) change(strategy Strategy, d event.HistoryCompressed) *event.HistoryCompressed {
	d.Strategy, d.Trigger, d.TokensBefore = string(strategy), w.Trigger, int64(w.before)
	after, err := Apply(w.Messages, d)
	if err != nil {
		return nil
	}
	for _, r := range d.Removed {
		d.Dropped += r.To - r.From
	}
	d.Kept, d.TokensAfter = len(after), int64(w.Overhead+Messages(after))
	if !w.worth(int(d.TokensAfter)) {
		return nil
	}
	return &d
}

// roll drops the oldest turns until the request reaches the goal.
func (w *work) roll() *event.HistoryCompressed {
	size := w.before
	gone := make([]bool, w.tail)
	for i := 0; i < w.tail && size > w.goal; {
		to := min(end(w.Messages, i), w.tail)
		if !w.pins[i] && !isSummary(w.Messages[i]) {
			for ; i < to; i++ {
				gone[i] = true
				size -= w.Sizes[i]
			}
		}
		i = to
	}
	d := event.HistoryCompressed{Removed: ranges(gone)}
	if text := decisions(w.Decisions); text != "" {
		d.Summary, d.SummaryAt = text, place(gone)
	}
	return w.change(RollingWindow, d)
}

// isSummary reports whether a message is a summary of older ones.
func isSummary(m *llm.Message) bool {
	return m.Origin == llm.OriginLoop && strings.HasPrefix(m.Text(), Header)
}

// ranges converts marks to ranges of indexes.
func ranges(gone []bool) []event.MessageRange {
	var out []event.MessageRange
	for i := 0; i < len(gone); i++ {
		if !gone[i] {
			continue
		}
		from := i
		for i < len(gone) && gone[i] {
			i++
		}
		out = append(out, event.MessageRange{From: from, To: i})
	}
	return out
}

// place returns the index in the new conversation of the text that replaces the removed
// messages: directly after the messages kept before the last removed one.
func place(gone []bool) int {
	at, kept := 0, 0
	for _, g := range gone {
		if g {
			at = kept
		} else {
			kept++
		}
	}
	return at
}
