package launch

import (
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/files/assembly"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/host/sandbox"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/models"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/fs"
	"github.com/pawlrun/pawl/tool/result"
	"github.com/pawlrun/pawl/tool/shell"
	"github.com/pawlrun/pawl/tool/web"
)

// environment builds what a run's effects need.
func (o Options) environment(a *spec.Agent, resolver *models.Resolver) (engine.Env, error) {
	d, err := o.definition(a, resolver)
	if err != nil {
		return engine.Env{}, err
	}
	env, err := d.Environment()
	if err != nil {
		return engine.Env{}, assembly.Closing(d.Host, err)
	}
	return env, nil
}

// definition is what a file says, but for the configuration, which a run has from
// its first event on. Its host is open.
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
	}})
	if err != nil {
		return d, errors.Join(err, o.closeBox())
	}
	d = assembly.Definition{
		Name: a.Identity.Name, Change: o.replace, Child: o.started, Hooks: hooks(a, o), Variables: []string{shellTool},
		Host: engine.Env{Model: resolver.Open, Tree: ws.State, Worktrees: apart{o, a, ""}, Close: func() error { return errors.Join(ws.Close(), o.closeBox()) }},
	}
	if o.tree.pinned(o.source) {
		if d.Compiled, err = o.declaredOf(o.source); err != nil {
			return fail(err)
		}
	}
	if d.Secrets, err = o.secretsOf(o.source, a); err != nil {
		return fail(err)
	}
	if d.Below, err = o.secretsOffered(a, map[string]bool{}); err != nil {
		return fail(err)
	}
	programs := o.programs(a, r)
	plain := programs
	programs.Env = withVariables(programs.Env, d.Secrets)
	d.Tools = o.tools(a, ws, programs, o.commandTools(a, plain, d.Secrets))
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
	return d, nil
}

// programs is how the commands of a run are run.
func (o Options) programs(a *spec.Agent, r policy.Rules) shell.Options {
	return shell.Options{
		Dir: o.Workspace, Sandbox: o.confined.box, Bare: o.Sandbox.Bare(), OnDemand: a.Tools.Permissions.OnDemand(),
		Inside: o.confined.inside(), Offline: o.confined.offline(), Full: o.confined.policy.Filesystem == sandbox.FilesystemFull,
		Scratch: o.confined.inside() && sandbox.Scratch(o.confined.tier, o.confined.policy.Filesystem), Timeout: a.Tools.Timeouts[shellTool].Duration(),
		Env: shell.Environment(os.Environ()), Protected: protect(r), Git: string(r.Git), GateReads: slices.Contains(r.GateProtected, shellTool),
	}
}

// tools are those of a file as it declares them. One without tools.allow has every
// tool that there is (ALF-81), but for the one that reaches other machines: that has
// to be named.
func (o Options) tools(a *spec.Agent, ws *fs.Workspace, s shell.Options, commands []tool.Tool) []tool.Tool {
	all := offering(a, append(builtin(ws, web.Options{Egress: a.Tools.Permissions.Egress(), PageLimit: o.Pages}, s), commands...))
	for i, t := range all {
		if limit, ok := a.Tools.Timeouts[t.Name]; ok {
			all[i] = bounded(t, limit.Duration())
		}
	}
	declare(all, a.Tools)
	return all
}

// offering are those of the built-in tools that a file has, and what reads on in
// their results.
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
	if slices.Contains(a.Tools.CommandNames(), name) {
		return true
	}
	if a.Tools.Allow == nil {
		return name != web.Name
	}
	return slices.Contains(a.Tools.Allow, name)
}

// builtin are the tools that Pawl brings and that a file can leave out.
func builtin(ws *fs.Workspace, w web.Options, s shell.Options) []tool.Tool {
	return append(ws.Tools(), web.New(w), shell.New(s))
}

// offeredBy are the names of the tools that a model is offered by what a file says.
func offeredBy(t *spec.Tools) []string {
	names := append(t.AgentNames(), t.CommandNames()...)
	for _, each := range offering(&spec.Agent{Tools: *t}, anyBuiltin()) {
		names = append(names, each.Name)
	}
	return names
}

// anyBuiltin are those tools as they are declared, of no workspace.
func anyBuiltin() []tool.Tool { return slices.Clone(declared()) }

var declared = sync.OnceValue(func() []tool.Tool { return builtin(&fs.Workspace{}, web.Options{}, shell.Options{}) })

// toolNames are the names that a file may use.
func toolNames() []string {
	names := []string{result.Name}
	for _, t := range anyBuiltin() {
		names = append(names, t.Name)
	}
	slices.Sort(names)
	return names
}

// aliases are the names of tools by what other programs call them.
func aliases() map[string]string {
	names := map[string]string{}
	for _, t := range anyBuiltin() {
		for _, other := range t.Aliases {
			names[other] = t.Name
		}
	}
	return names
}

// declare puts what the file says of its tools in the place of what they say
// themselves.
func declare(tools []tool.Tool, t spec.Tools) {
	for i := range tools {
		name := tools[i].Name
		tools[i].Effect = cmp.Or(event.Effect(t.Effects[name]), tools[i].Effect)
		tools[i].Risk = cmp.Or(event.Risk(t.Risks[name]), tools[i].Risk)
		if labels, ok := t.Labels.Of(name); ok {
			tools[i].Labels, tools[i].LabelsFor = &labels, nil
		}
	}
}

// bounded gives a tool the file's timeout: what a call gets that asks for
// none, and the most that one can ask for.
func bounded(t tool.Tool, limit time.Duration) tool.Tool {
	t.Timeout = limit
	if asked := t.TimeoutFor; asked != nil {
		t.TimeoutFor = func(args json.RawMessage) time.Duration { return min(asked(args), limit) }
	}
	return t
}
