package compact

import (
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/rules/fence"
	"github.com/pawlrun/pawl/llm"
)

// Situation is a conversation that is too long, and what is known about it.
type Situation struct {
	Messages []*llm.Message
	// Sizes estimates each of them, Overhead what a request carries beside.
	Sizes    []int
	Overhead int
	// Window is the model's in tokens.
	Window int
	// Summaries counts those that the run has had.
	Summaries int
	// NoSummary says that a summary cannot be had now, because it has just
	// failed or has failed too often.
	NoSummary bool
	// Must says that the next request would not fit, so that whatever helps is
	// better than to go on unchanged.
	Must    bool
	Trigger event.CompressTrigger
	// Untrusted says that the run has taken in text that is not trusted, which a
	// summary may repeat; Fence marks it then.
	Untrusted bool
	Fence     fence.Fence
	// Decisions are lines about what people and policy decided; they stay
	// word for word.
	Decisions []string
}

// Plan is what is to be done: nothing, when Change is nil; else Change, after
// Summary was asked for where it is not nil.
type Plan struct {
	Change  *event.HistoryCompressed
	Summary *SummaryRequest
}

// Next returns what to do in a situation, the cheapest step first: clear old
// results, clamp, dedupe, then the strategy, then shorten what is newest. A
// strategy that a person or a program chose comes first. The same situation
// always gives the same plan. If nothing is left to do but the request must
// become shorter, the run ends.
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

// rolls reports whether turns are dropped as a matter of course: always with a
// rolling window, and once the periodic summaries are used up. A
// summary that failed is no reason.
func (s Settings) rolls(summaries int) bool {
	return s.Strategy == RollingWindow || s.Strategy == PeriodicSummary && summaries >= s.summaries()
}

// work is a situation while a plan is made for it.
type work struct {
	Situation
	settings Settings
	tail     int
	pins     []bool
	// states are the calls whose results are the newest of their pins.
	states map[string]string
	// before is the size of the request as it stands, goal what it should
	// come down to.
	before, goal int
}

// targetSize returns the target size: half way between what always stays and the size
// at which compaction begins, so that the next cycles do not pay for another.
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

// worth reports whether going down to so many tokens is worth the provider's cache
// that it costs: each step must take at least a twentieth away.
func (w *work) worth(after int) bool { return after <= w.before-max(w.before/20, 1) }

// change describes a step; sizes and counts follow from what it does.
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

// roll drops the oldest turns until the rest fits.
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

// isSummary reports whether a message stands for others already.
func isSummary(m *llm.Message) bool {
	return m.Origin == llm.OriginLoop && strings.HasPrefix(m.Text(), Header)
}

// ranges turns marks into ranges of places.
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

// place is where what stands for the messages that are gone belongs: in front
// of what comes after the last of them.
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
