package pawl

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/pawlrun/pawl/engine"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/machine/agent"
	"github.com/pawlrun/pawl/secret"
	"github.com/pawlrun/pawl/tool"
)

// AgentTool is an agent that another one may call like a tool. The argument of
// a call is {"task": "…"}; its result is the final output of a run of the agent,
// or an error that says why there is none and what can be done about it.
//
// That run is a child: it has a journal of its own in the same store, under the
// id that child.started names, and draws from its parent's budget. Each of its
// model calls must fit what is left of the parent's Limits as well as of its
// own; what it uses is part of the parent's usage and cost. A limit in money that
// the parent sets is refused where the agent has a model without a Price. It ends
// when the parent is cancelled or out of time, and parks with it. Where it waits for somebody the
// parent parks too: decide on the child's run, then resume the parent, which
// wakes it.
//
// The agent's own Tools, Approvals, Hooks and Ask hold in its run, and none of
// the parent's. It sees nothing of the parent's conversation but the task. What
// the parent has taken in counts for its rule of two as well, and its answer is
// untrusted text for the parent.
type AgentTool struct {
	// Name is what the model calls it by, among the names of the Tools.
	Name string
	// Description tells the model what to call it for.
	Description string
	// Agent does the work. It cannot offer agents itself.
	Agent Agent
}

// offers declares the agents as tools, and reports what is wrong with them.
func (a Agent) offers(report func(field, format string, args ...any)) []tool.Tool {
	var tools []tool.Tool
	for i, o := range a.Agents {
		field := fmt.Sprintf("Agents[%d]", i)
		if len(o.Agent.Agents) > 0 {
			report(field+".Agent.Agents", "an agent that is offered to another one cannot offer agents itself")
			o.Agent.Agents = nil
		}
		_, env, err := o.Agent.build()
		for _, wrong := range problems(err) {
			report(field+".Agent."+wrong.Field, "%s", wrong.Reason)
		}
		if err != nil {
			continue
		}
		t := tool.ForAgent(o.Name, o.Description, env.Tools)
		if len(o.Agent.ProviderTools) > 0 {
			t.Labels.Outgoing = true // what a provider looks up leaves for it
		}
		tools = append(tools, t)
	}
	return tools
}

// problems are the parts of what [Agent.Validate] reports.
func problems(err error) []*InvalidAgentError {
	var all []*InvalidAgentError
	for _, e := range parts(err) {
		if wrong, ok := errors.AsType[*InvalidAgentError](e); ok {
			all = append(all, wrong)
		}
	}
	return all
}

// parts are the errors that a joined one consists of.
func parts(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return nil
}

// treesSecrets are the secrets of all that a run of the agent may consist of. A
// tool of one agent may come upon what another one keeps secret.
func (a Agent) treesSecrets() *secret.Redactor {
	all := slices.Clone(a.Secrets)
	for _, o := range a.Agents {
		all = append(all, o.Agent.Secrets...)
	}
	return secret.NewRedactor(all...)
}

// children are the offered agents as the engine starts them.
func (a Agent) children() map[string]engine.Child {
	if len(a.Agents) == 0 {
		return nil
	}
	children := make(map[string]engine.Child, len(a.Agents))
	for _, o := range slices.Clone(a.Agents) {
		begin := func(args json.RawMessage) (event.RunStarted, engine.Env, error) { return o.Agent.begin(args) }
		again := func(string, event.RunStarted) (engine.Env, error) { return o.Agent.again() }
		children[o.Name] = engine.Child{Begin: begin, Resume: again, Secrets: secret.NewRedactor(o.Agent.Secrets...)}
	}
	return children
}

// begin is the first event and the environment of a run of the agent that a
// call asks for.
func (a Agent) begin(args json.RawMessage) (event.RunStarted, engine.Env, error) {
	var t tool.Task
	if err := json.Unmarshal(args, &t); err != nil {
		return event.RunStarted{}, engine.Env{}, fmt.Errorf("pawl: the task: %w", err)
	}
	cfg, env, err := a.build()
	if err != nil {
		return event.RunStarted{}, engine.Env{}, err
	}
	var fence *event.Fence
	if env.Tools.Fences() {
		fence = &event.Fence{}
	}
	started, err := agent.StartFenced(cfg, event.InputReceived{Text: t.Task}.Message(), fence)
	if err != nil {
		return event.RunStarted{}, engine.Env{}, fmt.Errorf("pawl: start: %w", err)
	}
	started.Name, started.Warnings = a.Name, warnings(cfg)
	return started, env, nil
}

// again is the environment of a run of the agent that goes on.
func (a Agent) again() (engine.Env, error) {
	_, env, err := a.build()
	return env, err
}
