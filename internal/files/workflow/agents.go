package workflow

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

// validateAgents checks the agents of the file.
func (f *workflowFile) validateAgents() {
	for _, name := range slices.Sorted(maps.Keys(f.w.Agents)) {
		a, at := f.w.Agents[name], decode.Join("agents", name)
		if a == nil {
			a = &WorkflowAgent{}
			f.w.Agents[name] = a
		}
		if !spec.StepID.MatchString(name) {
			f.fail(at, "a small letter, then up to 63 small letters, digits, _ and -", "%q is no name of an agent", name)
		}
		if a.Description == "" && a.AgentFile == "" {
			decode.Missing(f.Report, at+".description", "what the agent is for")
		}
		decode.Within(f.Report, at+".maxTurns", a.MaxTurns, 0, 1_000_000)
		decode.Within(f.Report, at+".topP", a.TopP, 0, 1)
		if a.TopP != nil {
			f.Warn(at+".topP", "is not sent to models, which use their own")
		}
		if a.AgentFile != "" || f.Has(at+".file") {
			f.validateAgentFile(at, a)
			continue
		}
		f.tools(at, a)
		if a.Model != "" && a.ModelPolicy != nil {
			f.fail(at+".model", "model or model_policy", "both are given")
		}
		if a.Model != "" {
			f.model(at+".model", a.Model)
		}
		built := f.built(name, a)
		f.validateAgent(built, at)
	}
}

// validateAgentFile checks an agent that has a file of its own.
func (f *workflowFile) validateAgentFile(at string, a *WorkflowAgent) {
	for _, key := range []string{"prompt", "tools", "disallowedTools", "model_policy", "approvals", "resultSchema", "temperature", "topP", "maxTurns"} {
		if f.Has(decode.Join(at, key)) {
			f.fail(decode.Join(at, key), "no such key beside file", "the agent file says that")
		}
	}
	if a.Model != "" {
		f.model(at+".model", a.Model)
	}
	if f.refusedFile(at+".file", "file") {
		return
	}
	path := f.path(a.AgentFile)
	o := f.options
	if a.Model != "" {
		o.Model = a.Model
	}
	if _, err := spec.ReadAgent(path, o); err != nil {
		f.fail(at+".file", "the path of an agent file, relative to this one", "%s", spec.FirstLine(err))
	}
}

// validateAgent checks an agent of the file by the rules of an agent file, and reports
// the problems at their positions in the workflow.
func (f *workflowFile) validateAgent(a *spec.Agent, at string) {
	held := *a
	if f.Has(at + ".model") {
		held.ModelPolicy.Primary = spec.Model{} // is checked elsewhere
	}
	problems, _ := errors.AsType[decode.Errors](held.Validate(f.options))
	for _, p := range problems {
		path := at
		for _, s := range samePlaces() {
			if rest, found := strings.CutPrefix(p.Path, s.agent); found {
				path = decode.Join(at, s.here) + rest
				break
			}
		}
		if strings.HasPrefix(p.Path, "tools.permissions") {
			path = strings.TrimPrefix(p.Path, "tools.")
		}
		if !f.Reported(path) {
			f.fail(path, p.Expected, "%s", p.Message)
		}
	}
}

// samePlace maps a key of an agent file to its name in a workflow.
type samePlace struct{ agent, here string }

func samePlaces() []samePlace {
	return []samePlace{
		{"model_policy.primary.model", "model"}, {"model_policy.decoding.temperature", "temperature"}, {"model_policy", "model_policy"},
		{"tools.allow", "tools"}, {"tools.approvals", "approvals"}, {"prompt.system", "prompt"}, {"resultSchema", "resultSchema"}, {budget.CycleCap, "maxTurns"},
	}
}

// built returns an agent of the workflow in the form of an agent file.
func (f *workflowFile) built(name string, w *WorkflowAgent) *spec.Agent {
	a := &spec.Agent{
		Identity: spec.Identity{Name: name, Description: w.Description}, Dir: f.w.Dir, File: f.w.File,
		ResultSchema: w.ResultSchema,
	}
	if w.ModelPolicy != nil {
		a.ModelPolicy = *w.ModelPolicy
	}
	switch {
	case w.Model != "":
		a.ModelPolicy.Primary = spec.Model{Model: f.bare(w.Model)}
	case w.ModelPolicy == nil:
		a.ModelPolicy.Primary = spec.Model{Model: f.options.Classes["default"]}
	}
	if w.Temperature != nil {
		a.ModelPolicy.Decoding.Temperature = w.Temperature
	}
	if w.MaxTurns != nil && *w.MaxTurns > 0 {
		a.MaxCycles = w.MaxTurns
	}
	a.Prompt.System = f.text(decode.Join("agents", name)+".prompt", w.Prompt)
	a.System = a.Prompt.System
	f.allow(a, w)
	a.Tools.Permissions = f.w.Permissions
	return a
}

// allow converts the lists of tools to those of an agent file.
func (f *workflowFile) allow(a *spec.Agent, w *WorkflowAgent) {
	if w.Tools != nil {
		a.Tools.Allow = spec.Names{}
		for _, name := range w.Tools {
			name = f.toolName(name)
			if f.exists(name) && !slices.Contains(a.Tools.Allow, name) && !slices.ContainsFunc(w.DisallowedTools, func(d string) bool { return f.toolName(d) == name }) {
				a.Tools.Allow = append(a.Tools.Allow, name)
			}
		}
	} else {
		for _, name := range w.DisallowedTools {
			if name = f.toolName(name); f.exists(name) {
				a.Tools.Rules = append(a.Tools.Rules, spec.Rule{Deny: name})
			}
		}
	}
	for name, when := range w.Approvals {
		if a.Tools.Approvals == nil {
			a.Tools.Approvals = map[string]string{}
		}
		a.Tools.Approvals[f.toolName(name)] = when
	}
}

// toolName returns our name of a tool, given another program's name.
func (f *workflowFile) toolName(name string) string { return cmp.Or(f.options.Aliases[name], name) }

func (f *workflowFile) exists(tool string) bool {
	return f.options.Tools == nil || slices.Contains(f.options.Tools, tool)
}

// tools reports unknown names of tools.
func (f *workflowFile) tools(at string, a *WorkflowAgent) {
	for key, names := range map[string][]string{"tools": a.Tools, "disallowedTools": a.DisallowedTools} {
		for i, name := range names {
			path := fmt.Sprintf("%s.%s[%d]", at, key, i)
			if !f.exists(f.toolName(name)) && !f.Reported(path) {
				f.unknown(path, "one of "+strings.Join(f.options.Tools, ", "), fmt.Sprintf("%q is not a tool, and matches nothing", name))
			}
		}
	}
}

// unknown reports a name that the specification leaves to implementations: in a plain
// workflow file it causes a warning.
func (f *workflowFile) unknown(path, expected, message string) {
	if f.w.APIVersion == "" {
		f.Warn(path, "%s", message)
		return
	}
	f.fail(path, expected, "%s", message)
}

// model reports an unknown model.
func (f *workflowFile) model(path, name string) {
	name = f.bare(name)
	if f.Reported(path) || !f.options.Confined(f.Report, path, name) || f.options.Model != "" {
		return
	}
	if !strings.Contains(name, "/") {
		f.unknown(path, "provider/model, for example anthropic/claude-sonnet-4-5", fmt.Sprintf("no model %s is known; a run needs --model", name))
		return
	}
	if f.options.CheckModel == nil {
		return
	}
	if err := f.options.CheckModel(f.w.Dir, name); err != nil {
		f.unknown(path, "a model that can be called", fmt.Sprintf("%v; a run needs --model", err))
	}
}

// bare adds the provider to a name without one.
func (f *workflowFile) bare(name string) string {
	if f.options.FindModel == nil || strings.Contains(name, "/") {
		return name
	}
	if whole, known := f.options.FindModel(name); known {
		return whole
	}
	return name
}

// knownAgent reports a missing agent.
func (f *workflowFile) knownAgent(path, name string) bool {
	if f.w.Agents[name] != nil || f.imported[name] != nil {
		return true
	}
	if f.Reported(path) {
		return false
	}
	names := append(slices.Sorted(maps.Keys(f.w.Agents)), slices.Sorted(maps.Keys(f.imported))...)
	if meant := decode.Closest(name, names); meant != "" {
		f.fail(path, "an agent of agents", "there is no agent %q; did you mean %s?", name, meant)
	} else {
		f.fail(path, "an agent of agents", "there is no agent %q", name)
	}
	return false
}

// owner returns the file that defines an agent.
func (f *workflowFile) owner(name string) *workflowFile {
	if o := f.imported[name]; o != nil && f.w.Agents[name] == nil {
		return o
	}
	return f
}

// schemaOf returns the schema of an agent's result, nil for none.
func (f *workflowFile) schemaOf(name string) json.RawMessage {
	o := f.owner(name)
	switch a := o.w.Agents[name]; {
	case a == nil:
		return nil
	case a.AgentFile != "":
		if file, err := o.agentFile(a); err == nil && file.ResultSchema != nil {
			return file.ResultSchema.JSON
		}
		return nil
	case a.ResultSchema == nil:
		return nil
	default:
		return a.ResultSchema.JSON
	}
}

// agentFile reads the file of an agent.
func (f *workflowFile) agentFile(w *WorkflowAgent) (*spec.Agent, error) {
	o := f.options
	if w.Model != "" {
		o.Model = w.Model
	}
	if f.options.Sent {
		return &spec.Agent{}, nil
	}
	a, err := spec.ReadAgent(f.path(w.AgentFile), o)
	if err == nil && w.Model != "" {
		a.ModelPolicy.Primary = spec.Model{Model: f.bare(w.Model)}
	}
	return a, err
}

// validateBudgets checks the limits of the workflow by the rules of an agent file.
func (f *workflowFile) validateBudgets() {
	a := f.w.Limits()
	a.Budgets.Validate(f.Report, a)
	decode.Money(f.Report, "budget."+budget.CostPerRun, f.w.Budget.USDPerRun)
}

// Limits returns the limits of the workflow, and the permissions of its commands, in
// the form of an agent.
func (w *Workflow) Limits() *spec.Agent {
	return &spec.Agent{
		Identity: spec.Identity{Name: w.Name}, ModelPolicy: spec.ModelPolicy{Budget: w.Budget}, Budgets: w.Budgets, Tools: spec.Tools{Permissions: w.Permissions},
		Hooks: w.Hooks, Dir: w.Dir, File: w.File,
	}
}

// Restore parses the top level of a workflow file, which was validated when a
// run of it began. The run's first event contains its steps and what they name.
func Restore(path string, data []byte) (*Workflow, error) {
	r, w := decode.New(path), &Workflow{Dir: filepath.Dir(path), File: filepath.Base(path)}
	if r.Fill(w, data, workflowExample, maxWorkflowValues); len(r.Problems) > 0 {
		return nil, r.Problems
	}
	return w, nil
}

// CoordinatorAgent is the name of the agent that receives messages of the steps of
// a workflow.
const CoordinatorAgent = "coordinator agent"

// validateCoordinator checks the coordinator.
func (f *workflowFile) validateCoordinator() {
	c := f.w.Coordinator
	if c == nil || c.Off {
		return
	}
	decode.Within(f.Report, "coordinator.maxTurns", c.MaxTurns, 0, 1_000_000)
	f.text("coordinator.prompt", c.Prompt)
	if c.Model != "" {
		f.model("coordinator.model", c.Model)
	}
}

// coordinate adds the coordinator to a plan, unless the file has none, or no agent
// could send it messages. If the file names no model for it, it uses the model of the
// class default, or that of the first step's agent.
func (f *workflowFile) coordinate(p *plan.Plan) {
	c := f.w.Coordinator
	first := f.uses[firstAgent(p.Steps)]
	if first == nil || c != nil && c.Off {
		return
	}
	if c == nil {
		c = &Coordinator{}
	}
	a := &spec.Agent{Identity: spec.Identity{Name: CoordinatorAgent, Description: "Receives what the steps send."}, Dir: f.w.Dir, File: f.w.File}
	switch model := cmp.Or(f.bare(c.Model), f.options.Classes["default"]); {
	case model != "":
		a.ModelPolicy.Primary = spec.Model{Model: model}
	case len(first.Chain()) > 0:
		a.ModelPolicy.Primary, a.Dir, a.File = spec.Model{Model: first.Chain()[0]}, first.Dir, first.File // the directory of a script
	case f.options.Model == "":
		return // the steps have no model either, so nothing runs
	}
	if c.MaxTurns != nil && *c.MaxTurns > 0 {
		a.MaxCycles = c.MaxTurns
	}
	a.Prompt.System = f.text("coordinator.prompt", c.Prompt)
	a.System = a.Prompt.System
	a.Tools.Allow = spec.Names{}
	p.Coordinator = f.named(CoordinatorAgent)
	f.uses[p.Coordinator] = a
}

// firstAgent returns the agent of the first step that has one, empty for none.
func firstAgent(steps []plan.Step) string {
	for _, s := range steps {
		switch {
		case s.Agent != nil:
			return s.Agent.Name
		case s.Plan != nil:
			return firstAgent(slices.Concat(s.Plan.Steps, steps[1:]))
		case s.Loop != nil:
			return firstAgent(slices.Concat(s.Loop.Body.Steps, steps[1:]))
		}
		steps = steps[1:]
	}
	return ""
}
