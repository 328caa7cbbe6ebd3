package launch

import (
	"errors"
	"fmt"

	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/models"
)

// defaultMaxTokens caps an answer where the file does not say (and the model
// cannot give more than its own limit).
const defaultMaxTokens = 8192

// ErrNoModel is returned when neither the file nor a flag names a model.
var ErrNoModel = errors.New("launch: no model: give model_policy.primary.model in the file, or --model provider/model")

// target is one model of the chain with its output limit, 0 for unknown.
type target struct {
	agent.Target
	maxOutput int
}

// targets lists the models of the run in the order in which they are tried.
// Each of them must be callable as far as that shows without a call.
func targets(a *spec.Agent, o Options, resolver *models.Resolver) ([]target, error) {
	if a.StartsOthers() || a.External() != nil {
		return nil, nil // those have some, or need none
	}
	names := a.Chain()
	if o.Model != "" {
		if err := checkName(o.Model, resolver); err != nil {
			return nil, fmt.Errorf("launch: %w", err)
		}
		names = []string{o.Model}
	}
	if len(names) == 0 {
		return nil, ErrNoModel
	}
	return targetsOf(names, resolver)
}

// checkName is [models.Resolver.CheckName], and says how to go on where the name is
// meant.
func checkName(name string, resolver *models.Resolver) error {
	err := resolver.CheckName(name)
	if err != nil {
		err = fmt.Errorf("%w If the name is right, list it in the config file: models: {%s: {}}", err, name)
	}
	return err
}

func targetsOf(names []string, resolver *models.Resolver) ([]target, error) {
	var out []target
	for _, name := range names {
		if err := resolver.Check(name); err != nil {
			return nil, fmt.Errorf("launch: %w", err)
		}
		t, info := targetOf(name, resolver)
		out = append(out, target{Target: t, maxOutput: info.MaxOutput})
	}
	return out, nil
}

// targetOf is a model with what is known of it.
func targetOf(name string, resolver *models.Resolver) (agent.Target, models.Info) {
	info, _ := resolver.Lookup(name)
	schemas, known := resolver.Can(name, models.CanSchema)
	return agent.Target{
		Model: name, Price: resolver.Price(name), ContextWindow: info.ContextWindow, NoSchema: known && !schemas,
	}, info
}

// maxTokens is the output cap of every call: one for the whole chain, so that
// a fallback does not change what was asked for.
func maxTokens(a *spec.Agent, targets []target) int {
	if v := a.ModelPolicy.Decoding.MaxTokens; v != nil {
		return *v
	}
	limit := defaultMaxTokens
	for _, t := range targets {
		if t.maxOutput > 0 {
			limit = min(limit, t.maxOutput)
		}
	}
	return limit
}
