package launch

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/host/resolve"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/models"
	"github.com/pawlrun/pawl/tool"
)

// permissions returns the file's rules and protects the file itself and the journal
// if they are in the workspace, because writing to them could permit or approve
// calls. Whatever was protected when a run began stays protected.
func (o Options) permissions(a *spec.Agent) policy.Rules {
	r := rules(a, o)
	r.Mode, r.Granted = cmp.Or(o.Mode, r.Mode), o.Granted
	r.Protected = slices.Concat(r.Protected, o.ownFiles(a), o.journalPatterns())
	for _, p := range o.protected {
		if !slices.Contains(r.Protected, p) {
			r.Protected = append(r.Protected, p)
		}
	}
	return r
}

// Shape is what a run of a file works with.
type Shape struct {
	// Task is the file's own task, Models its models, the first choice first.
	Task   string   `json:"task,omitempty"`
	Models []string `json:"models,omitempty"`
	// Limits are those of the run, with the defaults.
	Limits budget.Limits `json:"limits"`
	// Tools are the tools of the file's own agent, without those of its MCP servers,
	// which only a run starts.
	Tools []Gate `json:"tools,omitempty"`
}

// Gate is what the rules of a file say about a tool.
type Gate struct {
	Name string `json:"name"`
	// Decision is the verdict about a call that touches nothing protected, and Rule
	// what decides it. The arguments of a call can make it stricter.
	Decision event.Decision `json:"decision"`
	Rule     string         `json:"rule,omitempty"`
}

// shape returns the shape of a run: limited has its limits, and worker, if it is not
// nil, is its agent.
func (o Options) shape(limited, worker *spec.Agent) Shape {
	s := Shape{Limits: agent.Config{Limits: limits(limited)}.WithDefaultCap().WithDefaults().Limits}
	if worker == nil {
		return s
	}
	s.Task, s.Models = worker.Prompt.Task, worker.Chain()
	if worker.StartsOthers() || worker.External() != nil {
		return s
	}
	all := offering(worker, BuiltinTools())
	for _, name := range slices.Concat(worker.Tools.CommandNames(), worker.Tools.AgentNames()) {
		all = append(all, tool.Tool{Name: name})
	}
	declare(all, worker.Tools)
	r := o.permissions(worker)
	for _, t := range all {
		risk := cmp.Or(t.Risk, event.RiskWrite)
		if t.ReadOnly && t.Risk == "" {
			risk = event.RiskRead
		}
		v := r.Decide(&event.ToolCall{Tool: t.Name, ReadOnly: t.ReadOnly, Facts: &event.Facts{Risk: risk}})
		s.Tools = append(s.Tools, Gate{Name: t.Name, Decision: v.Decision, Rule: v.Rule})
	}
	return s
}

// journalPatterns returns patterns for the journal, its side files, and the links
// on its path. It omits files outside the workspace and files that are always
// protected.
func (o Options) journalPatterns() []policy.Pattern {
	if o.Journal == "" {
		return nil
	}
	var names filePatterns
	names.add(o.Workspace, o.Journal)
	if rel, ok := o.journalInside(); ok {
		own := literally(rel)
		names = append(filePatterns{own + "*"}, slices.DeleteFunc(names, func(p policy.Pattern) bool { return p == own })...)
	}
	return slices.DeleteFunc(names, func(name policy.Pattern) bool {
		return slices.ContainsFunc(policy.Builtin(), func(p policy.Pattern) bool { return p.Guards(string(name)) })
	})
}

// journalInside returns the journal's path relative to the workspace.
func (o Options) journalInside() (rel string, ok bool) {
	if o.Journal == "" {
		return "", false
	}
	return inside(o.Workspace, filepath.Join(real(filepath.Dir(o.Journal)), filepath.Base(o.Journal)))
}

// guarded rejects rules that do not protect the journal at its current path. A run
// keeps the rules that it began with, and its journal may have moved since.
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

// filePatterns holds patterns that match one file each.
type filePatterns []policy.Pattern

// add adds the names of a file that are in the workspace: its own, and those of the
// links on its path.
func (l *filePatterns) add(workspace, file string) {
	if ws, err := resolve.At(workspace); err == nil {
		l.addNames(ws, spec.Absolute(file))
	}
}

func (l *filePatterns) addNames(ws resolve.Workspace, file string) {
	for _, name := range ws.Names(file) {
		if p := literally(name.Path); !name.Outside && !slices.Contains(*l, p) {
			*l = append(*l, p)
		}
	}
}

// inside returns the path of a file relative to a workspace, and false for a file
// outside.
func inside(workspace, path string) (rel string, ok bool) {
	rel, err := filepath.Rel(real(workspace), path)
	return filepath.ToSlash(rel), err == nil && filepath.IsLocal(rel)
}

// literally returns the pattern of one name. Characters with a special meaning in
// patterns become a wildcard for one character.
func literally(name string) policy.Pattern {
	return policy.Pattern(strings.Map(func(r rune) rune {
		if strings.ContainsRune(`*[\`, r) {
			return '?'
		}
		return r
	}, name))
}

// real resolves the links of a path as far as the path exists.
func real(path string) string {
	if name, err := filepath.EvalSymlinks(spec.Absolute(path)); err == nil {
		return name
	}
	return spec.Absolute(path)
}

// capable checks what the file needs against what the models support, as far as
// that is known without a call.
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

// hosted checks a tool that the model's provider runs against the model. It skips a
// model that cannot be called, which has its own error, and a scripted model, which
// may stand for any provider.
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

// runsHosted checks all provider tools of a run against another model, with the
// messages of a file check.
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

// Readable rejects files that a model of a run, in use or a fallback, is known not
// to accept. It uses only the config of the options.
func Readable(m machine.Machine, files []llm.Media, o Options) error {
	a, ok := m.(agent.Configured)
	if !ok {
		return nil
	}
	return taken(modelsOf(a.Config().Targets), nil, files, o.resolver(""))
}

// taken rejects files, of the conversation or new, that a model of the chain is
// known not to accept.
func taken(names []string, had, given []llm.Media, resolver *models.Resolver) error {
	if err := readable(names, slices.Concat(had, given), resolver); err != nil {
		return err
	}
	return checkImages(names, given, resolver)
}

// readable rejects files that a model of the chain is known not to accept.
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

// checkImages rejects new images that a model of the chain cannot accept. For an
// image that is already in the conversation, requests carry a text in its place.
func checkImages(names []string, files []llm.Media, resolver *models.Resolver) error {
	for _, name := range names {
		client, _, err := resolver.Open(name)
		viewer, ok := client.(llm.Viewer)
		if err != nil || !ok {
			continue // a model that cannot be called has its own error
		}
		for i := range files {
			if err := viewer.Shows(&files[i]); err != nil {
				return fmt.Errorf("launch: %s would not see %s: %w", name, files[i].Name, err)
			}
		}
	}
	return nil
}

// filesOf returns the images and files of a conversation.
func filesOf(messages []*llm.Message) (files []llm.Media) {
	for _, m := range messages {
		files = slices.AppendSeq(files, m.Parts.Media())
	}
	return files
}

// sent prepares a run of an agent file that a client sent as text, see
// [spec.Options]. Scripts that it names are read from o.Dir only.
func sent(f File, input string, o Options) (event.RunStarted, perform.Env, error) {
	a, err := spec.ParseAgent(f.Path, f.Text, o.checksOf(f))
	if err != nil {
		return event.RunStarted{}, perform.Env{}, err
	}
	a.File = ""
	pinned, err := a.Text()
	if err != nil {
		return event.RunStarted{}, perform.Env{}, err
	}
	return Prepare(a, "", pinned, input, o)
}

// ConfineScript rejects the model scripted/FILE if the file is outside a directory,
// directly or through a link.
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
