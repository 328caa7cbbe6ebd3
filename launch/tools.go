package launch

import (
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/pawlrun/pawl/engine"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/models"
	"github.com/pawlrun/pawl/sandbox"
	"github.com/pawlrun/pawl/secret"
	"github.com/pawlrun/pawl/spec"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/fs"
	"github.com/pawlrun/pawl/tool/result"
	"github.com/pawlrun/pawl/tool/shell"
	"github.com/pawlrun/pawl/tool/web"
)

// environment builds what a run's effects need. A file without tools.allow has
// every tool that there is (ALF-81), but for the one that reaches other
// machines: that has to be named.
func environment(a *spec.Agent, o Options, resolver *models.Resolver) (engine.Env, *tool.Set, error) {
	r := rules(a, o)
	protected := protect(r)
	ws, err := fs.Open(o.Workspace, fs.Options{OtherNames: func(name, path string) ([]string, error) {
		if !slices.Contains(r.GateProtected, name) {
			return nil, nil
		}
		return sandbox.NewOtherNames(o.Workspace, protected).Of(path, true)
	}})
	if err != nil {
		return engine.Env{}, nil, errors.Join(err, o.closeBox())
	}
	env := engine.Env{Model: resolver.Open, Tree: ws.State, Hooks: hooks(a, o), Close: func() error { return errors.Join(ws.Close(), o.closeBox()) }}
	secrets, err := secrets(a, o)
	if err != nil {
		return engine.Env{}, nil, closing(env, err)
	}
	env.Secrets = secret.NewRedactor(secrets...)
	all := builtin(ws, web.Options{Egress: a.Tools.Permissions.Egress(), Places: o.Pages}, shell.Options{
		Dir: o.Workspace, Sandbox: o.confined.box, Bare: o.Sandbox.Bare(), OnDemand: a.Tools.Permissions.OnDemand(),
		Inside: o.confined.inside(), Offline: o.confined.offline(), Timeout: a.Tools.Timeouts[shellTool].Duration(),
		Env: withVariables(shell.Environment(os.Environ()), secrets), Protected: protected,
		GateReads: slices.Contains(r.GateProtected, shellTool),
	})
	all = slices.DeleteFunc(all, func(t tool.Tool) bool { return !allowed(a, t.Name) })
	all = withResults(all)
	for i, t := range all {
		if limit, ok := a.Tools.Timeouts[t.Name]; ok {
			all[i] = bounded(t, limit.Duration())
		}
		if labels, ok := a.Tools.Labels.Of(t.Name); ok {
			all[i].Labels, all[i].LabelsFor = &labels, nil
		}
	}
	declare(all, a.Tools)
	if env.Tools, err = tool.NewSet(secret.Broker(all, secrets, shellTool)...); err != nil {
		return engine.Env{}, nil, closing(env, err)
	}
	return env, env.Tools, nil
}

func (o Options) closeBox() error {
	if o.confined.box == nil {
		return nil
	}
	return o.confined.box.Close()
}

func allowed(a *spec.Agent, name string) bool {
	if a.Tools.Allow == nil {
		return name != web.Name
	}
	return slices.Contains(a.Tools.Allow, name)
}

// builtin are the tools that Pawl brings and that a file can leave out.
func builtin(ws *fs.Workspace, w web.Options, s shell.Options) []tool.Tool {
	return append(ws.Tools(), web.New(w), shell.New(s))
}

// withResults adds result.read to tools that may give long results. It needs
// no permission, because it reads only what the run was given before.
func withResults(tools []tool.Tool) []tool.Tool {
	if len(tools) == 0 {
		return nil
	}
	return append(tools, result.New())
}

// anyBuiltin are those tools as they are declared, of no workspace.
func anyBuiltin() []tool.Tool { return builtin(&fs.Workspace{}, web.Options{}, shell.Options{}) }

// toolNames are the names that a file may use.
func toolNames() []string {
	names := []string{result.Name}
	for _, t := range anyBuiltin() {
		names = append(names, t.Name)
	}
	slices.Sort(names)
	return names
}

// declare puts what the file says of its tools in the place of what they say
// themselves.
func declare(tools []tool.Tool, t spec.Tools) {
	for i := range tools {
		name := tools[i].Name
		tools[i].Effect = cmp.Or(event.Effect(t.Effects[name]), tools[i].Effect)
		tools[i].Risk = cmp.Or(event.Risk(t.Risks[name]), tools[i].Risk)
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
