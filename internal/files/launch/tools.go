package launch

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/files/assembly"
	"github.com/pawlrun/pawl/internal/files/servers"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/host/egress"
	"github.com/pawlrun/pawl/internal/host/sandbox"
	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/models"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/find"
	"github.com/pawlrun/pawl/tool/fs"
	"github.com/pawlrun/pawl/tool/result"
	"github.com/pawlrun/pawl/tool/shell"
	"github.com/pawlrun/pawl/tool/skill"
	"github.com/pawlrun/pawl/tool/web"
)

// environment builds what a run's effects need.
func (o Options) environment(a *spec.Agent, resolver *models.Resolver) (perform.Env, error) {
	d, err := o.definition(a, resolver)
	if err != nil {
		return perform.Env{}, err
	}
	d.Tools = assembly.WithSearch(d.Tools, o.deferred)
	env, err := d.Environment()
	if err != nil {
		return perform.Env{}, assembly.Closing(d.Host, err)
	}
	return env, nil
}

// definition returns the definition of a file without the configuration, which a
// run takes from its first event. Its host is open.
func (o Options) definition(a *spec.Agent, resolver *models.Resolver) (d assembly.Definition, err error) {
	fail := func(err error) (assembly.Definition, error) {
		return assembly.Definition{}, assembly.Closing(d.Host, err)
	}
	if o.tree == nil {
		o.tree = newTree(nil)
	}
	r := rules(a, o)
	protected := protect(r)
	ws, err := fs.Open(o.Workspace, fs.Options{Own: o.writtenByPawl(), OtherNames: func(name, path string, write bool) ([]string, error) {
		if !write && !slices.Contains(r.GateProtected, name) {
			return nil, nil
		}
		return sandbox.NewOtherNames(o.Workspace, protected).Of(path, true)
	}, Buffers: o.buffersIn(o.Workspace)})
	if err != nil {
		return d, errors.Join(err, o.closeBox())
	}
	d = assembly.Definition{
		Name: a.Identity.Name, Change: o.replace, Child: o.started, Hooks: hooks(a, o), Variables: []string{shellTool},
		Host: perform.Env{Model: resolver.Open, Tree: ws.State, Worktrees: stepWorktrees{o, a, ""}, Close: func() error { return errors.Join(ws.Close(), o.closeBox()) }},
	}
	if o.tree.pinned(o.source) {
		if d.Compiled, err = o.declaredOf(o.source); err != nil {
			return fail(err)
		}
	}
	if d.Secrets, err = o.secretsOf(o.source, a); err != nil {
		return fail(err)
	}
	if d.Below, err = o.secretsBelow(a.Offers(), a.Dir); err != nil {
		return fail(err)
	}
	programs := o.programs(a, r)
	plain := programs
	programs.Env = withVariables(programs.Env, d.Secrets)
	ofServers, closeServers, err := o.served.Open(a, o.serverHost(plain, d.Secrets))
	if err != nil {
		return fail(err)
	}
	release := d.Host.Close
	d.Host.Close = func() error { return errors.Join(closeServers(), release()) }
	d.Host.Began = o.served.Log(o.ServerLog)
	d.Tools = o.tools(a, ws, programs, append(o.commandTools(a, plain, d.Secrets), ofServers...))
	if len(o.skills) > 0 {
		d.Tools = assembly.WithResults(append(d.Tools, skill.New(o.skills)))
	}
	if o.byTool(a) {
		d.Tools = append(d.Tools, tool.ForResult(a.ResultSchema.JSON))
	}
	d.Tools = append(d.Tools, o.messages(a)...)
	if allowed(a, shellTool) {
		d.Host.Commands, d.Host.Rules = shell.Commands(programs), r
	}
	if d.Agents, err = o.offers(a); err != nil {
		return fail(err)
	}
	d.Host.Children = o.samplers(a, d.Secrets)
	return d, nil
}

// programs returns the options with which the run's commands run.
func (o Options) programs(a *spec.Agent, r policy.Rules) shell.Options {
	return shell.Options{
		Dir: o.Workspace, Sandbox: o.confined.box, Bare: o.Sandbox.Bare(), OnDemand: a.Tools.Permissions.OnDemand(),
		Inside: o.confined.inside(), Offline: o.confined.offline(), Full: o.confined.policy.Filesystem == sandbox.FilesystemFull,
		Scratch: o.confined.inside() && sandbox.Scratch(o.confined.tier, o.confined.policy.Filesystem), Timeout: a.Tools.Timeouts[shellTool].Duration(),
		Env: shell.Environment(os.Environ()), Protected: protect(r), Git: string(r.Git), GateReads: slices.Contains(r.GateProtected, shellTool),
	}
}

func (o Options) serverHost(s shell.Options, secrets []secret.Secret) servers.Host {
	return servers.Host{Workspace: o.Workspace, Shell: s, Secrets: secrets, Learn: o.Learn, Answers: o.answers}
}

// tools returns a file's tools. Without tools.allow a file has every tool
// except the one that reaches other machines, which must be listed.
func (o Options) tools(a *spec.Agent, ws *fs.Workspace, s shell.Options, commands []tool.Tool) []tool.Tool {
	all := offering(a, append(builtin(ws, web.Options{Egress: a.Tools.Permissions.Egress(), PageLimit: o.Pages}, s), commands...))
	for i, t := range all {
		if limit, ok := spec.Named(a.Tools.Timeouts, t.Name); ok {
			all[i] = bounded(t, limit.Duration())
		}
	}
	declare(all, a.Tools)
	return all
}

// offering returns the built-in tools that a file has, and the tools that page
// through their results.
func offering(a *spec.Agent, all []tool.Tool) []tool.Tool {
	all = slices.DeleteFunc(all, func(t tool.Tool) bool { return !allowed(a, t.Name) })
	if len(all) == 0 {
		return nil
	}
	return assembly.WithResults(all)
}

func (o Options) closeBox() error {
	if o.confined.box == nil {
		return nil
	}
	err := o.confined.box.Close()
	for _, box := range o.confined.boxes {
		err = errors.Join(err, box.Close())
	}
	return err
}

func allowed(a *spec.Agent, name string) bool {
	if slices.Contains(a.Tools.CommandNames(), name) || a.Tools.OffersOfServer(name) {
		return true
	}
	if a.Tools.Allow == nil {
		return name != web.Name
	}
	return slices.Contains(a.Tools.Allow, name)
}

// builtin returns the built-in tools that a file can leave out.
func builtin(ws *fs.Workspace, w web.Options, s shell.Options) []tool.Tool {
	return append(ws.Tools(), web.New(w), shell.New(s))
}

// offeredBy returns the names of the tools that a file offers to its model.
func offeredBy(t *spec.Tools) []string {
	names := append(t.AgentNames(), t.CommandNames()...)
	for _, each := range offering(&spec.Agent{Tools: *t}, BuiltinTools()) {
		names = append(names, each.Name)
	}
	return names
}

// BuiltinTools returns the built-in tools as declared, without a workspace.
func BuiltinTools() []tool.Tool { return slices.Clone(declared()) }

var declared = sync.OnceValue(func() []tool.Tool { return builtin(&fs.Workspace{}, web.Options{}, shell.Options{}) })

// toolNames returns the names that a file may use.
func toolNames() []string {
	names := append(find.Names(), result.Name, skill.Name)
	for _, t := range BuiltinTools() {
		names = append(names, t.Name)
	}
	slices.Sort(names)
	return names
}

// aliases returns the names that other programs use for the same tools.
func aliases() map[string]string {
	names := map[string]string{}
	for _, t := range BuiltinTools() {
		for _, other := range t.Aliases {
			names[other] = t.Name
		}
	}
	return names
}

// declare replaces the tools' own declarations by the file's.
func declare(tools []tool.Tool, t spec.Tools) {
	for i := range tools {
		name := tools[i].Name
		effect, _ := spec.Named(t.Effects, name)
		risk, _ := spec.Named(t.Risks, name)
		tools[i].Effect = cmp.Or(event.Effect(effect), tools[i].Effect)
		tools[i].Risk = cmp.Or(event.Risk(risk), tools[i].Risk)
		if labels, ok := t.Labels.Of(name); ok {
			tools[i].Labels, tools[i].LabelsFor = &labels, nil
		}
	}
}

// bounded applies the file's timeout to a tool: the default of a call, and the most
// that a call can request.
func bounded(t tool.Tool, limit time.Duration) tool.Tool {
	t.Timeout = limit
	if asked := t.TimeoutFor; asked != nil {
		t.TimeoutFor = func(args json.RawMessage) time.Duration { return min(asked(args), limit) }
	}
	return t
}

// tree is what the runs of a tree share in one workspace: the agent files, and what
// was prepared for each. An agent that is offered in several places, or started
// many times, is prepared once.
type tree struct {
	// files holds the pinned texts of the agent files by absolute path.
	files map[string]string

	agents, read   perFile[*spec.Agent]
	targets        perFile[[]target]
	secrets, below perFile[[]secret.Secret]
	tools          perFile[*tool.Set]
	unpriced       perFile[[]string]

	// builtin returns the tools of [BuiltinTools], which are never modified, and
	// prices the table of [models.Known].
	builtin func() []tool.Tool
	prices  func() (models.Table, error)
}

func newTree(files map[string]string) *tree {
	return &tree{files: files, builtin: BuiltinTools, prices: models.Known}
}

// pinned reports whether a file belongs to the tree.
func (t *tree) pinned(source string) bool {
	if t == nil {
		return false
	}
	_, there := t.files[source]
	return there
}

// perFile caches one value for each file. Errors are not cached.
type perFile[T any] struct {
	mu   sync.Mutex
	made map[string]T
}

// of returns the cached value for a file, and prepares it if it is missing. An
// empty source, which is no file of the tree, is not cached.
func (o *perFile[T]) of(source string, prepare func() (T, error)) (T, error) {
	if source == "" {
		return prepare()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if kept, there := o.made[source]; there {
		return kept, nil
	}
	fresh, err := prepare()
	if err != nil {
		return fresh, err
	}
	if o.made == nil {
		o.made = map[string]T{}
	}
	o.made[source] = fresh
	return fresh, nil
}

// secrets fetches the values that the file names from their sources. A missing
// value is an error before the run starts.
func secrets(a *spec.Agent, o Options) ([]secret.Secret, error) {
	getenv := o.getenv()
	var found []secret.Secret
	for _, name := range slices.Sorted(maps.Keys(a.Tools.Secrets)) {
		from := a.Tools.Secrets[name]
		s := secret.Secret{Name: name, Tools: from.Tools}
		for _, h := range from.Hosts {
			s.Hosts = append(s.Hosts, egress.Pattern(h))
		}
		var err error
		if s.Value, err = valueOf(from, a.Dir, getenv); err != nil {
			return nil, fmt.Errorf("tools.secrets.%s: %w", name, err)
		}
		if err := s.Validate(); err != nil {
			return nil, fmt.Errorf("tools.secrets.%s: %w", name, err)
		}
		found = append(found, s)
	}
	return found, nil
}

// Redactor returns a redactor for the secrets that a run's file declares. Input for
// a run without a driver must pass through it, because no driver redacts it then.
// missing lists the secrets whose values are unavailable here and so cannot be
// redacted. r is nil if the run has no secrets.
func Redactor(started event.RunStarted) (r *secret.Redactor, missing []string, err error) {
	if started.Spec == "" {
		return nil, nil, nil
	}
	a, err := restore(started)
	if err != nil {
		return nil, nil, err
	}
	known, missing := known(a)
	return secret.NewRedactor(known...), missing, nil
}

// known returns the secrets of a file that are available here, and the names of the
// others.
func known(a *spec.Agent) (found []secret.Secret, missing []string) {
	for _, name := range slices.Sorted(maps.Keys(a.Tools.Secrets)) {
		value, err := valueOf(a.Tools.Secrets[name], a.Dir, os.Getenv)
		if err != nil {
			missing = append(missing, name)
			continue
		}
		found = append(found, secret.Secret{Name: name, Value: value})
	}
	return found, missing
}

func (o Options) getenv() func(string) string {
	if o.Getenv != nil {
		return o.Getenv
	}
	return os.Getenv
}

// maxSecret bounds the file of a secret; keys and certificates are shorter.
const maxSecret = 64 << 10

func valueOf(from spec.Secret, dir string, getenv func(string) string) (string, error) {
	if from.Env != "" {
		value := getenv(from.Env)
		if value == "" {
			return "", fmt.Errorf("the variable %s is not set", from.Env)
		}
		return value, nil
	}
	path := from.File
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	switch {
	case err != nil:
		return "", err
	case len(content) > maxSecret:
		return "", fmt.Errorf("%s has more than %d KiB", path, maxSecret>>10)
	}
	return strings.TrimRight(string(content), "\r\n"), nil
}

// withVariables adds the secrets of commands to their environment.
func withVariables(env []string, secrets []secret.Secret) []string {
	for _, s := range secrets {
		if slices.Contains(s.Tools, shellTool) {
			env = append(env, s.Name+"="+s.Value)
		}
	}
	return env
}
