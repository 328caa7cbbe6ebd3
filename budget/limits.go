// Package budget defines the limits of a run and what it has spent: pure
// arithmetic, so that the same events always give the same result.
package budget

import "time"

// Limits are the limits of a run; 0 means no limit. Before
// [Limits.WithDefaults], 0 means that the limit is not set, and a negative
// value removes it. The JSON names are the names of the settings, which a stop
// reports.
type Limits struct {
	MaxCycles        int     `json:"max_cycles,omitempty" yaml:"-"`
	USDPerRun        float64 `json:"usd_per_run,omitempty" yaml:"-"`
	MaxModelTurns    int     `json:"max_model_turns,omitempty" yaml:"max_model_turns,omitempty" none:"yes"`
	MaxToolCalls     int     `json:"max_tool_calls,omitempty" yaml:"max_tool_calls,omitempty" none:"yes"`
	MaxParallelTools int     `json:"max_parallel_tool_calls,omitempty" yaml:"max_parallel_tool_calls,omitempty" none:"yes"`
	MaxWallSeconds   float64 `json:"max_wall_time_seconds,omitempty" yaml:"max_wall_time_seconds,omitempty" none:"yes"`
	MaxInputTokens   int64   `json:"max_input_tokens,omitempty" yaml:"max_input_tokens,omitempty" none:"yes"`
	MaxOutputTokens  int64   `json:"max_output_tokens,omitempty" yaml:"max_output_tokens,omitempty" none:"yes"`
	MaxTotalCost     float64 `json:"max_total_cost,omitempty" yaml:"max_total_cost,omitempty" none:"yes"`
	MaxResultChars   int     `json:"max_tool_result_chars,omitempty" yaml:"max_tool_result_chars,omitempty" none:"yes"`
	MaxModelRetries  *int    `json:"max_retries_per_model_call,omitempty" yaml:"max_retries_per_model_call,omitempty"`
	MaxToolRetries   *int    `json:"max_retries_per_tool_call,omitempty" yaml:"max_retries_per_tool_call,omitempty"`
	// MaxIdleSeconds limits the time without a new tool result or a new text. A
	// text counts when it is complete.
	MaxIdleSeconds float64 `json:"max_no_progress_seconds,omitempty" yaml:"max_no_progress_seconds,omitempty" none:"yes"`
	// MaxRequestTokens limits the context of a single request.
	MaxRequestTokens int64 `json:"max_context_tokens_per_request,omitempty" yaml:"max_context_tokens_per_request,omitempty" none:"yes"`
}

// Split separates the limits on money and time, which apply to a tree of runs as a
// whole, from those that apply to each run.
func (l Limits) Split() (ofTree, ofEach Limits) {
	ofTree = Limits{USDPerRun: l.USDPerRun, MaxWallSeconds: l.MaxWallSeconds, MaxTotalCost: l.MaxTotalCost}
	l.USDPerRun, l.MaxWallSeconds, l.MaxTotalCost = 0, 0, 0
	return ofTree, l
}

// SplitSums is [Limits.Split] for a tree whose tokens and whose time without progress
// are also limited as a whole.
func (l Limits) SplitSums() (ofTree, ofEach Limits) {
	ofTree, ofEach = l.Split()
	ofTree.MaxInputTokens, ofTree.MaxOutputTokens, ofTree.MaxIdleSeconds = l.MaxInputTokens, l.MaxOutputTokens, l.MaxIdleSeconds
	ofEach.MaxInputTokens, ofEach.MaxOutputTokens, ofEach.MaxIdleSeconds = 0, 0, 0
	return ofTree, ofEach
}

// The names of limits with special rules.
const (
	CycleCap      = "max_cycles"
	CostPerRun    = "usd_per_run"
	TotalCost     = "max_total_cost"
	WallTime      = "max_wall_time_seconds"
	IdleTime      = "max_no_progress_seconds"
	InputTokens   = "max_input_tokens"
	OutputTokens  = "max_output_tokens"
	RequestTokens = "max_context_tokens_per_request"
)

// The defaults that are not in the table.
const (
	DefaultUSDPerRun   = 5.00
	DefaultModelCalls  = 5
	DefaultToolRetries = 4
)

const many = 1e9

// settings are the limits, in the order of the fields.
var settings = [...]Setting{
	{
		Name: CycleCap, of: func(l Limits) float64 { return float64(l.MaxCycles) }, used: func(s Spent) float64 { return float64(s.Cycles) },
		Kind: Count, Unit: "cycles", Default: 50, Flag: "max-cycles", Example: "30",
		About: "Cycles of a run: a model call with its tool calls each (50).",
	},
	{
		Name: CostPerRun, of: func(l Limits) float64 { return l.USDPerRun }, used: func(s Spent) float64 { return s.USD },
		Kind: Money, Stops: true, Flag: "budget", Example: "2.00",
		About: "Cost of the run in USD (5.00, unless max_total_cost is set).",
	},
	{
		Name: "max_model_turns", of: func(l Limits) float64 { return float64(l.MaxModelTurns) }, used: func(s Spent) float64 { return float64(s.Turns) },
		Kind: Count, Unit: "answers", Low: 1, High: many, Stops: true, forbids: modelCalls, Example: "40",
		About: "Model calls that were answered.",
	},
	{
		Name: "max_tool_calls", of: func(l Limits) float64 { return float64(l.MaxToolCalls) }, used: func(s Spent) float64 { return float64(s.ToolCalls) },
		Kind: Count, Unit: "tool calls", Low: 1, High: many, Default: 200, Stops: true, forbids: toolCalls, Example: "100",
		About: "Tool calls of the run (200).",
	},
	{
		Name: "max_parallel_tool_calls", of: func(l Limits) float64 { return float64(l.MaxParallelTools) },
		Kind: Each, Low: 1, High: 1024, Default: 8, Example: "4",
		About: "Tool calls at the same time (8).",
	},
	{
		Name: WallTime, of: func(l Limits) float64 { return l.MaxWallSeconds }, used: func(s Spent) float64 { return s.Active.Seconds() },
		Kind: Time, Low: 0.001, High: many, Default: 3600, Stops: true, Flag: "timeout", Example: "600",
		About: "Wall time in seconds, without the time that the run is parked (3600).",
	},
	{
		Name: InputTokens, of: func(l Limits) float64 { return float64(l.MaxInputTokens) }, used: func(s Spent) float64 { return float64(s.Input) },
		Kind: Tokens, Unit: "tokens in", Low: 1, Stops: true, forbids: modelCalls, Example: "2000000",
		About: "Input tokens of all requests.",
	},
	{
		Name: OutputTokens, of: func(l Limits) float64 { return float64(l.MaxOutputTokens) }, used: func(s Spent) float64 { return float64(s.Output) },
		Kind: Tokens, Unit: "tokens out", Low: 1, Stops: true, forbids: modelCalls, Example: "100000",
		About: "Output tokens of all answers.",
	},
	{
		Name: TotalCost, of: func(l Limits) float64 { return l.MaxTotalCost }, used: func(s Spent) float64 { return s.USD },
		Kind: Money, Stops: true, Example: "2.00",
		About: "Cost of the run in USD, as usd_per_run; the smaller of the two applies.",
	},
	{
		Name: "max_tool_result_chars", of: func(l Limits) float64 { return float64(l.MaxResultChars) },
		Kind: Each, Low: 1, High: 100_000_000, Default: 30_000, Example: "20000",
		About: "Characters of one tool result that the model sees (30000).",
	},
	{
		Name: "max_retries_per_model_call",
		Kind: Each, High: 100, Example: "2",
		About: "Retries of one model call (4).",
	},
	{
		Name: "max_retries_per_tool_call",
		Kind: Each, High: 100, Example: "0",
		About: "Retries of one tool call that is safe to repeat (4).",
	},
	{
		Name: IdleTime, of: func(l Limits) float64 { return l.MaxIdleSeconds }, used: func(s Spent) float64 { return s.Idle.Seconds() },
		Kind: Idle, Unit: "without progress", Low: 0.001, High: many, Stops: true, Example: "300",
		About: "Seconds without new text or a new tool result; a call that takes longer is stopped.",
	},
	{
		Name: RequestTokens, of: func(l Limits) float64 { return float64(l.MaxRequestTokens) },
		Kind: Each, Unit: "tokens a request", Low: 1, Stops: true, Example: "150000",
		About: "Input tokens of one request.",
	},
}

// WithDefaults sets the default of every limit that is not set, and removes
// those that are negative. Call it only once: a second call would set the
// defaults of the removed limits.
func (l Limits) WithDefaults() Limits {
	for _, s := range settings {
		switch n, number := s.Value(l); {
		case number && n < 0:
			_ = l.Set(s.Name, None) // None is valid for every number
		case number && n == 0 && s.Default > 0:
			_ = l.Set(s.Name, s.Default)
		}
	}
	return l
}

// CostCap returns the lower of the two cost limits and the name of its setting,
// or 0.
func (l Limits) CostCap() (limit float64, setting string) {
	switch {
	case l.USDPerRun > 0 && (l.MaxTotalCost <= 0 || l.USDPerRun <= l.MaxTotalCost):
		return l.USDPerRun, CostPerRun
	case l.MaxTotalCost > 0:
		return l.MaxTotalCost, TotalCost
	}
	return 0, ""
}

// ModelCalls returns how many calls one model request may take in total: the
// first and its retries.
func (l Limits) ModelCalls() int {
	if l.MaxModelRetries != nil {
		return max(*l.MaxModelRetries, 0) + 1
	}
	return DefaultModelCalls
}

// ToolRetries returns how many more attempts one tool call may make after the first.
func (l Limits) ToolRetries() int {
	if l.MaxToolRetries != nil {
		return max(*l.MaxToolRetries, 0)
	}
	return DefaultToolRetries
}

// Spent is what a run has used so far.
type Spent struct {
	Cycles int
	// ModelCalls counts all attempts, Turns those that returned an answer.
	ModelCalls int
	Turns      int
	// ToolCalls counts the calls that were started, each once, however many attempts it
	// made.
	ToolCalls int
	Input     int64
	Output    int64
	USD       float64
	// Active is the time that the run has been running, without parked time.
	Active time.Duration
	// Idle is the part of Active since the last progress.
	Idle time.Duration
}

// BeforeModelCall returns the setting that forbids another model call, or "". A limit
// that is reached exactly is used up.
func (l Limits) BeforeModelCall(s Spent) string {
	costCap, costSetting := l.CostCap()
	setting := l.OutOfTime(s)
	switch {
	case setting != "":
		return setting
	case costCap > 0 && s.USD >= costCap:
		return costSetting
	}
	return l.forbidden(s, modelCalls)
}

// BeforeToolCall returns the setting that forbids another tool call, or "".
func (l Limits) BeforeToolCall(s Spent) string {
	if setting := l.forbidden(s, toolCalls); setting != "" {
		return setting
	}
	return l.OutOfTime(s)
}

// forbidden returns the exhausted count that forbids a kind of call, or "".
func (l Limits) forbidden(s Spent, c calls) string {
	for i := range settings {
		if x := &settings[i]; x.forbids == c {
			if limit := x.of(l); limit > 0 && x.used(s) >= limit {
				return x.Name
			}
		}
	}
	return ""
}

// OutOfTime returns the exhausted limit on time, or "".
func (l Limits) OutOfTime(s Spent) string {
	switch {
	case l.MaxWallSeconds > 0 && s.Active >= seconds(l.MaxWallSeconds):
		return WallTime
	case l.Stalled(s):
		return IdleTime
	}
	return ""
}

// Stalled reports whether the time without progress has reached its limit.
func (l Limits) Stalled(s Spent) bool {
	return l.MaxIdleSeconds > 0 && s.Idle >= seconds(l.MaxIdleSeconds)
}

// Remaining returns how much longer the run may run without progress, and the setting
// that limits it; "" if none does.
func (l Limits) Remaining(s Spent) (left time.Duration, setting string) {
	if l.MaxWallSeconds > 0 {
		left, setting = seconds(l.MaxWallSeconds)-s.Active, WallTime
	}
	if l.MaxIdleSeconds > 0 {
		if idle := seconds(l.MaxIdleSeconds) - s.Idle; setting == "" || idle < left {
			left, setting = idle, IdleTime
		}
	}
	return left, setting
}

// seconds converts a limit on time to whole microseconds, the resolution of the times
// of events, so that an event at the limit has reached it.
func seconds(limit float64) time.Duration {
	return time.Duration(limit * float64(time.Second)).Truncate(time.Microsecond)
}

// AtLeast returns the lowest value of a refusal's setting with which the call would fit
// if nothing were reserved for other calls; in millionths of a dollar, milliseconds, or
// ones. It is 0 if no value helps, or the refusal lacks the numbers. Another limit may
// still refuse.
func (l Limits) AtLeast(r Refusal, s Spent) float64 {
	s.Active += r.After
	s.Idle += r.After
	if !l.refuses(r, s) {
		return 0
	}
	perUnit := 1.0
	switch setting, _ := Find(r.Setting); setting.Kind {
	case Money:
		perUnit = 1e6
	case Time, Idle:
		perUnit = float64(time.Second / time.Millisecond)
	}
	enough := func(n int64) bool {
		raised := l
		return raised.Set(r.Setting, float64(n)/perUnit) == nil && !raised.refuses(r, s)
	}
	low, high := int64(0), int64(1)<<43 // for a time, the longest that a duration can hold
	if !enough(high) {
		return 0
	}
	for high-low > 1 {
		if mid := low + (high-low)/2; enough(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return float64(high) / perUnit
}

// refuses reports whether the call still does not fit the setting of a refusal.
func (l Limits) refuses(r Refusal, s Spent) bool {
	if l.BeforeModelCall(s) == r.Setting || l.BeforeToolCall(s) == r.Setting {
		return true
	}
	if r.Call == (Call{}) {
		return false
	}
	_, refusal := l.Admit(s, Amount{}, r.Call)
	return refusal.Setting == r.Setting
}
