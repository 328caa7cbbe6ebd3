package launch

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/files/assembly"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/machine/agent"
)

// limits are the file's budgets, the smaller one where two of them limit the
// same thing. What nobody set is left to the defaults.
func limits(a *spec.Agent) budget.Limits {
	l := a.Budgets.Limits
	l.MaxCycles, l.USDPerRun = value(a.Effective().MaxCycles), value(a.CapUSD())
	return l
}

// CapUSD is the most that a run of a file may cost by what the file says, the default
// where it does not say, and infinite where it says that there is no limit.
func (k Kind) CapUSD(path string, text []byte) (float64, error) {
	read := k.Limits
	if read == nil {
		read = spec.Restore
	}
	a, err := read(path, text)
	if err != nil {
		return 0, err
	}
	return CapUSD(agent.Config{Limits: limits(a)}.WithDefaultCap().Limits), nil
}

// CapUSD is the limit in money that limits come to, infinite where there is none.
func CapUSD(l budget.Limits) float64 {
	if usd, setting := l.CostCap(); setting != "" {
		return usd
	}
	return math.Inf(1)
}

// replace puts the flags in the place of the limits that they are about.
func (o Options) replace(cfg *agent.Config) error {
	switch l := &cfg.Limits; {
	case o.BudgetUSD != nil && *o.BudgetUSD <= 0:
		return fmt.Errorf("launch: the budget of USD %g must be above 0", *o.BudgetUSD)
	case o.NoBudget:
		l.USDPerRun, l.MaxTotalCost, cfg.DefaultCap = 0, 0, false
	case o.BudgetUSD != nil:
		l.USDPerRun, l.MaxTotalCost, cfg.DefaultCap = *o.BudgetUSD, 0, false
	}
	var problems []error
	for _, limit := range o.Limits {
		if err := cfg.SetLimit(limit.Setting, limit.Value); err != nil {
			problems = append(problems, fmt.Errorf("launch: %w", err))
		}
	}
	return errors.Join(problems...)
}

// raises reports whether a flag sets a limit.
func (o Options) raises() bool {
	return len(o.Limits) > 0 || o.NoBudget || o.BudgetUSD != nil
}

// money says what the owner should know about what the run may cost.
func money(cfg agent.Config) (warnings []string) {
	priceKnown := func(t agent.Target) bool { return t.Price != nil }
	if limit, _ := cfg.Limits.CostCap(); cfg.DefaultCap && slices.ContainsFunc(cfg.Targets, priceKnown) {
		warnings = append(warnings, stopsByDefault(limit))
	}
	return append(warnings, assembly.Warnings(cfg)...)
}

func stopsByDefault(limit float64) string {
	return fmt.Sprintf("the run stops at USD %.2f, the default cost limit; "+
		"--budget, --no-budget or model_policy.budget.usd_per_run change it", limit)
}

// cappedByDefault reports whether nobody has set the cap in money of an earlier
// run. Those of older versions say it in their warnings alone.
func cappedByDefault(cfg *agent.Config, started *event.RunStarted) bool {
	l := cfg.Limits
	return cfg.DefaultCap || l.USDPerRun == budget.DefaultUSDPerRun && l.MaxTotalCost <= 0 &&
		slices.ContainsFunc(started.Warnings, func(w string) bool {
			return strings.HasPrefix(w, fmt.Sprintf("the run stops at USD %.2f, the default c", l.USDPerRun)) // "cap" or "cost limit"
		})
}

// affordable is [assembly.Affordable], and says what a command line can do about it.
func affordable(cfg agent.Config) error { return unaffordable(assembly.Affordable(cfg)) }

func unaffordable(err error) error {
	if _, ok := errors.AsType[*budget.UnpricedError](err); ok {
		return fmt.Errorf("launch: %w; use a model with a known price, name its price in the config file, or run it with --no-budget", err)
	}
	return err
}

func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
