package launch_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal/memory"
)

// The run's first event lists every setting that removes a limit, and nothing else.
func TestALimitThatIsTakenAwayIsGoneAndSaid(t *testing.T) {
	gone := func(l budget.Limits, setting string) bool {
		switch setting {
		case "usd_per_run":
			cost, _ := l.CostCap()
			return cost == 0
		case "max_cycles":
			return l.MaxCycles == 0
		case "max_wall_time_seconds":
			return l.MaxWallSeconds == 0
		case "max_tool_calls":
			return l.MaxToolCalls == 0
		}
		t.Fatalf("no rule for %s", setting)
		return false
	}
	for _, tt := range []struct {
		name, file string
		change     func(*launch.Options)
		setting    string
	}{
		{"usd_per_run of the file", "model_policy: {primary: scripted/steps.yaml, budget: {usd_per_run: none}}", nil, "usd_per_run"},
		{"--no-budget", "", func(o *launch.Options) { o.NoBudget = true }, "usd_per_run"},
		{"--no-budget beside a cap of the file", "budgets: {max_total_cost: 2}", func(o *launch.Options) { o.NoBudget = true }, "usd_per_run"},
		{"max_cycles of the file", "max_cycles: none", nil, "max_cycles"},
		{"max_cycles of the iteration", "iteration: {max_cycles: none}", nil, "max_cycles"},
		{"--max-cycles none", "max_cycles: 3", func(o *launch.Options) { o.Limits = []launch.Limit{{Setting: budget.CycleCap, Value: budget.None}} }, "max_cycles"},
		{"wall time of the file", "budgets: {max_wall_time_seconds: none}", nil, "max_wall_time_seconds"},
		{"--timeout none", "", func(o *launch.Options) { o.Limits = []launch.Limit{{Setting: budget.WallTime, Value: budget.None}} }, "max_wall_time_seconds"},
		{"tool calls", "budgets: {max_tool_calls: none}", nil, "max_tool_calls"},
		{"--limit max_tool_calls=none", "budgets: {max_tool_calls: 3}", func(o *launch.Options) {
			o.Limits = []launch.Limit{{Setting: "max_tool_calls", Value: budget.None}}
		}, "max_tool_calls"},
		{"--limit usd_per_run=none", "", func(o *launch.Options) {
			o.Limits = []launch.Limit{{Setting: "usd_per_run", Value: budget.None}}
		}, "usd_per_run"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := options(t)
			if tt.change != nil {
				tt.change(&o)
			}
			started, cfg, _ := start(t, file(t, tt.file), o)
			if !gone(cfg.Limits, tt.setting) {
				t.Errorf("the limits are %+v", cfg.Limits)
			}
			said := func(w string) bool { return strings.HasPrefix(w, tt.setting+": removed") }
			if !slices.ContainsFunc(started.Warnings, said) {
				t.Errorf("nobody is told: %q", started.Warnings)
			}
		})
	}
	started, _, _ := start(t, file(t, ""), options(t))
	for _, w := range started.Warnings {
		if strings.HasPrefix(w, "taken away") {
			t.Errorf("a run with all its limits says %q", w)
		}
	}
}

func TestNudgesAreBoundedOutsideOfAnIteration(t *testing.T) {
	for _, tt := range []struct {
		file string
		want int
	}{
		{"on_no_tool_call: nudge", agent.DefaultMaxNudges},
		{"on_no_tool_call: nudge\nmax_nudges: 7", 7},
		{"on_no_tool_call: nudge\nmax_nudges: none", 0},
		{"iteration: {max_cycles: 9}", 0},
		{"iteration: {max_cycles: 9, max_nudges: 2}", 2},
	} {
		if _, cfg, _ := start(t, file(t, tt.file), options(t)); cfg.MaxNudges != tt.want {
			t.Errorf("%s: %d, want %d", tt.file, cfg.MaxNudges, tt.want)
		}
	}
}

func TestAContinuedRunMayHaveALimitTakenAway(t *testing.T) {
	store := memory.New(nil)
	started, _, env := start(t, file(t, "max_cycles: 1"), options(t))
	id, _ := run(t, store, started, env)
	next, env, err := launch.Continue(t.Context(), store, id, "", launch.Options{Flags: launch.Flags{Limits: []launch.Limit{{Setting: budget.CycleCap, Value: budget.None}}}, Host: launch.Host{Getenv: options(t).Getenv}})
	if err != nil {
		t.Fatal(err)
	}
	_, events := run(t, store, next, env)
	if got := outcome(t, events); !got.Completed {
		t.Errorf("ended with %+v", got)
	}
	if !slices.ContainsFunc(next.Warnings, func(w string) bool { return strings.HasPrefix(w, "max_cycles") }) {
		t.Errorf("warnings %q", next.Warnings)
	}
}

func TestAFlagChangesAnyLimitOfARun(t *testing.T) {
	for _, setting := range budget.Settings() {
		o := options(t)
		o.Limits = []launch.Limit{{Setting: setting, Value: 7}}
		_, cfg, _ := start(t, file(t, "budgets: {max_tool_calls: 3}"), o)
		var want budget.Limits
		if err := want.Set(setting, 7); err != nil {
			t.Fatal(err)
		}
		got, wanted := fields(t, cfg.Limits), fields(t, want)
		if got[setting] != wanted[setting] {
			t.Errorf("%s is %v", setting, got[setting])
		}
	}
	o := options(t)
	o.Limits = []launch.Limit{{Setting: "max_patience", Value: 7}}
	if _, _, err := launch.Agent(read(t, file(t, "")), "do it", o); !errors.Is(err, budget.ErrUnknownSetting) {
		t.Errorf("got %v", err)
	}
}

// fields returns the limits by name.
func fields(t *testing.T, l budget.Limits) map[string]any {
	t.Helper()
	raw, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// A run that continues another one may raise the limit at which that one ended.
func TestAContinuedRunMayHaveAnyLimitRaised(t *testing.T) {
	store := memory.New(nil)
	started, _, env := start(t, file(t, "budgets: {max_model_turns: 1}"), options(t))
	id, _ := run(t, store, started, env)
	raised := []launch.Limit{{Setting: "max_model_turns", Value: 9}}
	next, env, err := launch.Continue(t.Context(), store, id, "", launch.Options{Flags: launch.Flags{Limits: raised}, Host: launch.Host{Getenv: options(t).Getenv}})
	if err != nil {
		t.Fatal(err)
	}
	_, events := run(t, store, next, env)
	if got := outcome(t, events); !got.Completed {
		t.Errorf("ended with %+v", got)
	}
}
