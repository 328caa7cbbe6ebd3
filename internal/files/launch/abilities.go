package launch

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/models"
)

// capable holds what the file asks for against what the models can do, as far
// as that is known before a call.
func capable(a *spec.Agent, targets []target, resolver *models.Resolver) (warnings []string) {
	for _, t := range targets {
		if asked := value(a.ModelPolicy.Decoding.MaxTokens); t.maxOutput > 0 && asked > t.maxOutput {
			warnings = append(warnings, fmt.Sprintf("max_tokens is %d, and %s gives at most %d", asked, t.Model, t.maxOutput))
		}
		if a.ResultSchema != nil && t.NoSchema {
			warnings = append(warnings, fmt.Sprintf("%s cannot enforce resultSchema, so the schema is in the prompt; answers are still validated", t.Model))
		}
		if can, known := resolver.Can(t.Model, models.CanTools); known && !can && (a.Tools.Allow == nil || len(a.Tools.Allow) > 0) {
			warnings = append(warnings, fmt.Sprintf("%s is not known to call tools; tools.allow: [] offers it none", t.Model))
		}
	}
	if own := a.Tools.Provider; len(own) > 0 && slices.ContainsFunc(targets, func(t target) bool { return resolver.RunsOwnTools(t.Model) }) {
		warnings = append(warnings, fmt.Sprintf("the provider charges for each use of %s, beside the tokens; this is not counted: "+
			"it is not part of the cost or of any limit", strings.Join(own, ", ")))
	}
	return warnings
}

// hosted holds a tool that a model's provider shall run against what that has.
// What keeps the model from being called is said of the model, and a script may
// stand for any provider.
func hosted(tool, model string, resolver *models.Resolver) (ignored string, err error) {
	if provider, _, _ := strings.Cut(model, "/"); models.BuiltIn(provider) {
		return "", nil
	}
	client, name, err := resolver.Open(model)
	enc, encodes := client.(llm.Encoder)
	switch {
	case err != nil, !encodes:
		return "", nil
	case !resolver.RunsOwnTools(model):
		return fmt.Sprintf("%s runs no tools of its own, so %s has no effect there", model, tool), nil
	}
	_, err = enc.Encode(&llm.Request{Model: name, ProviderTools: []string{tool}})
	if unknown, ok := errors.AsType[*llm.Error](err); ok {
		return "", fmt.Errorf("%s: %s", model, unknown.Message)
	}
	return "", err
}

// runsHosted holds all tools that a run has of its provider against another
// model, in the words of a file that is checked.
func runsHosted(tools []string, model string, resolver *models.Resolver) (warnings []string, err error) {
	for i, tool := range tools {
		ignored, unknown := hosted(tool, model, resolver)
		if unknown != nil {
			err = errors.Join(err, fmt.Errorf("launch: tools.provider[%d]: %w", i, unknown))
		}
		if ignored != "" {
			warnings = append(warnings, fmt.Sprintf("tools.provider[%d]: %s", i, ignored))
		}
	}
	return warnings, err
}

// Readable refuses files that a model of a run is known not to take, be it the
// one in use or one that it may fall back on. Of the options the config counts.
func Readable(m machine.Machine, files []llm.Media, o Options) error {
	a, ok := m.(agent.Configured)
	if !ok {
		return nil
	}
	return taken(modelsOf(a.Config().Targets), nil, files, o.resolver(""))
}

// taken refuses files that a model of the chain is known not to take: those that a
// conversation has, and new ones.
func taken(names []string, had, given []llm.Media, resolver *models.Resolver) error {
	if err := readable(names, slices.Concat(had, given), resolver); err != nil {
		return err
	}
	return shown(names, given, resolver)
}

// readable refuses files that a model of the chain is known not to take.
func readable(names []string, files []llm.Media, resolver *models.Resolver) error {
	for _, f := range files {
		ability, kind := models.CanFiles, "PDFs"
		switch {
		case strings.HasPrefix(f.MediaType, "image/"):
			ability, kind = models.CanImages, "images"
		case strings.HasPrefix(f.MediaType, "text/"):
			continue
		}
		for _, name := range names {
			if can, known := resolver.Can(name, ability); known && !can {
				return fmt.Errorf("launch: %s is not known to take %s, and %s is one; use another model, or say in the config "+
					"file what it can: models: {%s: {can: [%s, …]}}", name, kind, f.Name, name, ability)
			}
		}
	}
	return nil
}

// shown refuses new images that a model of the chain is known not to be shown: of
// one that a run has already its requests say so in words.
func shown(names []string, files []llm.Media, resolver *models.Resolver) error {
	for _, name := range names {
		client, _, err := resolver.Open(name)
		viewer, ok := client.(llm.Viewer)
		if err != nil || !ok {
			continue // what keeps the model from being called is said of the model
		}
		for i := range files {
			if err := viewer.Shows(&files[i]); err != nil {
				return fmt.Errorf("launch: %s would not see %s: %w", name, files[i].Name, err)
			}
		}
	}
	return nil
}

// filesOf are the images and files of a conversation.
func filesOf(messages []*llm.Message) (files []llm.Media) {
	for _, m := range messages {
		files = slices.AppendSeq(files, m.Parts.Media())
	}
	return files
}
