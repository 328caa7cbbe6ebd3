package launch

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/hook/command"
	"github.com/pawlrun/pawl/internal/files/assembly"
	"github.com/pawlrun/pawl/internal/files/servers"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/host/egress"
	"github.com/pawlrun/pawl/internal/host/sandbox"
	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/shell"
	"github.com/pawlrun/pawl/tool/web"
)

// runsCommands reports whether a file has tools that run programs.
func runsCommands(a *spec.Agent) bool {
	return allowed(a, shellTool) || len(a.Tools.Commands) > 0 || servers.Programs(a)
}

// runsPrograms reports whether one of the tools runs programs.
func runsPrograms(tools *tool.Set) bool {
	return slices.ContainsFunc(tools.Defs(), func(d llm.ToolDef) bool {
		t, _ := tools.Lookup(d.Name)
		return t.Sandboxed
	})
}

// offlineTool reports whether a tool that runs programs does so without a network.
func (o Options) offlineTool(a *spec.Agent, c confinement, name string) bool {
	for _, t := range a.Tools.Commands {
		if t.Name == name && t.Network != "" {
			return c.inside() && egress.Network(t.Network) == egress.NetworkNone
		}
	}
	return c.offline()
}

// usable returns the tools that an agent's file lets it use: without hidden tools,
// and without tools that reach the network if the file allows no network.
func (o Options) usable(a *spec.Agent, all []tool.Tool) []tool.Tool {
	r := rules(a, o)
	all = slices.DeleteFunc(all, func(t tool.Tool) bool {
		_, hidden := r.Hides(assembly.Visible(t))
		return hidden || t.Name == web.Name && a.Tools.Permissions.Egress().Network == egress.NetworkNone
	})
	c := confinement{tier: sandbox.None, policy: o.sandboxPolicy(a), onDemand: a.Tools.Permissions.OnDemand()}
	if o.Sandbox != nil {
		c.tier = o.Sandbox.Tier()
	}
	for i := range all {
		if _, declared := a.Tools.Labels.Of(all[i].Name); !declared && all[i].Sandboxed && all[i].Labels == nil && o.offlineTool(a, c, all[i].Name) {
			all[i].Labels, all[i].LabelsFor = &event.Labels{Private: true}, nil
		}
	}
	return all
}

// programOf returns a program of tools.commands with its paths resolved.
func programOf(c spec.CommandTool, dir, workspace string) command.Command {
	return command.Command{Words: c.Command, FileDir: spec.Absolute(dir), Workspace: spec.Absolute(workspace)}
}

// commandTools returns the programs that a file offers as tools. o.commandPins
// holds what the programs were when the run began; without pins, as outside a run,
// they are not checked.
func (o Options) commandTools(a *spec.Agent, s shell.Options, secrets []secret.Secret) []tool.Tool {
	var all []tool.Tool
	for _, c := range a.Tools.Commands {
		own := s
		if c.Network != "" {
			own.Sandbox = o.confined.boxFor(egress.Network(c.Network))
			own.Offline = o.confined.inside() && egress.Network(c.Network) == egress.NetworkNone
		}
		t := shell.ForCommand(described(c, programOf(c, a.Dir, o.Workspace), variables(c, secrets)), own)
		all = append(all, pinProgram(t, o.commandPins))
	}
	return all
}

// described makes a program a tool, as package shell does.
func described(c spec.CommandTool, p command.Command, env []string) tool.Command {
	d := tool.Command{
		Name: c.Name, Description: c.Description, Argv: p.Argv(), Effect: event.Effect(c.Effect), Risk: event.Risk(c.Risk), Labels: c.Declared(), Env: env,
	}
	if c.Args != nil {
		d.Schema = c.Args.JSON
	}
	if c.Timeout != nil {
		d.Timeout = c.Timeout.Duration()
	}
	return d
}

// variables returns the secrets of a program as environment variables.
func variables(c spec.CommandTool, secrets []secret.Secret) []string {
	var env []string
	for _, s := range secrets {
		if slices.Contains(c.Secrets, s.Name) {
			env = append(env, s.Name+"="+s.Value)
		}
	}
	return env
}

// pinProgram wraps a tool so that it refuses a call if a file of its program has changed
// since the run began. It checks before the approval and again when the call runs.
func pinProgram(t tool.Tool, pinned []event.CommandTool) tool.Tool {
	at := slices.IndexFunc(pinned, func(p event.CommandTool) bool { return p.Name == t.Name })
	if at < 0 {
		return t
	}
	var pins []command.Pin
	for _, f := range pinned[at].Files {
		pins = append(pins, command.Pin{Path: f.Path, Digest: f.Digest})
	}
	unchanged := func() error {
		if err := command.Unchanged(pins); err != nil {
			return &tool.Error{Type: event.ErrorConflict, Message: t.Name + ": " + err.Error(), Err: err, NothingCame: true}
		}
		return nil
	}
	check, run := t.Check, t.Run
	t.Check = func(args json.RawMessage) error { return errors.Join(unchanged(), check(args)) }
	t.Run = func(ctx context.Context, c tool.Call) (tool.Result, error) {
		if err := unchanged(); err != nil {
			return tool.Result{}, err
		}
		return run(ctx, c)
	}
	return t
}

// pinCommands returns the programs of tools.commands as they are now.
func pinCommands(a *spec.Agent, workspace string) ([]event.CommandTool, error) {
	var all []event.CommandTool
	for _, c := range a.Tools.Commands {
		pinned := event.CommandTool{Name: c.Name, Argv: c.Command}
		if c.Args != nil {
			pinned.Schema = c.Args.JSON
		}
		pins, err := programOf(c, a.Dir, workspace).Pins()
		if err != nil {
			return nil, fmt.Errorf("launch: tools.commands: %s: %w", c.Name, err)
		}
		for _, p := range pins {
			pinned.Files = append(pinned.Files, event.CommandFile{Path: p.Path, Digest: p.Digest})
		}
		all = append(all, pinned)
	}
	return all, nil
}

// withSchemas sets the pinned schemas on the programs of a restored file.
func withSchemas(a *spec.Agent, pinned []event.CommandTool) {
	for i := range a.Tools.Commands {
		c := &a.Tools.Commands[i]
		for _, p := range pinned {
			if p.Name == c.Name && len(p.Schema) > 0 {
				c.Args = &spec.ResultSchema{JSON: p.Schema}
			}
		}
	}
}

// commandFiles returns the files of a file's programs, which are protected like its
// hooks: a model that could write such a program would receive its secrets in the
// next run.
func commandFiles(a *spec.Agent, workspace string) []string {
	var files []string
	for _, c := range a.Tools.Commands {
		files = append(files, programOf(c, a.Dir, workspace).Files()...)
	}
	for _, s := range a.Tools.MCP {
		if len(s.Command) > 0 {
			files = append(files, programOf(spec.CommandTool{Command: s.Command}, a.Dir, workspace).Files()...)
		}
	}
	return files
}

// commandReads returns the directories of the programs outside the workspace, which
// the sandbox makes readable.
func (o Options) commandReads(a *spec.Agent) []string {
	var dirs []string
	for _, file := range commandFiles(a, o.Workspace) {
		if _, within := inside(o.Workspace, real(file)); !within {
			dirs = append(dirs, filepath.Dir(real(file)))
		}
	}
	return dirs
}

// checkProgram reports why a program cannot run: the program, or a script among its
// arguments, does not exist.
func (o Options) checkProgram(dir string, words []string) error {
	c := programOf(spec.CommandTool{Command: words}, dir, o.Workspace)
	if err := c.Check(); err != nil {
		return err
	}
	for i, word := range c.Argv()[1:] {
		file := word
		if !filepath.IsAbs(file) {
			file = filepath.Join(c.Workspace, file)
		}
		if !slices.Contains(scripts, filepath.Ext(word)) || strings.HasPrefix(word, "-") {
			continue
		}
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("%s is not there (%s)", words[i+1], file)
		}
	}
	return nil
}

// scripts lists the extensions of files that an interpreter runs.
var scripts = []string{".py", ".sh", ".bash", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php", ".lua"}

// boxFor returns the sandbox for programs with the network n.
func (c confinement) boxFor(n egress.Network) *sandbox.Box {
	if box := c.boxes[n]; box != nil {
		return box
	}
	return c.box
}

// openBoxes opens a sandbox for each network that differs from the policy's.
func (o Options) openBoxes(a *spec.Agent, c *confinement) error {
	for _, t := range a.Tools.Commands {
		n := egress.Network(t.Network)
		if n == "" || n == c.policy.Egress.Network || c.boxes[n] != nil {
			continue
		}
		p := c.policy
		p.Egress = a.Tools.Permissions.Egress()
		p.Egress.Network, p.Egress.Closed = n, o.Databases
		if err := c.tier.Holds(p); err != nil {
			return refusedf("the network of %s is %s, which this machine does not hold for programs (%w; %s)", t.Name, n, err, c.why)
		}
		box, err := o.Sandbox.Open(c.tier, p)
		if err != nil {
			return fmt.Errorf("launch: %w", err)
		}
		if c.boxes == nil {
			c.boxes = map[egress.Network]*sandbox.Box{}
		}
		c.boxes[n] = box
	}
	return nil
}

// CallProgram runs one call of a program of tools.commands outside a run, in the
// sandbox that a run of the file would have. The call is "ticket.lookup {...}". A
// call that the file denies does not run; a call that would need approval runs
// without it.
func CallProgram(ctx context.Context, f File, call string, o Options) (tool.Result, error) {
	a, err := parseWorker(f, o)
	if err != nil {
		return tool.Result{}, err
	}
	return o.callProgram(ctx, a, call)
}

// callOfGoal is [CallProgram] for the agent that works on a goal.
func callOfGoal(ctx context.Context, f File, call string, o Options) (tool.Result, error) {
	g, err := parseGoal(f, o)
	if err != nil {
		return tool.Result{}, err
	}
	return o.callProgram(ctx, g.Uses[spec.GoalWorker], call)
}

func (o Options) callProgram(ctx context.Context, a *spec.Agent, call string) (tool.Result, error) {
	var err error
	name, rest, _ := strings.Cut(strings.TrimSpace(call), " ")
	if !slices.Contains(a.Tools.CommandNames(), name) {
		return tool.Result{}, fmt.Errorf("launch: %q is no program of tools.commands (%s)", name, strings.Join(a.Tools.CommandNames(), ", "))
	}
	o.tree, o.Workspace = newTree(nil), spec.Absolute(o.Workspace)
	if err := o.gather(a); err != nil {
		return tool.Result{}, err
	}
	o.nested = nestedFor(a, o.Workspace, BuiltinTools())
	if o.confined, err = o.confine(a, ""); err != nil {
		return tool.Result{}, err
	}
	env, err := o.environment(a, o.resolver(a.Dir))
	if err != nil {
		return tool.Result{}, err
	}
	r, err := o.callIn(ctx, a, env.Tools, llm.ToolCall{Name: name, Args: json.RawMessage(strings.TrimSpace(rest))})
	r.Output = env.Secrets.RedactString(r.Output)
	return r, assembly.Closing(env, err)
}

func (o Options) callIn(ctx context.Context, a *spec.Agent, tools *tool.Set, c llm.ToolCall) (tool.Result, error) {
	t, _ := tools.Lookup(c.Name)
	var err error
	if c.Args, err = readArgs(t, string(c.Args)); err != nil {
		return tool.Result{}, err
	}
	resolved := tools.Resolve("check", c)
	if p := resolved.Problem; p != nil {
		return tool.Result{}, &tool.Error{Type: p.Type, Message: p.Message}
	}
	v := o.permissions(a).Decide(&resolved)
	if v.Decision == event.DecisionDeny {
		return tool.Result{}, &tool.Error{Type: event.ErrorDenied, Message: "not permitted by the rule " + v.Rule}
	}
	ctx, cancel := context.WithTimeout(ctx, t.AttemptTimeout(resolved.Args))
	defer cancel()
	return t.Run(ctx, tool.Call{ID: "check", Key: "check-" + rand.Text(), Attempt: 1, Args: resolved.Args, Facts: resolved.Facts, Sandbox: v.Sandbox})
}
