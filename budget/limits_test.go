package budget_test

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/budget"
)

// rows: HAR-10..13, HAR-41, HAR-44..47, ALDO-36
func TestALimitThatIsReachedExactlyIsUsedUp(t *testing.T) {
	for _, tt := range []struct {
		name   string
		limits budget.Limits
		spent  budget.Spent
		want   string
	}{
		{"no limit", budget.Limits{}, budget.Spent{Turns: 1e6, Input: 1e12, USD: 1e6, Active: 1e6 * time.Hour}, ""},
		{"money below", budget.Limits{USDPerRun: 2}, budget.Spent{USD: 1.999999}, ""},
		{"money at", budget.Limits{USDPerRun: 2}, budget.Spent{USD: 2}, "usd_per_run"},
		{"total cost", budget.Limits{MaxTotalCost: 2}, budget.Spent{USD: 2}, "max_total_cost"},
		{"the tighter of two caps", budget.Limits{USDPerRun: 3, MaxTotalCost: 2}, budget.Spent{USD: 2}, "max_total_cost"},
		{"the other way round", budget.Limits{USDPerRun: 2, MaxTotalCost: 3}, budget.Spent{USD: 2}, "usd_per_run"},
		{"turns", budget.Limits{MaxModelTurns: 3}, budget.Spent{Turns: 3}, "max_model_turns"},
		{"attempts are no turns", budget.Limits{MaxModelTurns: 3}, budget.Spent{Turns: 2, ModelCalls: 9}, ""},
		{"input", budget.Limits{MaxInputTokens: 10}, budget.Spent{Input: 10}, "max_input_tokens"},
		{"output", budget.Limits{MaxOutputTokens: 10}, budget.Spent{Output: 10}, "max_output_tokens"},
		{"wall time", budget.Limits{MaxWallSeconds: 1.5}, budget.Spent{Active: 1500 * time.Millisecond}, "max_wall_time_seconds"},
		{"wall time below", budget.Limits{MaxWallSeconds: 1.5}, budget.Spent{Active: 1499 * time.Millisecond}, ""},
		{"tool calls do not forbid a model call", budget.Limits{MaxToolCalls: 1}, budget.Spent{ToolCalls: 1}, ""},
	} {
		if got := tt.limits.BeforeModelCall(tt.spent); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	limits := budget.Limits{MaxToolCalls: 2, MaxWallSeconds: 10}
	for spent, want := range map[budget.Spent]string{
		{ToolCalls: 1}: "", {ToolCalls: 2}: "max_tool_calls", {Active: 10 * time.Second}: "max_wall_time_seconds",
	} {
		if got := limits.BeforeToolCall(spent); got != want {
			t.Errorf("before a tool call with %+v: %q, want %q", spent, got, want)
		}
	}
}

func TestDefaultsAreACarefulOwners(t *testing.T) {
	got := budget.Limits{}.WithDefaults()
	want := budget.Limits{MaxCycles: 50, MaxToolCalls: 200, MaxParallelTools: 8, MaxWallSeconds: 3600, MaxResultChars: 30_000}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	owners := budget.Limits{MaxCycles: 3, MaxToolCalls: 1, MaxParallelTools: 2, MaxWallSeconds: 5, MaxResultChars: 9}
	if diff := cmp.Diff(owners, owners.WithDefaults()); diff != "" {
		t.Errorf("a default replaces what the owner said: %s", diff)
	}
}

func TestMissingRecommendedLimitsAreListed(t *testing.T) {
	all := []string{"usd_per_run", "max_cycles", "max_tool_calls", "max_parallel_tool_calls", "max_wall_time_seconds", "max_tool_result_chars"}
	if diff := cmp.Diff(all, budget.Limits{}.Lacks()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(all[:1], budget.Limits{}.WithDefaults().Lacks()); diff != "" {
		t.Error(diff)
	}
	for _, l := range []budget.Limits{{USDPerRun: 1}, {MaxTotalCost: 1}} {
		if got := l.WithDefaults().Lacks(); got != nil {
			t.Errorf("with a limit on money: %v", got)
		}
	}
}

func TestModelsWithoutAPriceAreListed(t *testing.T) {
	for _, tt := range []struct {
		limits budget.Limits
		models []string
		want   string
	}{
		{budget.Limits{USDPerRun: 5}, nil, ""},
		{budget.Limits{USDPerRun: 5}, []string{"a", "b"}, "no price is known for a, b, so the default cost limit of USD 5.00 cannot stop its calls"},
		{budget.Limits{}, []string{"a"}, "no price is known for a, so the run's cost is not counted in full"},
	} {
		if got := tt.limits.Uncounted(tt.models); got != tt.want {
			t.Errorf("%v: %q", tt.models, got)
		}
	}
}

func TestALimitOnEachThingAloneIsNotUsedUp(t *testing.T) {
	spent := budget.Spent{Cycles: 3, ToolCalls: 9}
	for name, want := range map[string]float64{"max_parallel_tool_calls": 0, "max_cycles": 3, "max_tool_calls": 9} {
		s, known := budget.Find(name)
		if got := s.Used(spent); !known || got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestModelCallsCountTheFirstOne(t *testing.T) {
	for retries, want := range map[*int]int{nil: 5, new(0): 1, new(4): 5, new(-3): 1} {
		if got := (budget.Limits{MaxModelRetries: retries}).ModelCalls(); got != want {
			t.Errorf("%v retries: %d calls, want %d", retries, got, want)
		}
	}
}

func TestRemaining(t *testing.T) {
	spent := budget.Spent{Active: 4 * time.Second, Idle: 3 * time.Second}
	for _, tt := range []struct {
		name    string
		limits  budget.Limits
		left    time.Duration
		setting string
	}{
		{"no limit", budget.Limits{}, 0, ""},
		{"the wall time", budget.Limits{MaxWallSeconds: 10}, 6 * time.Second, "max_wall_time_seconds"},
		{"the time without anything new", budget.Limits{MaxIdleSeconds: 10}, 7 * time.Second, "max_no_progress_seconds"},
		{"what comes first, the wall time", budget.Limits{MaxWallSeconds: 10, MaxIdleSeconds: 10}, 6 * time.Second, "max_wall_time_seconds"},
		{"what comes first, the other", budget.Limits{MaxWallSeconds: 100, MaxIdleSeconds: 3.5}, time.Second / 2, "max_no_progress_seconds"},
		{"one that is used up", budget.Limits{MaxWallSeconds: 100, MaxIdleSeconds: 2}, -time.Second, "max_no_progress_seconds"},
	} {
		if left, setting := tt.limits.Remaining(spent); left != tt.left || setting != tt.setting {
			t.Errorf("%s: %v of %q, want %v of %q", tt.name, left, setting, tt.left, tt.setting)
		}
	}
}

// Events have times in whole microseconds, limits are as fine as their owner
// likes: what has waited for the time that remains has used the limit up.
func TestAfterTheRemainingTimeALimitIsUsedUp(t *testing.T) {
	for _, seconds := range []float64{1.0 / 3, 0.0123456789, 0.1 + 0.2, 1e-3, 4.35} {
		for _, limits := range []budget.Limits{{MaxWallSeconds: seconds}, {MaxIdleSeconds: seconds}} {
			left, setting := limits.Remaining(budget.Spent{})
			waited := left.Truncate(time.Microsecond)
			if got := limits.OutOfTime(budget.Spent{Active: waited, Idle: waited}); got != setting {
				t.Errorf("%v s of %s: %q after all of the time that remains", seconds, setting, got)
			}
		}
	}
}

// A limit that has a default can be taken away, and then stays away.
func TestEveryLimitButTheRetriesCanBeTakenAway(t *testing.T) {
	kind := reflect.TypeFor[budget.Limits]()
	for i, setting := range budget.Settings() {
		if kind.Field(i).Type.Kind() == reflect.Pointer {
			continue
		}
		raised := budget.Limits{}.WithDefaults()
		if err := raised.Set(setting, 7); err != nil {
			t.Fatal(err)
		}
		if err := raised.Set(setting, budget.None); err != nil {
			t.Errorf("%s: %v", setting, err)
		}
		if f := reflect.ValueOf(raised).Field(i); !f.IsZero() {
			t.Errorf("%s was taken away from a run and is %v", setting, f)
		}
		var declared budget.Limits
		switch f := reflect.ValueOf(&declared).Elem().Field(i); f.Kind() {
		case reflect.Float64:
			f.SetFloat(budget.None)
		default:
			f.SetInt(budget.None)
		}
		if f := reflect.ValueOf(declared.WithDefaults()).Field(i); !f.IsZero() {
			t.Errorf("%s was declared to be none and is %v", setting, f)
		}
	}
}

// Which of two limits is named does not depend on how it is asked for.
func TestOfTwoEqualLimitsOneIsNamed(t *testing.T) {
	money := budget.Limits{USDPerRun: 2, MaxTotalCost: 2}
	if limit, setting := money.CostCap(); limit != 2 || setting != "usd_per_run" {
		t.Errorf("%s of %v", setting, limit)
	}
	if limit, setting := (budget.Limits{}).CostCap(); limit != 0 || setting != "" {
		t.Errorf("no limit is %s of %v", setting, limit)
	}
	seconds := budget.Limits{MaxWallSeconds: 10, MaxIdleSeconds: 10}
	spent := budget.Spent{Active: 4 * time.Second, Idle: 4 * time.Second}
	if left, setting := seconds.Remaining(spent); left != 6*time.Second || setting != "max_wall_time_seconds" {
		t.Errorf("%v of %s are left", left, setting)
	}
}

func TestALimitThatWasTakenAwayBoundsNothing(t *testing.T) {
	var declared budget.Limits
	for _, setting := range budget.Settings() {
		if err := declared.Set(setting, 1); err != nil {
			t.Fatal(err)
		}
		// A number of retries is none by being 0, and bounds nothing here.
		if err := declared.Set(setting, budget.None); err != nil && !strings.Contains(setting, "retries") {
			t.Fatal(err)
		}
	}
	much := budget.Spent{
		Cycles: 1e6, ModelCalls: 1e6, Turns: 1e6, ToolCalls: 1e6, Input: 1e12, Output: 1e12, USD: 1e9, Active: 1e6 * time.Hour, Idle: 1e6 * time.Hour,
	}
	if s := declared.BeforeToolCall(much); s != "" {
		t.Errorf("a tool call is refused for %s", s)
	}
	if a, refusal := declared.Admit(much, budget.Amount{USD: 1e6}, budget.Call{Input: 1e9, Likely: 1e9, Output: 1e9, Price: thousands}); refusal != (budget.Refusal{}) {
		t.Errorf("a model call of %+v is refused: %+v", a, refusal)
	}
	if _, setting := declared.Remaining(much); setting != "" {
		t.Errorf("the run has an end, by %s", setting)
	}
}

func TestANumberOfRetriesCanBeNone(t *testing.T) {
	var l budget.Limits
	for _, setting := range []string{"max_retries_per_model_call", "max_retries_per_tool_call"} {
		if err := l.Set(setting, 0); err != nil {
			t.Error(err)
		}
	}
	if l.ModelCalls() != 1 || l.ToolRetries() != 0 {
		t.Errorf("%d model calls and %d retries of a tool call", l.ModelCalls(), l.ToolRetries())
	}
}

func TestACountCanBeAnyThatItsNumberHoldsExactly(t *testing.T) {
	var l budget.Limits
	if err := l.Set("max_input_tokens", 1<<53); err != nil || l.MaxInputTokens != 1<<53 {
		t.Errorf("%d: %v", l.MaxInputTokens, err)
	}
	if err := l.Set("max_input_tokens", 1<<53+2); !errors.Is(err, budget.ErrBadValue) {
		t.Errorf("beyond that: %v", err)
	}
}

// TestEverySettingCanBeRaised walks the JSON names, so that a new limit cannot
// be forgotten in Set.
func TestEverySettingCanBeRaised(t *testing.T) {
	kind := reflect.TypeFor[budget.Limits]()
	for i := range kind.NumField() {
		name, _, _ := strings.Cut(kind.Field(i).Tag.Get("json"), ",")
		var l budget.Limits
		if err := l.Set(name, 7); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		setting, _ := budget.Find(name)
		if n, number := setting.Value(l); number && n != 7 || setting.Field() != kind.Field(i).Name {
			t.Errorf("%s is %v, of the field %s", name, n, setting.Field())
		}
		raw, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		if want := `{"` + name + `":7}`; string(raw) != want {
			t.Errorf("got %s, want %s", raw, want)
		}
	}
}

func TestABadRaiseChangesNothing(t *testing.T) {
	for _, tt := range []struct {
		setting string
		value   float64
		want    error
	}{
		{"max_patience", 1, budget.ErrUnknownSetting},
		{"", 1, budget.ErrUnknownSetting},
		{"max_cycles", 2.5, budget.ErrBadValue},
		{"max_cycles", 1e300, budget.ErrBadValue},
		{"max_retries_per_model_call", 0.5, budget.ErrBadValue},
		{"max_cycles", 0, budget.ErrBadValue},
		{"max_cycles", -2, budget.ErrBadValue},
		{"max_retries_per_model_call", budget.None, budget.ErrBadValue},
		{"usd_per_run", 0, budget.ErrBadValue},
		{"usd_per_run", -0.5, budget.ErrBadValue},
		{"usd_per_run", math.NaN(), budget.ErrBadValue},
		{"usd_per_run", math.Inf(1), budget.ErrBadValue},
	} {
		l := budget.Limits{MaxCycles: 3, USDPerRun: 1}
		if err := l.Set(tt.setting, tt.value); !errors.Is(err, tt.want) {
			t.Errorf("%s = %v: %v", tt.setting, tt.value, err)
		}
		if diff := cmp.Diff(budget.Limits{MaxCycles: 3, USDPerRun: 1}, l); diff != "" {
			t.Errorf("%s = %v: %s", tt.setting, tt.value, diff)
		}
	}
}

// A limit's description names its default.
func TestEveryLimitIsDescribedWithItsDefault(t *testing.T) {
	defaults := budget.Limits{USDPerRun: budget.DefaultUSDPerRun}.WithDefaults()
	defaults.MaxModelRetries, defaults.MaxToolRetries = new(budget.DefaultModelCalls-1), new(budget.DefaultToolRetries)
	raw, err := json.Marshal(defaults)
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]float64
	if err := json.Unmarshal(raw, &values); err != nil {
		t.Fatal(err)
	}
	bracket := regexp.MustCompile(`\(([0-9.]+)`)
	for _, setting := range budget.Settings() {
		limit, _ := budget.Find(setting)
		about, said := limit.About, 0.0
		if m := bracket.FindStringSubmatch(about); m != nil {
			said, _ = strconv.ParseFloat(m[1], 64)
		}
		if about == "" || said != values[setting] {
			t.Errorf("%s: %q, and the default is %v", setting, about, values[setting])
		}
	}
	if _, known := budget.Find("max_patience"); known {
		t.Error("something is said of what is no limit")
	}
}
