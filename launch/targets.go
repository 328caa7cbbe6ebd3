package launch

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/machine/agent"
	"github.com/pawlrun/pawl/models"
	"github.com/pawlrun/pawl/spec"
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
	names := a.Chain()
	if o.Model != "" {
		names = []string{o.Model}
	}
	if len(names) == 0 {
		return nil, ErrNoModel
	}
	var out []target
	for _, name := range names {
		if err := resolver.Check(name); err != nil {
			return nil, fmt.Errorf("launch: %w", err)
		}
		info, _ := resolver.Lookup(name)
		out = append(out, target{
			Target:    agent.Target{Model: name, Price: resolver.Price(name), ContextWindow: info.ContextWindow},
			maxOutput: info.MaxOutput,
		})
	}
	return out, nil
}

// capable holds what the file asks for against what the models can do, as far
// as that is known before a call. What a provider would reject is an error,
// what it would ignore a warning.
func capable(a *spec.Agent, targets []target, resolver *models.Resolver) (warnings []string, err error) {
	for _, t := range targets {
		provider, _, _ := strings.Cut(t.Model, "/")
		if asked := value(a.ModelPolicy.Decoding.MaxTokens); t.maxOutput > 0 && asked > t.maxOutput {
			warnings = append(warnings, fmt.Sprintf("max_tokens is %d, and %s gives at most %d", asked, t.Model, t.maxOutput))
		}
		if len(a.Tools.Provider) == 0 {
			continue
		}
		if provider != "scripted" && provider != "replay" && !resolver.RunsOwnTools(t.Model) {
			warnings = append(warnings, fmt.Sprintf("%s runs no tools of its own, so tools.provider has no effect there", t.Model))
			continue
		}
		model, name, err := resolver.Open(t.Model)
		if err != nil {
			return nil, fmt.Errorf("launch: %w", err)
		}
		if enc, ok := model.(llm.Encoder); ok {
			if _, err := enc.Encode(&llm.Request{Model: name, ProviderTools: a.Tools.Provider}); err != nil {
				return nil, fmt.Errorf("launch: tools.provider: %w", err)
			}
		}
	}
	return warnings, nil
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
