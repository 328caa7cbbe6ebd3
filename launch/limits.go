package launch

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/machine/agent"
	"github.com/pawlrun/pawl/spec"
)

// limits are the file's budgets, the smaller one where two of them limit the
// same thing. What nobody set is left to the defaults.
func limits(a *spec.Agent) budget.Limits {
	b := a.Budgets
	return budget.Limits{
		MaxCycles:     value(a.Effective().MaxCycles),
		MaxModelTurns: value(b.MaxModelTurns), MaxToolCalls: value(b.MaxToolCalls),
		MaxParallelTools: value(b.MaxParallelTools), MaxWallSeconds: value(b.MaxWallSeconds),
		MaxInputTokens: value(b.MaxInputTokens), MaxOutputTokens: value(b.MaxOutputTokens),
		MaxResultChars:  value(b.MaxResultChars),
		MaxModelRetries: b.MaxModelRetries, MaxToolRetries: b.MaxToolRetries,
		MaxIdleSeconds: value(b.MaxIdleSeconds), MaxRequestTokens: value(b.MaxRequestTokens),
		USDPerRun: value(a.ModelPolicy.Budget.USDPerRun), MaxTotalCost: value(b.MaxTotalCost),
	}
}

// replace puts the flags in the place of the limits that they are about.
func (o Options) replace(cfg *agent.Config) error {
	switch l := &cfg.Limits; {
	case o.NoBudget:
		l.USDPerRun, l.MaxTotalCost, cfg.DefaultCap = 0, 0, false
	case o.BudgetUSD != nil:
		l.USDPerRun, l.MaxTotalCost, cfg.DefaultCap = *o.BudgetUSD, 0, false
	}
	said := slices.DeleteFunc([]Limit{{"max_cycles", float64(o.MaxCycles)}, {"max_wall_time_seconds", o.TimeoutSeconds}},
		func(l Limit) bool { return l.Value == 0 })
	var problems []error
	for _, limit := range append(said, o.Limits...) {
		if err := cfg.SetLimit(limit.Setting, limit.Value); err != nil {
			problems = append(problems, fmt.Errorf("launch: %w", err))
		}
	}
	return errors.Join(problems...)
}

// raises says that a flag sets a limit.
func (o Options) raises() bool {
	return len(o.Limits) > 0 || o.MaxCycles != 0 || o.TimeoutSeconds != 0 || o.NoBudget || o.BudgetUSD != nil
}

// money says what the owner should know about what the run may cost.
func money(o Options, cfg agent.Config) (warnings []string, err error) {
	if limit, _ := cfg.Limits.CostCap(); cfg.DefaultCap {
		warnings = append(warnings, stopsByDefault(limit))
	}
	warning, err := priced(cfg, o)
	if warning != "" {
		warnings = append(warnings, warning)
	}
	return warnings, err
}

func stopsByDefault(limit float64) string {
	return fmt.Sprintf("the run stops at USD %.2f, the default cap; "+
		"--budget, --no-budget or model_policy.budget.usd_per_run change it", limit)
}

// cappedByDefault says that nobody has set the cap in money of an earlier run.
// Those of older versions say it in their warnings alone.
func cappedByDefault(cfg *agent.Config, started *event.RunStarted) bool {
	l := cfg.Limits
	return cfg.DefaultCap || l.USDPerRun == budget.DefaultUSDPerRun && l.MaxTotalCost <= 0 &&
		slices.Contains(started.Warnings, stopsByDefault(l.USDPerRun))
}

// priced holds the cap in money against what is known of the models' prices. A
// cap that somebody set and that could not be kept is an error (PRODUCT 6).
func priced(cfg agent.Config, o Options) (warning string, err error) {
	if o.BudgetUSD != nil && *o.BudgetUSD <= 0 {
		return "", fmt.Errorf("launch: a budget of USD %g is no budget; it must be above 0", *o.BudgetUSD)
	}
	limit, _ := cfg.Limits.CostCap()
	names := cfg.Unpriced()
	if len(names) > 0 && limit > 0 && !cfg.DefaultCap {
		return "", fmt.Errorf("launch: %w; use a model with a known price, name its price in the config file, or run it with --no-budget", &budget.UnpricedError{Models: names, USD: limit})
	}
	return cfg.Limits.Uncounted(names), nil
}

// unlimited tells of the limits that the owner took away, so that the run's
// first event says it (PRODUCT 6: every limit is visible there).
func unlimited(l budget.Limits) []string {
	names := l.Lacks()
	if len(names) == 0 {
		return nil
	}
	return []string{strings.Join(names, ", ") + ": taken away, as was asked for; nothing of the kind stops the run"}
}

func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
