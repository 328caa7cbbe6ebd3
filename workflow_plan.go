package pawl

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/internal/rules/plan"
)

// maxItems is the default bound of a loop's items.
const maxItems = 100_000

var stepID = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// planner converts a workflow to a plan. The plan contains only names; their values are
// in the planner, by the places of the steps.
type planner struct {
	of     Workflow
	report func(field, format string, args ...any)
	// functions perform steps, workflows perform them as runs; predicates and items
	// replace expressions.
	functions map[string]*Step
	workflows map[string]placed
	values    map[string]func(Values) (any, error)
}

// placed is a workflow that is a step, with its field.
type placed struct {
	field string
	*Workflow
}

func newPlanner(w Workflow, report func(field, format string, args ...any)) *planner {
	return &planner{
		of: w, report: report, functions: map[string]*Step{}, workflows: map[string]placed{}, values: map[string]func(Values) (any, error){},
	}
}

func (b *planner) plan() plan.Plan {
	p := plan.Plan{Name: b.of.Name, Concurrency: b.of.Concurrency, Timeout: b.of.Timeout}
	p.Steps = b.steps("Steps", "", b.of.Steps)
	b.rules(&p)
	if err := p.Check(); err != nil {
		for _, wrong := range parts(err) {
			b.invalid(wrong)
		}
	}
	b.notBelow("Concurrency", b.of.Concurrency)
	b.notBelow("Timeout", b.of.Timeout)
	checkChoice(b.report, "OnFailure", b.of.OnFailure, plan.SkipDependents, plan.Abort)
	checkChoice(b.report, "Order", b.of.Order, plan.RoundRobin, plan.LeastBusy)
	return p
}

// rules sets what is the same for all graphs of a workflow.
func (b *planner) rules(p *plan.Plan) { p.OnFailure, p.Scheduler = b.of.OnFailure, b.of.Order }

// invalid reports an error in the plan under its field.
func (b *planner) invalid(err error) {
	wrong := err.(*plan.Invalid)
	field := strings.NewReplacer("loop.body.steps", "Loop.Steps", "plan.steps", "Steps", "steps", "Steps", "loop", "Loop", "items", "Items", "body", "Steps", "onLimit", "OnLimit").Replace(wrong.At)
	b.report(field, "%s", wrong.Reason)
}

func (b *planner) steps(field, above string, steps []Step) []plan.Step {
	out := make([]plan.Step, len(steps))
	for i := range steps {
		at := fmt.Sprintf("%s[%d]", field, i)
		if !stepID.MatchString(steps[i].ID) {
			b.report(at+".ID", "%q is not made of letters, digits, - and _", steps[i].ID)
		}
		out[i] = b.step(at, strings.TrimPrefix(above+"."+steps[i].ID, "."), &steps[i])
	}
	return out
}

// step returns the plan of a step, whose place is unique in the workflow.
func (b *planner) step(field, place string, s *Step) plan.Step {
	b.notBelow(field+".Timeout", s.Timeout)
	b.notBelow(field+".Retries", s.Retries)
	p := plan.Step{ID: s.ID, DependsOn: s.DependsOn, Timeout: s.Timeout, Retries: s.Retries}
	p.Condition = b.expression(field+".Condition", s.Condition, place+".When", holds(s.When))
	if s.Loop != nil {
		p.Loop = b.loop(field, place, s)
		return p
	}
	b.does(&p, field, place, s)
	return p
}

// does sets what a step does.
func (b *planner) does(p *plan.Step, field, place string, s *Step) {
	if s.Agent != "" {
		a := b.agent(field+".Agent", s.Agent)
		p.Agent = &plan.Agent{Name: s.Agent, Instructions: s.Instructions, Files: s.Files, Result: len(a.Schema) > 0}
	} else if s.Instructions != "" || len(s.Files) > 0 {
		b.report(field+".Instructions", "are for an Agent, and there is none")
	}
	if s.Func != nil {
		p.Func = &plan.Func{Name: place + "()"}
		b.functions[p.Func.Name] = s
	}
	p.Command = b.command(field+".Command", s.Command)
	if s.Workflow != nil {
		p.Run = &plan.Run{Kind: flowKind, Name: "workflow " + place}
		b.workflows[p.Run.Name] = placed{field + ".Workflow", s.Workflow}
	}
	if s.Steps != nil {
		p.Plan = &plan.Plan{Steps: b.steps(field+".Steps", place, s.Steps)}
		b.rules(p.Plan)
	}
}

func (b *planner) agent(field, name string) Agent {
	a, there := b.of.Agents[name]
	if !there {
		b.report(field, "there is no agent %q", name)
	}
	return a
}

func (b *planner) command(field string, argv []string) *plan.Command {
	if argv == nil {
		return nil
	}
	switch {
	case len(argv) == 0 || argv[0] == "":
		b.report(field, "names no program")
	case b.of.Commands == nil:
		b.report(field, "needs Commands, which run it")
	}
	return &plan.Command{Argv: argv}
}

// expression returns the text in a plan for an expression, or for a function of the
// program; empty for neither.
func (b *planner) expression(field, expression, name string, f func(Values) (any, error)) string {
	switch {
	case f != nil && expression != "":
		b.report(field, "is said by a function as well")
	case f != nil:
		name = goFunction + name
		b.values[name] = f
		return name
	case expression != "" && b.of.Expressions == nil:
		b.report(field, "needs Expressions, which evaluates it")
	}
	return expression
}

// goFunction precedes the name of a function in place of an expression.
const goFunction = "func "

func holds(f func(Values) (bool, error)) func(Values) (any, error) {
	if f == nil {
		return nil
	}
	return func(v Values) (any, error) { return f(v) }
}

func (b *planner) loop(field, place string, s *Step) *plan.Loop {
	l, at := s.Loop, field+".Loop"
	p := &plan.Loop{
		Max: l.Max, Delay: l.Delay, OnLimit: l.OnLimit, OnError: l.OnIterationError, Output: l.Output,
		JudgeFailuresMax: l.JudgeFailuresMax, Carry: plan.Carry{None: l.NoCarry},
	}
	b.notBelow(at+".Max", l.Max)
	b.notBelow(at+".Delay", l.Delay)
	b.notBelow(at+".JudgeFailuresMax", l.JudgeFailuresMax)
	checkChoice(b.report, at+".OnLimit", l.OnLimit, plan.LimitIsOK, plan.LimitStopped)
	checkChoice(b.report, at+".OnIterationError", l.OnIterationError, plan.IterationContinues)
	checkChoice(b.report, at+".Output", l.Output, plan.Cumulative)
	p.Items = b.items(at, place, l)
	for i := range l.StopWhen {
		p.StopWhen = append(p.StopWhen, b.stop(fmt.Sprintf("%s.StopWhen[%d]", at, i), fmt.Sprintf("%s.StopWhen[%d]", place, i), &l.StopWhen[i]))
	}
	var inner plan.Step
	b.does(&inner, field, place, s)
	switch p.Single = l.Steps == nil; {
	case p.Single:
		p.Body.Steps = []plan.Step{inner}
	case !reflect.ValueOf(inner).IsZero():
		b.report(at+".Steps", "are done in the place of what the step says that is done")
		fallthrough
	default:
		p.Body.Steps = b.steps(at+".Steps", place, l.Steps)
	}
	b.rules(&p.Body)
	return p
}

func (b *planner) items(at, place string, l *Loop) *plan.Items {
	b.notBelow(at+".Concurrency", l.Concurrency)
	b.notBelow(at+".MinSuccess", l.MinSuccess)
	checkChoice(b.report, at+".OnItemError", l.OnItemError, plan.Collect, plan.Continue)
	p := &plan.Items{
		Max: max(l.MaxItems, 0), Concurrency: l.Concurrency, OnError: l.OnItemError, MinSuccess: l.MinSuccess, MinSuccessPercent: l.MinSuccessPercent,
	}
	if l.MaxItems == 0 {
		p.Max = maxItems
	}
	p.Expression = b.expression(at+".ItemsExpression", l.ItemsExpression, place+".Items", l.ItemsFunc)
	if l.Items != nil {
		raw, err := json.Marshal(l.Items)
		if err == nil {
			err = json.Unmarshal(raw, &p.Static)
		}
		switch {
		case err != nil:
			b.report(at+".Items", "are no JSON array: %v", err)
		case p.Expression != "":
			b.report(at+".Items", "are said by a function or an expression as well")
		case p.Max > 0 && len(p.Static) > p.Max:
			b.report(at+".Items", "are %d, and at most %d may be (MaxItems)", len(p.Static), p.Max)
		}
		return p
	}
	if p.Expression != "" {
		return p
	}
	if l.Concurrency > 0 || l.OnItemError != "" || l.MinSuccess > 0 || l.MinSuccessPercent > 0 || l.MaxItems != 0 {
		b.report(at, "says something of items, and has none")
	}
	return nil
}

func (b *planner) stop(field, name string, s *Stop) plan.Stop {
	p := plan.Stop{Judge: s.Judge, Regex: s.Regex}
	p.Expression = b.expression(field+".Expression", s.Expression, name, holds(s.Func))
	p.Command = b.command(field+".Command", s.Command)
	if s.Judge != "" && !judges(b.agent(field+".Judge", s.Judge)) {
		b.report(field+".Judge", `the Schema of the agent %q has neither "done" nor "verdict"`, s.Judge)
	}
	if _, err := regexp.Compile("(?i)" + s.Regex); err != nil {
		b.report(field+".Regex", "%v", err)
	}
	said := 0
	for _, is := range []bool{p.Expression != "", p.Judge != "", p.Regex != "", p.Command != nil} {
		if is {
			said++
		}
	}
	if said != 1 {
		b.report(field, "has %d reasons instead of one", said)
	}
	return p
}

// judges reports whether an agent's result can be a verdict.
func judges(a Agent) bool {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	_ = json.Unmarshal(a.Schema, &schema) // an invalid schema is reported with the agent
	return slices.ContainsFunc([]string{"done", "verdict"}, func(name string) bool { return schema.Properties[name] != nil })
}

func (b *planner) notBelow(field string, value any) {
	if v := reflect.ValueOf(value); v.Int() < 0 {
		b.report(field, "%v is below 0", value)
	}
}

// tools returns the workflow's agents as tools that one agent would offer.
func (w Workflow) tools() []AgentTool {
	var all []AgentTool
	for _, name := range slices.Sorted(maps.Keys(w.Agents)) {
		a := w.Agents[name]
		a.Conversation.submits = len(a.Schema) > 0
		all = append(all, AgentTool{Name: name, Agent: a})
	}
	return all
}
