package budget

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// None in the place of a limit takes the limit away, where that makes sense: a
// number of retries is none by being 0.
const None = -1

// setting is one limit: its name, where it is kept, and what it bounds with the
// default in brackets.
type setting struct {
	name  string
	place func(*Limits) any
	about string
}

// value is the limit as a number; false for a number of retries.
func (s setting) value(l *Limits) (n float64, ok bool) {
	switch p := s.place(l).(type) {
	case *int:
		return float64(*p), true
	case *int64:
		return float64(*p), true
	case *float64:
		return *p, true
	}
	return 0, false
}

// settings are the limits by the names that owners know them by, in the order
// of the fields.
var settings = [...]setting{
	{"max_cycles", func(l *Limits) any { return &l.MaxCycles },
		"Cycles of a run: a model call with its tool calls each (50)."},
	{"usd_per_run", func(l *Limits) any { return &l.USDPerRun },
		"What the run may cost in USD (5.00, unless max_total_cost is set)."},
	{"max_model_turns", func(l *Limits) any { return &l.MaxModelTurns },
		"Answers of the model."},
	{"max_tool_calls", func(l *Limits) any { return &l.MaxToolCalls },
		"Tool calls that are started (200)."},
	{"max_parallel_tool_calls", func(l *Limits) any { return &l.MaxParallelTools },
		"Tool calls at a time (8)."},
	{"max_wall_time_seconds", func(l *Limits) any { return &l.MaxWallSeconds },
		"Seconds that the run goes, without those that it is parked (3600)."},
	{"max_input_tokens", func(l *Limits) any { return &l.MaxInputTokens },
		"Tokens of all requests together."},
	{"max_output_tokens", func(l *Limits) any { return &l.MaxOutputTokens },
		"Tokens of all answers together."},
	{"max_total_cost", func(l *Limits) any { return &l.MaxTotalCost },
		"What the run may cost in USD, as usd_per_run; the smaller one holds."},
	{"max_tool_result_chars", func(l *Limits) any { return &l.MaxResultChars },
		"Characters of one tool result that the model sees (30000)."},
	{"max_retries_per_model_call", func(l *Limits) any { return &l.MaxModelRetries },
		"Further attempts at one model call (4)."},
	{"max_retries_per_tool_call", func(l *Limits) any { return &l.MaxToolRetries },
		"Further attempts at one tool call that may safely run twice (4)."},
	{"max_no_progress_seconds", func(l *Limits) any { return &l.MaxIdleSeconds },
		"Seconds without a text or a tool result that is new; a call that takes longer is ended."},
	{"max_context_tokens_per_request", func(l *Limits) any { return &l.MaxRequestTokens },
		"Tokens of one request."},
}

// Settings are the names of the limits.
func Settings() []string {
	names := make([]string, len(settings))
	for i, s := range settings {
		names[i] = s.name
	}
	return names
}

// About says what a limit bounds, and its default in brackets, or "" for what is
// no limit.
func About(name string) string {
	for _, s := range settings {
		if s.name == name {
			return s.about
		}
	}
	return ""
}

// Stopping are the names of the limits that end a run with a reason of their own.
// The cycle cap is none of them: on_limit says what reaching it means.
func Stopping() []string {
	return []string{
		"usd_per_run", "max_model_turns", "max_tool_calls", "max_wall_time_seconds", "max_input_tokens", "max_output_tokens",
		"max_total_cost", "max_no_progress_seconds", "max_context_tokens_per_request",
	}
}

// withoutNone has 0 for each limit that the owner took away.
func (l Limits) withoutNone() Limits {
	for _, s := range settings {
		if n, ok := s.value(&l); ok && n < 0 {
			_ = l.Set(s.name, None) // what is a number can be none
		}
	}
	return l
}

// Lacks names the limits that a careful owner would set and that are not there.
func (l Limits) Lacks() []string {
	var names []string
	if cost, _ := l.CostCap(); cost == 0 {
		names = append(names, "usd_per_run")
	}
	defaults := Limits{}.WithDefaults()
	for _, s := range settings {
		is, _ := s.value(&l)
		if by, _ := s.value(&defaults); by > 0 && is == 0 {
			names = append(names, s.name)
		}
	}
	return names
}

// Errors of [Limits.Set].
var (
	// ErrUnknownSetting: there is no limit of that name.
	ErrUnknownSetting = errors.New("budget: unknown setting")
	// ErrBadValue: the limit cannot have that value.
	ErrBadValue = errors.New("budget: bad value")
)

// UnpricedError is returned for a cap in money that could not be kept, because
// nobody knows what a call of these models may cost (PRODUCT 6).
type UnpricedError struct {
	Models []string
	USD    float64
}

// Error names the models and the cap.
func (e *UnpricedError) Error() string {
	return fmt.Sprintf("no price is known for %s, so the cap of USD %.2f could not be kept", strings.Join(e.Models, ", "), e.USD)
}

// Uncounted tells an owner of models whose price is not known what no cap in
// money can do about them; it is empty where there are none.
func (l Limits) Uncounted(models []string) string {
	names := strings.Join(models, ", ")
	switch usd, _ := l.CostCap(); {
	case len(models) == 0:
		return ""
	case usd > 0:
		return fmt.Sprintf("no price is known for %s, so the default cap of USD %.2f cannot stop its calls", names, usd)
	}
	return "no price is known for " + names + ", so the run's cost is not counted in full"
}

// Set replaces the limit with the given JSON name. A value must be finite and
// above 0, and whole where the limit counts something; a number of retries may
// be 0, and [None] takes any other limit away. On an error nothing has changed.
func (l *Limits) Set(setting string, value float64) error {
	for _, s := range settings {
		if s.name != setting {
			continue
		}
		switch p := s.place(l).(type) {
		case *float64:
			return setLimit(p, setting, value)
		case *int:
			return setWhole(p, setting, value)
		case *int64:
			return setWhole(p, setting, value)
		case **int:
			return setRetries(p, setting, value)
		}
	}
	return fmt.Errorf("%w: %q", ErrUnknownSetting, setting)
}

func setLimit(p *float64, setting string, value float64) error {
	switch {
	case value == None:
		*p = 0
	case !(value > 0) || math.IsInf(value, 0):
		return fmt.Errorf("%w: %s cannot be %v; it must be above 0, or none", ErrBadValue, setting, value)
	default:
		*p = value
	}
	return nil
}

// maxWhole is the largest count that a float64 holds exactly.
const maxWhole = 1 << 53

func whole(setting string, value float64) error {
	if value != math.Trunc(value) || math.Abs(value) > maxWhole {
		return fmt.Errorf("%w: %s must be a whole number, not %v", ErrBadValue, setting, value)
	}
	return nil
}

func setWhole[T int | int64](p *T, setting string, value float64) error {
	if err := whole(setting, value); err != nil {
		return err
	}
	n := float64(*p)
	if err := setLimit(&n, setting, value); err != nil {
		return err
	}
	*p = T(n)
	return nil
}

func setRetries(p **int, setting string, value float64) error {
	if err := whole(setting, value); err != nil {
		return err
	}
	if value < 0 {
		return fmt.Errorf("%w: %s cannot be %v; it must be 0 or above", ErrBadValue, setting, value)
	}
	*p = new(int(value))
	return nil
}
