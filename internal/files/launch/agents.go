package launch

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/files/assembly"
	"github.com/pawlrun/pawl/internal/files/servers"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/models"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/shell"
)

// maxAgentFiles bounds the agent files that one run may offer, directly and through
// other agents. Each file is pinned in the run's first event.
const maxAgentFiles = 100

// gather reads the files of the agents that a run may start, directly and through
// other agents, with everything they include. The texts are pinned, so later
// changes to the files do not affect the run.
func (o *Options) gather(a *spec.Agent) error {
	files := map[string]string{}
	if err := o.gatherFrom(a, files); err != nil {
		return err
	}
	o.tree.files = files
	return nil
}

func (o *Options) gatherFrom(a *spec.Agent, files map[string]string) error {
	for _, t := range a.Offers() {
		source, offered := t.Source(a.Dir), t.Derived
		if _, known := files[source]; known {
			continue
		}
		if offered == nil {
			var err error
			if offered, err = o.offered(source); err != nil {
				return err
			}
		}
		text, err := offered.Text()
		if err != nil {
			return err
		}
		if files[source] = string(text); len(files) > maxAgentFiles {
			return fmt.Errorf("launch: the agent offers more than %d agent files, itself and through others", maxAgentFiles)
		}
		if err := o.gatherFrom(offered, files); err != nil {
			return err
		}
	}
	return nil
}

// offered reads the current file of an agent for a run that is starting. The caller
// Checks the agents that it offers in turn.
func (o Options) offered(source string) (*spec.Agent, error) {
	rules := o.Checks()
	rules.CheckAgent = nil
	a, err := spec.ReadAgent(source, rules)
	if err == nil && !o.checking {
		a.System, err = a.Expand(o.Vars)
	}
	if err != nil {
		return nil, fmt.Errorf("launch: the agent file %s: %w", source, err)
	}
	return a, nil
}

// pinnedAgent returns the agent of a file as the run's first event pinned it.
func (o Options) pinnedAgent(source string) (*spec.Agent, error) {
	return o.tree.agents.of(source, func() (*spec.Agent, error) {
		a, err := spec.ParseAgent(source, []byte(o.tree.files[source]), o.Checks())
		if err == nil && a.Identity.Name == "" {
			a.Identity.Name = nameOf(source)
		}
		return a, err
	})
}

// pinAgents records the gathered files in a run's first event.
func (o Options) pinAgents(started *event.RunStarted) {
	for _, source := range slices.Sorted(maps.Keys(o.tree.files)) {
		started.Agents = append(started.Agents, event.AgentFile{Source: source, Spec: o.tree.files[source]})
	}
}

// pinnedAgents returns the agent files that a run's first event pinned.
func pinnedAgents(started event.RunStarted) map[string]string {
	files := map[string]string{}
	for _, f := range started.Agents {
		files[f.Source] = f.Spec
	}
	return files
}

// offers returns the agents that a run may start.
func (o Options) offers(a *spec.Agent) ([]assembly.Agent, error) {
	var agents []assembly.Agent
	for _, t := range a.Offers() {
		source := t.Source(a.Dir)
		below, err := o.tree.below.of(source, func() ([]secret.Secret, error) { return o.secretsBelow([]spec.AgentTool{t}, a.Dir) })
		if err != nil {
			return nil, err
		}
		offered := o.below().child(source)
		offered.Secrets = below
		own, err := o.declaredOf(source)
		if err != nil {
			return nil, err
		}
		offered.Tool, offered.MaxDepth, offered.Isolated = tool.ForAgent(t.Name, t.Description, own), value(t.MaxDepth), t.Isolated()
		if offered.Tool.Concurrent, err = o.runsConcurrently(t, a.Dir); err != nil {
			return nil, err
		}
		agents = append(agents, offered)
	}
	return agents, nil
}

// runsConcurrently reports whether calls of an agent run in parallel. The file decides;
// without a setting they do if the agent cannot change files that other runs see.
func (o Options) runsConcurrently(t spec.AgentTool, dir string) (bool, error) {
	if t.Concurrent != nil || t.Isolated() {
		return t.Concurrent == nil || *t.Concurrent, nil
	}
	writes, err := o.writes(t, dir)
	return !writes, err
}

// below returns the options of a child run. Its limits come from its own file; the
// limits in money and time are the root's.
func (o Options) below() Options {
	o.BudgetUSD, o.NoBudget, o.MaxDepth, o.Limits, o.forAgents = nil, false, 0, o.forAgents, nil
	o.Attachments, o.Vars, o.hookPins, o.commandPins, o.started = nil, nil, nil, nil, true
	return o
}

func (o Options) child(source string) assembly.Agent {
	o.source = source
	return assembly.Agent{
		Begin: func(dir string, input event.InputReceived) (event.RunStarted, perform.Env, error) {
			a, err := o.pinnedAgent(source)
			if err != nil {
				return event.RunStarted{}, perform.Env{}, err
			}
			o := o
			o.Attachments, o.Workspace = input.Media, cmp.Or(dir, o.Workspace)
			started, env, err := Prepare(a, source, []byte(o.tree.files[source]), input.Text, o)
			if err != nil {
				return started, env, err
			}
			return started, o.dressed(env), nil
		},
		Resume: func(_ string, started event.RunStarted) (perform.Env, error) {
			env, _, err := restored(started, o.seams())
			if err != nil {
				return env, err
			}
			return o.dressed(env), nil
		},
	}
}

// dressed applies Options.Dress to the environment of a child run.
func (o Options) dressed(env perform.Env) perform.Env {
	if o.Dress != nil {
		o.Dress(&env)
	}
	return env
}

// pinnedFile parses a pinned file without checking it.
func (o Options) pinnedFile(source string) (*spec.Agent, error) {
	return o.tree.read.of(source, func() (*spec.Agent, error) {
		a, err := spec.Restore(source, []byte(o.tree.files[source]))
		if err != nil {
			return nil, fmt.Errorf("launch: the agent file %s: %w", source, err)
		}
		return a, nil
	})
}

// declaredOf is [Options.declared] for an offered agent.
func (o Options) declaredOf(source string) (*tool.Set, error) {
	return o.tree.tools.of(source, func() (*tool.Set, error) { return o.declared(source, map[string]bool{}) })
}

// declared returns an agent's tools as declared, without a workspace and without
// the tools that its own file hides.
func (o Options) declared(source string, on map[string]bool) (*tool.Set, error) {
	a, err := o.pinnedFile(source)
	if err != nil {
		return nil, err
	}
	all := slices.DeleteFunc(slices.Clone(o.tree.builtin()), func(t tool.Tool) bool { return a.StartsOthers() || !allowed(a, t.Name) })
	if a.External() != nil {
		all = []tool.Tool{unknownTool("runner")}
	}
	if len(a.Tools.Provider) > 0 {
		all = append(all, unknownTool("provider"))
	}
	all = append(all, o.commandTools(a, shell.Options{Dir: o.Workspace}, nil)...)
	declare(all, a.Tools)
	all = o.usable(a, all)
	on[source] = true
	defer delete(on, source)
	for _, t := range a.Offers() {
		below := t.Source(a.Dir)
		if on[below] { // the chain already counts this agent
			all = append(all, tool.ForAgent(t.Name, t.Description, &tool.Set{}))
			continue
		}
		own, err := o.declared(below, on)
		if err != nil {
			return nil, err
		}
		all = append(all, tool.ForAgent(t.Name, t.Description, own))
	}
	return tool.NewSet(all...)
}

// visitOffered visits pinned agents in dir, and those that they offer in turn, each
// once.
func (o Options) visitOffered(agents []spec.AgentTool, dir string, visit func(source string, a *spec.Agent) error) error {
	seen := map[string]bool{}
	var each func(agents []spec.AgentTool, dir string) error
	each = func(agents []spec.AgentTool, dir string) error {
		for _, t := range agents {
			source := t.Source(dir)
			if seen[source] {
				continue
			}
			seen[source] = true
			a, err := o.pinnedFile(source)
			if err == nil {
				err = visit(source, a)
			}
			if err == nil {
				err = each(a.Offers(), a.Dir)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	return each(agents, dir)
}

// writes reports whether an agent in dir, or one that it offers, can change a file.
func (o Options) writes(t spec.AgentTool, dir string) (found bool, err error) {
	err = o.visitOffered([]spec.AgentTool{t}, dir, func(_ string, a *spec.Agent) error {
		p := a.Tools.Permissions
		reads := a.Tools.Mode == string(policy.ModePlan) ||
			p != nil && (p.Filesystem == string(policy.FilesystemNone) || p.Filesystem == string(policy.FilesystemReadOnly))
		found = found || a.External() != nil || !reads && !a.StartsOthers() && (len(a.Tools.Commands) > 0 ||
			slices.ContainsFunc(o.tree.builtin(), func(t tool.Tool) bool { return !t.ReadOnly && allowed(a, t.Name) }))
		return nil
	})
	return found, err
}

// unknownTool returns a tool that is assumed to bring in and send out anything.
func unknownTool(name string) tool.Tool {
	t := tool.ForAgent(name, name, nil)
	t.ReadOnly, t.Concurrent = false, false
	t.Labels = &event.Labels{Untrusted: true, Private: true, Outgoing: true}
	return t
}

// secretsBelow returns the secrets of agents in dir and of every agent that they
// offer, because a tool of one agent may find a secret of another.
func (o Options) secretsBelow(agents []spec.AgentTool, dir string) (all []secret.Secret, err error) {
	err = o.visitOffered(agents, dir, func(source string, a *spec.Agent) error {
		own, err := o.secretsOf(source, a)
		if err != nil {
			return fmt.Errorf("launch: the agent file %s: %w", source, err)
		}
		all = append(all, own...)
		return nil
	})
	return all, err
}

// secretsOf returns the secrets of a file. The source of the tree's first file is
// empty.
func (o Options) secretsOf(source string, a *spec.Agent) ([]secret.Secret, error) {
	return o.tree.secrets.of(source, func() ([]secret.Secret, error) { return secrets(a, o) })
}

// targetsOf returns the models of a file.
func (o Options) targetsOf(source string, a *spec.Agent, resolver *models.Resolver) ([]target, error) {
	return o.tree.targets.of(source, func() ([]target, error) { return targets(a, o, resolver) })
}

func nameOf(source string) string {
	base := filepath.Base(source)
	return base[:len(base)-len(filepath.Ext(base))]
}

// unpricedBelow returns the models without a known price among all agents that an
// agent offers, directly and through others.
func (o Options) unpricedBelow(a *spec.Agent) (names []string, err error) {
	err = o.visitOffered(a.Offers(), a.Dir, func(source string, _ *spec.Agent) error {
		offered, err := o.pinnedAgent(source)
		if err != nil {
			return err
		}
		found, err := o.targetsOf(source, offered, o.resolver(offered.Dir))
		if err != nil {
			return fmt.Errorf("the agent file %s: %w", source, err)
		}
		for _, target := range found {
			if target.Price == nil {
				names = append(names, target.Model)
			}
		}
		return nil
	})
	return names, err
}

// sampler returns the agent that answers a server, and its source.
func (o Options) sampler(a *spec.Agent, server spec.MCPServer) (of *spec.Agent, source string) {
	of = a.Sampler(server, func(role string) string { return o.Config.Roles[role] })
	return of, spec.SourceOf(spec.Absolute(a.Path())).Of(of.Identity.Name).String()
}

// answers returns the name of the model that answers a server.
func (o Options) answers(a *spec.Agent, server spec.MCPServer) string {
	of, _ := o.sampler(a, server)
	if chain := of.Chain(); o.Model == "" && len(chain) > 0 {
		return chain[0]
	}
	return o.Model
}

// samplers returns the agents that answer servers, by name. The model cannot call them.
func (o Options) samplers(a *spec.Agent, secrets []secret.Secret) map[string]perform.Child {
	all := map[string]perform.Child{}
	for _, server := range a.Tools.MCP {
		if server.Sampling == nil || o.served == nil {
			continue
		}
		of, source := o.sampler(a, server)
		below := o.below()
		below.source = source
		all[of.Identity.Name] = perform.Child{
			Secrets: secret.NewRedactor(secrets...),
			Begin: func(input json.RawMessage) (event.RunStarted, perform.Env, error) {
				return below.beginSampling(*of, server.Server, input)
			},
			Resume: func(string, event.RunStarted) (perform.Env, error) {
				return perform.Env{}, errors.New("launch: an answer to a server is given in one process")
			},
		}
	}
	return all
}

// beginSampling begins a run that answers a server.
func (o Options) beginSampling(of spec.Agent, server string, input json.RawMessage) (event.RunStarted, perform.Env, error) {
	fail := func(err error) (event.RunStarted, perform.Env, error) { return event.RunStarted{}, perform.Env{}, err }
	targets, err := o.targetsOf(o.source, &of, o.resolver(of.Dir))
	if err != nil {
		return fail(err)
	}
	q, err := servers.Ask(&of, maxTokens(&of, targets), server, input)
	if err != nil {
		return fail(err)
	}
	text, err := of.Text()
	if err != nil {
		return fail(err)
	}
	o.Attachments = q.Media
	started, env, err := Prepare(&of, o.source, text, q.Text, o)
	if err != nil {
		return fail(err)
	}
	started.Fence = q.Fence()
	return started, o.dressed(env), nil
}
