package launch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/host/resolve"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/models"
)

// permissions are the file's rules, and the protection of the file itself and of
// the journal where these lie in the workspace: whoever writes to them could
// permit or approve calls. What a run began with stays protected.
func (o Options) permissions(a *spec.Agent) policy.Rules {
	r := rules(a, o)
	r.Protected = slices.Concat(r.Protected, o.ownFiles(a), o.journalPatterns())
	for _, p := range o.protected {
		if !slices.Contains(r.Protected, p) {
			r.Protected = append(r.Protected, p)
		}
	}
	return r
}

// journalPatterns match the journal, the files that belong to it, and the links
// by which it is found. There is none for what lies outside the workspace or is
// always protected.
func (o Options) journalPatterns() []policy.Pattern {
	if o.Journal == "" {
		return nil
	}
	var names literals
	names.add(o.Workspace, o.Journal)
	if rel, ok := o.journalInside(); ok {
		own := literally(rel)
		names = append(literals{own + "*"}, slices.DeleteFunc(names, func(p policy.Pattern) bool { return p == own })...)
	}
	return slices.DeleteFunc(names, func(name policy.Pattern) bool {
		return slices.ContainsFunc(policy.Builtin(), func(p policy.Pattern) bool { return p.Guards(string(name)) })
	})
}

// journalInside is the name that the journal has in the workspace.
func (o Options) journalInside() (rel string, ok bool) {
	if o.Journal == "" {
		return "", false
	}
	return inside(o.Workspace, filepath.Join(real(filepath.Dir(o.Journal)), filepath.Base(o.Journal)))
}

// guarded refuses rules that do not protect the journal as it lies now. A run is
// judged by the rules that it began with, and its journal may have been moved since.
func (o Options) guarded(r policy.Rules) error {
	rel, ok := o.journalInside()
	if !ok || slices.ContainsFunc(slices.Concat(r.Protected, policy.Builtin()), func(p policy.Pattern) bool {
		return p.Guards(rel) && p.Guards(rel+"-wal")
	}) {
		return nil
	}
	return fmt.Errorf("launch: the rules that the run began with let its tools write the journal where it lies now (%s); "+
		"move it out of the run's workspace", o.Journal)
}

// literals are patterns that stand for one file each.
type literals []policy.Pattern

// add adds the names by which one gets to a file, as far as they are of the
// workspace: its own, and those of the links on the way.
func (l *literals) add(workspace, file string) {
	if ws, err := resolve.At(workspace); err == nil {
		l.addNames(ws, absolute(file))
	}
}

func (l *literals) addNames(ws resolve.Workspace, file string) {
	for _, name := range ws.Names(file) {
		if p := literally(name.Path); !name.Outside && !slices.Contains(*l, p) {
			*l = append(*l, p)
		}
	}
}

// inside is the name that a file has in a workspace, and false for one that lies
// elsewhere.
func inside(workspace, path string) (rel string, ok bool) {
	rel, err := filepath.Rel(real(workspace), path)
	return filepath.ToSlash(rel), err == nil && filepath.IsLocal(rel)
}

// literally is the pattern of one name: a character that would mean something
// in a pattern gives way to one that stands for any.
func literally(name string) policy.Pattern {
	return policy.Pattern(strings.Map(func(r rune) rune {
		if strings.ContainsRune(`*[\`, r) {
			return '?'
		}
		return r
	}, name))
}

// real is the name of a file or directory behind all links, as far as it is
// there.
func real(path string) string {
	if name, err := filepath.EvalSymlinks(absolute(path)); err == nil {
		return name
	}
	return absolute(path)
}

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

// sent prepares a run of an agent file that somebody sent as a text, see
// [spec.Options]. Scripts that it names are read from o.Dir and nowhere else.
func sent(f File, input string, o Options) (event.RunStarted, engine.Env, error) {
	a, err := spec.ParseAgent(f.Path, f.Text, o.checksOf(f))
	if err != nil {
		return event.RunStarted{}, engine.Env{}, err
	}
	a.File = ""
	pinned, err := a.Text()
	if err != nil {
		return event.RunStarted{}, engine.Env{}, err
	}
	return prepare(a, "", pinned, input, o)
}

// ConfineScript refuses the model scripted/FILE whose file is not inside a
// directory, also where a link in it leads outside.
func ConfineScript(dir, model string) error {
	name, ok := strings.CutPrefix(model, "scripted/")
	if !ok {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("launch: %w", err)
	}
	defer root.Close()
	if _, err := root.Stat(name); err != nil {
		return fmt.Errorf("the script %s is not a file of the agents directory", name)
	}
	return nil
}
