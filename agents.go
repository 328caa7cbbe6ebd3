package pawl

import (
	"errors"
	"fmt"
	"slices"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/files/assembly"
	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/tool"
)

// AgentTool is an agent that another agent may call like a tool. The argument
// of a call is {"task": "…"}; its result is the final output of a run of the
// agent, or an error that says why there is none and what can be done about it.
//
// That run is a child: it has its own journal in the same store, under the id
// that child.started records, and uses its parent's budget. Each of its model
// calls must fit the rest of the parent's Limits and of its own; its usage and
// cost are part of the parent's. If the parent sets a cost limit, an agent that
// has a model without a Price is refused. The child ends when the parent is
// cancelled or out of time, and parks with it. If it waits for a person, the
// parent parks too: decide on the child's run or on any run above it, then
// resume the root, which resumes the child.
//
// The agent's own Tools, Approvals, Hooks and Ask apply in its run, and none of
// the parent's. It sees nothing of the parent's conversation but the task. For
// the rule of two it starts with the untrusted text and private data that the
// parent has read, and its answer is untrusted text for the parent.
type AgentTool struct {
	// Name is the agent's name for the model. It must differ from the names of the
	// Tools.
	Name string
	// Description tells the model when to call the agent.
	Description string
	// MaxDepth bounds the levels of runs below the run that offers it; 0 leaves it to
	// the tree.
	MaxDepth int
	// Concurrent lets calls of the agent run beside other calls even if not all of its
	// tools are declared concurrent. If all of them are, its calls do so anyway.
	Concurrent bool
	// Agent is the agent. It may offer agents itself, up to [MaxDepth] levels deep.
	Agent Agent
}

// MaxDepth is the maximum depth of a tree of runs, the root included.
const MaxDepth = event.MaxDepth

// depth returns the maximum depth of the tree of a run of the agent.
func (a Agent) depth() int {
	below := 0
	for _, o := range a.Agents {
		below = max(below, o.Agent.depth())
	}
	return 1 + below
}

// offers prepares the agents that the model may call, each once for all of its runs,
// and reports their errors.
func (a Agent) offers(report func(field, format string, args ...any)) []assembly.Agent {
	var agents []assembly.Agent
	for i, o := range a.Agents {
		field := fmt.Sprintf("Agents[%d]", i)
		if deep := 1 + o.Agent.depth(); deep > MaxDepth {
			report(field+".Agent.Agents", "a tree of runs is at most %d deep, and this one could be %d", MaxDepth, deep)
			continue
		}
		if o.MaxDepth < 0 {
			report(field+".MaxDepth", "%d is below 0", o.MaxDepth)
		}
		tools, offered, err := o.Agent.offered()
		for _, wrong := range problems(err) {
			report(field+".Agent."+wrong.Field, "%s", wrong.Reason)
		}
		if err != nil {
			continue
		}
		offered.Tool, offered.MaxDepth = tool.ForAgent(o.Name, o.Description, tools), o.MaxDepth
		offered.Tool.Concurrent = offered.Tool.Concurrent || o.Concurrent
		if len(o.Agent.ModelSettings.ProviderTools) > 0 {
			offered.Tool.Labels.Outgoing = true // a provider's search sends data
		}
		agents = append(agents, offered)
	}
	return agents
}

// offered returns the agent prepared for runs that start it, and its tools.
func (a Agent) offered() (*tool.Set, assembly.Agent, error) {
	child, err := a.prepare(true)
	if err != nil {
		return nil, assembly.Agent{}, err
	}
	return child.Env().Tools, assembly.Agent{
		Secrets: a.allSecrets(),
		Begin: func(_ string, input event.InputReceived) (event.RunStarted, perform.Env, error) {
			started, err := child.Start(input, nil)
			if err != nil {
				return event.RunStarted{}, perform.Env{}, fmt.Errorf("pawl: start: %w", err)
			}
			return started, child.Env(), nil
		},
		Resume: func(string, event.RunStarted) (perform.Env, error) { return child.Env(), nil },
	}, nil
}

// toolsOf returns the tools that represent agents.
func toolsOf(agents []assembly.Agent) []tool.Tool {
	var tools []tool.Tool
	for _, a := range agents {
		tools = append(tools, a.Tool)
	}
	return tools
}

// problems returns the errors in the result of [Agent.Validate].
func problems(err error) []*InvalidAgentError {
	var all []*InvalidAgentError
	for _, e := range parts(err) {
		if wrong, ok := errors.AsType[*InvalidAgentError](e); ok {
			all = append(all, wrong)
		}
	}
	return all
}

// parts returns the errors in a joined error.
func parts(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return nil
}

// allSecrets returns the secrets of all agents of the tree, because a tool of one agent
// may find another's secret.
func (a Agent) allSecrets() []secret.Secret {
	all := slices.Clone(a.Secrets)
	for _, o := range a.Agents {
		all = append(all, o.Agent.allSecrets()...)
	}
	return all
}
