// Package budget holds the limits of a run and what it has spent: pure
// arithmetic, so that the same events always give the same verdict.
package budget

import "time"

// Limits are the hard limits of a run; 0 means no limit. Before
// [Limits.WithDefaults] it means that the owner has not said, and a negative
// value that there is to be none. The JSON names are the settings' names, which
// a stop reports.
type Limits struct {
	MaxCycles        int     `json:"max_cycles,omitempty"`
	USDPerRun        float64 `json:"usd_per_run,omitempty"`
	MaxModelTurns    int     `json:"max_model_turns,omitempty"`
	MaxToolCalls     int     `json:"max_tool_calls,omitempty"`
	MaxParallelTools int     `json:"max_parallel_tool_calls,omitempty"`
	MaxWallSeconds   float64 `json:"max_wall_time_seconds,omitempty"`
	MaxInputTokens   int64   `json:"max_input_tokens,omitempty"`
	MaxOutputTokens  int64   `json:"max_output_tokens,omitempty"`
	MaxTotalCost     float64 `json:"max_total_cost,omitempty"`
	MaxResultChars   int     `json:"max_tool_result_chars,omitempty"`
	MaxModelRetries  *int    `json:"max_retries_per_model_call,omitempty"`
	MaxToolRetries   *int    `json:"max_retries_per_tool_call,omitempty"`
	// MaxIdleSeconds bounds the time without anything new: a tool result or a
	// text that was not there before (FIELD F2). Half a text is none yet.
	MaxIdleSeconds float64 `json:"max_no_progress_seconds,omitempty"`
	// MaxRequestTokens bounds the context of a single request (FIELD F2).
	MaxRequestTokens int64 `json:"max_context_tokens_per_request,omitempty"`
}

// The defaults of PRODUCT 6.
const (
	DefaultMaxCycles        = 50
	DefaultUSDPerRun        = 5.00
	DefaultMaxToolCalls     = 200
	DefaultMaxParallelTools = 8
	DefaultMaxWallSeconds   = 3600
	DefaultMaxResultChars   = 30_000
	DefaultModelCalls       = 5
	DefaultToolRetries      = 4
)

// WithDefaults fills what is not set with the careful owner's choice, and takes
// away what the owner wants to be without a limit. It is meant to be called
// once: what it took away would be filled again.
func (l Limits) WithDefaults() Limits {
	setDefault(&l.MaxCycles, DefaultMaxCycles)
	setDefault(&l.MaxToolCalls, DefaultMaxToolCalls)
	setDefault(&l.MaxParallelTools, DefaultMaxParallelTools)
	setDefault(&l.MaxWallSeconds, DefaultMaxWallSeconds)
	setDefault(&l.MaxResultChars, DefaultMaxResultChars)
	return l.withoutNone()
}

func setDefault[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

// CostCap is the tighter of the two money limits and the setting it came
// from, or 0.
func (l Limits) CostCap() (limit float64, setting string) {
	switch {
	case l.USDPerRun > 0 && (l.MaxTotalCost <= 0 || l.USDPerRun <= l.MaxTotalCost):
		return l.USDPerRun, "usd_per_run"
	case l.MaxTotalCost > 0:
		return l.MaxTotalCost, "max_total_cost"
	}
	return 0, ""
}

// ModelCalls is how many calls one model request may take in total: the first
// and its retries (ALF-44, HAR-49).
func (l Limits) ModelCalls() int {
	if l.MaxModelRetries != nil {
		return max(*l.MaxModelRetries, 0) + 1
	}
	return DefaultModelCalls
}

// ToolRetries is how many more attempts one tool call may take after the first
// (HAR-50).
func (l Limits) ToolRetries() int {
	if l.MaxToolRetries != nil {
		return max(*l.MaxToolRetries, 0)
	}
	return DefaultToolRetries
}

// Spent is what a run has used so far.
type Spent struct {
	Cycles int
	// ModelCalls counts every attempt, Turns the ones that gave an answer.
	ModelCalls int
	Turns      int
	// ToolCalls counts calls that were started, however often each was.
	ToolCalls int
	Input     int64
	Output    int64
	USD       float64
	// Active is the time the run has been going; parked time is left out.
	Active time.Duration
	// Idle is the part of Active since the run last brought anything new.
	Idle time.Duration
}

// BeforeModelCall returns the setting that forbids another model call, or "".
// A limit that is reached exactly is used up.
func (l Limits) BeforeModelCall(s Spent) string {
	costCap, costSetting := l.CostCap()
	setting := l.OutOfTime(s)
	switch {
	case setting != "":
		return setting
	case costCap > 0 && s.USD >= costCap:
		return costSetting
	case l.MaxModelTurns > 0 && s.Turns >= l.MaxModelTurns:
		return "max_model_turns"
	case l.MaxInputTokens > 0 && s.Input >= l.MaxInputTokens:
		return "max_input_tokens"
	case l.MaxOutputTokens > 0 && s.Output >= l.MaxOutputTokens:
		return "max_output_tokens"
	}
	return ""
}

// BeforeToolCall returns the setting that forbids another tool call, or "".
func (l Limits) BeforeToolCall(s Spent) string {
	if l.MaxToolCalls > 0 && s.ToolCalls >= l.MaxToolCalls {
		return "max_tool_calls"
	}
	return l.OutOfTime(s)
}

// OutOfTime returns the limit on time that is used up, or "".
func (l Limits) OutOfTime(s Spent) string {
	switch {
	case l.MaxWallSeconds > 0 && s.Active >= seconds(l.MaxWallSeconds):
		return "max_wall_time_seconds"
	case l.Stalled(s):
		return "max_no_progress_seconds"
	}
	return ""
}

// Stalled says that nothing new has come for as long as the limits allow.
func (l Limits) Stalled(s Spent) bool {
	return l.MaxIdleSeconds > 0 && s.Idle >= seconds(l.MaxIdleSeconds)
}

// Remaining is how much longer the run may go if nothing new comes of it, and
// the setting that allows no more; "" where no limit does.
func (l Limits) Remaining(s Spent) (left time.Duration, setting string) {
	if l.MaxWallSeconds > 0 {
		left, setting = seconds(l.MaxWallSeconds)-s.Active, "max_wall_time_seconds"
	}
	if l.MaxIdleSeconds > 0 {
		if idle := seconds(l.MaxIdleSeconds) - s.Idle; setting == "" || idle < left {
			left, setting = idle, "max_no_progress_seconds"
		}
	}
	return left, setting
}

// seconds is a limit on time in whole microseconds, as the times of events are:
// what a limit has ended has reached it.
func seconds(limit float64) time.Duration {
	return time.Duration(limit * float64(time.Second)).Truncate(time.Microsecond)
}
