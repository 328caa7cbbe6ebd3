package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/files/assembly"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
)

// Explanation is what would happen to one call, and why.
type Explanation struct {
	// Call is the call with the facts about it.
	Call event.ToolCall `json:"call"`
	// Hooks are those that would be heard first, in this order. They are not
	// run here: one of them may block the call, or change it.
	Hooks []agent.Hook `json:"hooks"`
	// Decision is what policy would say; the first of Rules made it. Both are
	// empty for a call that would not come before policy, because of its
	// Problem.
	Decision policy.Verdict `json:"decision"`
	// Hidden is the rule that keeps the tool from the model's view, because it
	// denies every call of it; empty for a tool that is offered.
	Hidden string           `json:"hidden,omitempty"`
	Rules  []policy.Verdict `json:"rules"`
	// Tainted is what policy would say once untrusted text and private data
	// have met in the run; nil where it would say the same.
	Tainted *policy.Verdict `json:"tainted,omitempty"`
	// Sandbox is where the call would run on this machine. A run begins in the
	// strongest tier there is, and the labels of the call are those that it has
	// in that.
	Sandbox Boundary `json:"sandbox"`
}

// Explain says what a run of an agent file would do with one call of a tool,
// without running it or opening a sandbox; of a loop it is the agent that is
// repeated. The call is "fs.write {...}" with arguments in JSON, or "shell.exec COMMAND" with the one argument that the tool needs as it is.
func Explain(f File, call string, o Options) (Explanation, error) {
	a, err := parseWorker(f, o)
	if err != nil {
		return Explanation{}, err
	}
	return o.explain(a, call)
}

// parseWorker reads the agent of a file that does the work; of a loop it is the one
// that is repeated.
func parseWorker(f File, o Options) (*spec.Agent, error) {
	a, err := spec.ParseAgent(f.Path, f.Text, o.checksOf(f))
	if err != nil || !a.Loops() {
		return a, err
	}
	root := a.LoopRoot().Offers()
	return root[slices.IndexFunc(root, func(t spec.AgentTool) bool { return t.Name == spec.LoopBody })].Derived, nil
}

// explainGoal is [Explain] of the agent that works on a goal.
func explainGoal(f File, call string, o Options) (Explanation, error) {
	g, err := parseGoal(f, o)
	if err != nil {
		return Explanation{}, err
	}
	return o.explain(g.Uses[spec.GoalWorker], call)
}

// explain is [Explain] of an agent that was read.
func (o Options) explain(a *spec.Agent, call string) (Explanation, error) {
	name, rest, _ := strings.Cut(strings.TrimSpace(call), " ")
	if name == "" {
		return Explanation{}, errors.New("launch: not a call: give a tool and its arguments, for example 'fs.read {\"path\": \"a.txt\"}'")
	}
	if r := a.External(); r != nil {
		return Explanation{}, fmt.Errorf("launch: %s decides itself what it does: Pawl judges none of its calls", r.Command[0])
	}
	o.checking, o.tree = true, newTree(nil)
	if err := o.gather(a); err != nil {
		return Explanation{}, err
	}
	o.nested = nestedFor(a, o.Workspace, anyBuiltin())
	var refusal error
	if o.confined, refusal = o.confinement(a, ""); refusal != nil && !errors.Is(refusal, ErrSandbox) {
		return Explanation{}, refusal
	}
	env, err := o.environment(a, o.resolver(a.Dir))
	if err != nil {
		return Explanation{}, err
	}
	tools := env.Tools
	c := llm.ToolCall{CallID: "explained", Name: name}
	if t, known := tools.Lookup(name); known {
		if c.Args, err = readArgs(t, strings.TrimSpace(rest)); err != nil {
			return Explanation{}, assembly.Closing(env, err)
		}
	}
	e := Explanation{Call: tools.Resolve(c.CallID, c), Hooks: []agent.Hook{}, Rules: []policy.Verdict{}}
	if e.Call.Problem == nil {
		cfg := agent.Config{Hooks: assembly.Declared(env.Hooks)}
		e.Hooks = append(e.Hooks, cfg.HooksBefore(e.Call.Tool)...)
		r := o.permissions(a)
		e.Decision, e.Rules = r.Explain(&e.Call)
		e.Hidden, _ = assembly.Hides(r, tools, e.Call.Tool)
		r.Taint = event.Taint{Untrusted: &event.TaintSource{}, Private: &event.TaintSource{}}
		if v := r.Decide(&e.Call); v.Decision != e.Decision.Decision {
			v.Reason = "once the run has both untrusted text and private data"
			e.Tainted = &v
		}
		if t, known := tools.Lookup(e.Call.Tool); known {
			e.Sandbox = o.confined.boundary(refusal, t, e.Decision.Sandbox, e.Call.Facts)
		}
	}
	return e, assembly.Closing(env, nil)
}

// readArgs reads what stands behind a tool's name: an object in JSON, or as it is
// the one text that the tool needs.
func readArgs(t tool.Tool, text string) (json.RawMessage, error) {
	if text == "" || text[0] == '{' && json.Valid([]byte(text)) {
		return json.RawMessage(text), nil
	}
	var schema struct {
		Properties map[string]struct{ Type string }
		Required   []string
	}
	if err := json.Unmarshal(t.Schema, &schema); err != nil {
		return nil, fmt.Errorf("launch: the schema of %s: %w", t.Name, err)
	}
	if need := schema.Required; len(need) == 1 && schema.Properties[need[0]].Type == "string" {
		args, err := json.Marshal(map[string]string{need[0]: text})
		if err != nil {
			return nil, fmt.Errorf("launch: %w", err)
		}
		return args, nil
	}
	form := make([]string, len(schema.Required))
	for i, name := range schema.Required {
		form[i] = fmt.Sprintf("%q: …", name)
	}
	return nil, fmt.Errorf("launch: not a call: the arguments of %s are no object in JSON; write '%s {%s}'", t.Name, t.Name, strings.Join(form, ", "))
}
