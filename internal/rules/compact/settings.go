package compact

import (
	"errors"
	"fmt"
	"slices"

	"github.com/pawlrun/pawl/llm"
)

// Strategy names a way of making a conversation shorter.
type Strategy string

// The strategies. The empty one clears old tool results where that is enough,
// which costs nothing, and else has the model sum up the same messages as
// [SummarizeOlder] does, but where it stands, so that the provider reads the
// conversation from its cache.
const (
	// RollingWindow drops the oldest turns.
	RollingWindow Strategy = "rolling-window"
	// PeriodicSummary has the model sum the older turns up, a few times in a
	// run, and then rolls.
	PeriodicSummary Strategy = "periodic-summary"
	// SummarizeOlder has the model sum up all but the newest messages, from a
	// transcript and under a prompt of its own.
	SummarizeOlder Strategy = "summarize-older"
	// ClearResults is the rung below all of them: stubs in the place of old
	// results. It is not to be set, and named where it was enough.
	ClearResults Strategy = "clear-results"
)

// Measure says what the size of a request is read from.
type Measure string

// The measures. MeasureProvider takes the input that the provider reported last
// and estimates only what came after it. MeasureMessages estimates the
// conversation without what every request carries beside it; that the request
// as a whole fits its window is seen to all the same.
const (
	MeasureEstimate Measure = "estimate"
	MeasureProvider Measure = "provider"
	MeasureMessages Measure = "messages"
)

// The defaults.
const (
	DefaultWindow       = 200_000
	DefaultRatio        = 0.8
	DefaultKeepMessages = 6
	DefaultKeepTurns    = 2
	DefaultMaxSummaries = 3
)

// Settings say when and how a conversation is made shorter. The zero value is
// the default of a plain agent.
type Settings struct {
	// Window is the context window in tokens; 0 leaves it to the model.
	Window int `json:"context_window,omitempty"`
	// Off leaves every conversation as it is.
	Off      bool     `json:"off,omitempty"`
	Strategy Strategy `json:"strategy,omitempty"`
	// Ratio is the share of the window at which it is time; 0 means 0.8.
	// Inclusive makes it time when the share is reached, not only when it is
	// exceeded.
	Ratio     float64 `json:"ratio,omitempty"`
	Inclusive bool    `json:"inclusive,omitempty"`
	Measure   Measure `json:"measure,omitempty"`
	// KeepTurns or KeepMessages is what stays at the end as it is; 0 for both
	// leaves it to the strategy.
	KeepTurns    int `json:"keep_turns,omitempty"`
	KeepMessages int `json:"keep_messages,omitempty"`
	// MaxSummaries bounds the summaries of a run; nil means three for
	// [PeriodicSummary] and no bound otherwise.
	MaxSummaries *int `json:"max_summaries,omitempty"`
	// SummaryRole is who says a summary: the user's place when it is empty, or
	// [llm.RoleSystem].
	SummaryRole llm.Role `json:"summary_role,omitempty"`
}

// Check says what is wrong with settings that a program gives. Those of a file are
// bounded by its keys.
func (s Settings) Check() error {
	switch {
	case !slices.Contains([]Strategy{"", RollingWindow, PeriodicSummary, SummarizeOlder}, s.Strategy):
		return fmt.Errorf("compact: there is no strategy %q", s.Strategy)
	case !slices.Contains([]Measure{"", MeasureEstimate, MeasureProvider, MeasureMessages}, s.Measure):
		return fmt.Errorf("compact: there is no measure %q", s.Measure)
	case s.Ratio != 0 && !(s.Ratio >= 0.1 && s.Ratio <= 1):
		return fmt.Errorf("compact: the ratio %v is not between 0.1 and 1", s.Ratio)
	case s.Window < 0, s.KeepTurns < 0, s.KeepMessages < 0, s.MaxSummaries != nil && *s.MaxSummaries < 0:
		return errors.New("compact: a number is below 0")
	case s.KeepTurns > 0 && s.KeepMessages > 0:
		return errors.New("compact: KeepTurns and KeepMessages are both given")
	case s.SummaryRole != "" && s.SummaryRole != llm.RoleUser && s.SummaryRole != llm.RoleSystem:
		return fmt.Errorf("compact: a summary cannot have the role %q", s.SummaryRole)
	}
	return nil
}

// WindowFor is the window that holds for a model, whose own is 0 when it is not
// known; known is false when the window is only assumed.
func (s Settings) WindowFor(model int) (tokens int, known bool) {
	switch {
	case s.Window > 0 && model > 0:
		return min(s.Window, model), true
	case s.Window > 0:
		return s.Window, true
	case model > 0:
		return model, true
	}
	return DefaultWindow, false
}

// Due reports whether a request of so many tokens calls for compaction.
func (s Settings) Due(tokens, window int) bool {
	limit := s.ratio() * float64(window)
	return float64(tokens) > limit || s.Inclusive && float64(tokens) >= limit
}

func (s Settings) ratio() float64 {
	if s.Ratio > 0 {
		return s.Ratio
	}
	return DefaultRatio
}

// summaries is how many summaries a run may have, or -1.
func (s Settings) summaries() int {
	switch {
	case s.Strategy == RollingWindow:
		return 0
	case s.MaxSummaries != nil:
		return *s.MaxSummaries
	case s.Strategy == PeriodicSummary:
		return DefaultMaxSummaries
	}
	return -1
}

// ErrNoRoom is returned when what every request carries leaves no room in the
// window to work in.
var ErrNoRoom = errors.New("the context window is too small")

// Fits checks that what no compaction can take away (system text, tools and
// task) leaves room to work in: below the share of the window at which
// compaction would be due all the time. The error wraps [ErrNoRoom].
func (s Settings) Fits(floor, window int) error {
	if s.Off || !s.Due(floor, window) {
		return nil
	}
	return fmt.Errorf("%w: system text, tools and task take about %d tokens, and compaction begins at %.0f of %d; "+
		"raise context_window, shorten the prompt, or offer fewer tools", ErrNoRoom, floor, s.ratio()*float64(window), window)
}

// SummaryTokens is the most that a summary may take of a window.
func SummaryTokens(window int) int { return min(max(window/10, 64), 4096) }
