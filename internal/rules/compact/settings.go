package compact

import (
	"errors"
	"fmt"
	"slices"

	"github.com/pawlrun/pawl/llm"
)

// Strategy names a method of shortening a conversation.
type Strategy string

// The strategies. The empty strategy clears old tool results if that is enough, because
// it needs no model call. Otherwise the model summarizes the same messages as with
// [SummarizeOlder], but within the conversation, so that the provider reads the
// conversation from its cache.
const (
	// RollingWindow drops the oldest turns.
	RollingWindow Strategy = "rolling-window"
	// PeriodicSummary summarizes the older turns a limited number of times, and then
	// drops the oldest turns.
	PeriodicSummary Strategy = "periodic-summary"
	// SummarizeOlder summarizes all but the newest messages, in a separate request that
	// contains a transcript.
	SummarizeOlder Strategy = "summarize-older"
	// ClearResults replaces old results by stubs. Settings cannot select it; events
	// name it when clearing was enough.
	ClearResults Strategy = "clear-results"
)

// Measure names the source of a request's size.
type Measure string

// The measures. MeasureProvider uses the input tokens that the provider reported last
// and estimates only the messages after them. MeasureMessages estimates the
// conversation without the overhead of every request; compaction still keeps the whole
// request within its window.
const (
	MeasureEstimate Measure = "estimate"
	MeasureProvider Measure = "provider"
	MeasureMessages Measure = "messages"
)

// The default settings.
const (
	DefaultWindow       = 200_000
	DefaultRatio        = 0.8
	DefaultKeepMessages = 6
	DefaultKeepTurns    = 2
	DefaultMaxSummaries = 3
)

// Settings configure when and how a conversation is shortened. The zero value is the
// default of a plain agent.
type Settings struct {
	// Window is the context window in tokens; 0 means the model's.
	Window int `json:"context_window,omitempty"`
	// Off disables compaction.
	Off      bool     `json:"off,omitempty"`
	Strategy Strategy `json:"strategy,omitempty"`
	// Ratio is the share of the window above which compaction begins; 0 means 0.8. With
	// Inclusive it also begins at exactly that share.
	Ratio     float64 `json:"ratio,omitempty"`
	Inclusive bool    `json:"inclusive,omitempty"`
	Measure   Measure `json:"measure,omitempty"`
	// KeepTurns or KeepMessages is the number of turns or messages at the end that stay
	// unchanged; if both are 0, the strategy decides.
	KeepTurns    int `json:"keep_turns,omitempty"`
	KeepMessages int `json:"keep_messages,omitempty"`
	// MaxSummaries limits the summaries of a run; nil means three for [PeriodicSummary]
	// and no limit otherwise.
	MaxSummaries *int `json:"max_summaries,omitempty"`
	// SummaryRole is the role of the message with the summary: [llm.RoleUser] if empty,
	// or [llm.RoleSystem].
	SummaryRole llm.Role `json:"summary_role,omitempty"`
}

// Check validates settings that a program gives. The schema of the agent file validates
// those of a file.
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

// WindowFor returns the window to use for a model whose own window is model, or 0 if
// unknown. known is false if neither the settings nor the model give a window.
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

// Due reports whether a request of that many tokens needs compaction.
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

// summaries returns the maximum number of summaries of a run, or -1 for no limit.
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

// ErrNoRoom is returned when the fixed part of every request leaves no room in the
// window.
var ErrNoRoom = errors.New("the context window is too small")

// Fits checks that the part that compaction cannot remove (system text, tools and task)
// is below the size at which compaction begins; otherwise every request would need
// compaction. The error wraps [ErrNoRoom].
func (s Settings) Fits(floor, window int) error {
	if s.Off || !s.Due(floor, window) {
		return nil
	}
	return fmt.Errorf("%w: system text, tools and task take about %d tokens, and compaction begins at %.0f of %d; "+
		"raise context_window, shorten the prompt, or offer fewer tools", ErrNoRoom, floor, s.ratio()*float64(window), window)
}

// SummaryTokens returns the maximum size of a summary for a window.
func SummaryTokens(window int) int { return min(max(window/10, 64), 4096) }
