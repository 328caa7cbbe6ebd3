package spec

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/files/expr"
)

// mostIterations bounds the numbers of iterations in a goal.
const mostIterations = 1_000_000

// mostOfObjective bounds an objective, in characters.
const mostOfObjective = 300

func (g *Goal) validate(r *decode.Report, o Options) {
	r.Choices(reflect.ValueOf(g), "")
	if g.Identity.Name == "" {
		decode.Missing(r, "identity.name", "the goal's name")
	}
	g.validateObjective(r)
	g.validateDone(r)
	validateEvidence(r, "validation", g.Validation, "how the work is validated: [{command: [argv…]} or {cel: EXPRESSION}]")
	g.validateStop(r)
	if p := g.Plan; p != nil && !p.Auto && len(p.Steps) == 0 && !r.Reported("plan") {
		r.At("plan", p.Expected(), "is an empty list")
	}
	if g.Plan != nil {
		for i, s := range g.Plan.Steps {
			decode.NotEmpty(r, fmt.Sprintf("plan[%d]", i), s)
		}
	}
	if g.Checkpoints != nil && g.Checkpoints.Every == (Every{}) && !r.Reported("checkpoints.every") && !r.Reported("checkpoints") {
		decode.Missing(r, "checkpoints.every", g.Checkpoints.Every.Expected())
	}
	if t := g.ReviewTimeout; t != nil && *t <= 0 && !r.Reported("review_timeout") {
		r.At("review_timeout", "a time above 0", "is %v", float64(*t))
	}
	g.uses(r, o)
}

// validateObjective checks that the objective is one thing to reach.
func (g *Goal) validateObjective(r *decode.Report) {
	const path = "objective"
	expected := g.Objective.Expected()
	text := strings.TrimSpace(string(g.Objective))
	switch n := utf8.RuneCountInString(text); {
	case r.Reported(path):
	case text == "" && !r.Has(path):
		decode.Missing(r, path, expected)
	case text == "":
		r.At(path, expected, "is empty")
	case isList(text):
		r.At(path, expected, "is a list; a goal has one objective, and its plan has steps")
	case n > mostOfObjective:
		r.At(path, fmt.Sprintf("at most %d characters", mostOfObjective), "has %d characters", n)
	case sentences(text) > 1:
		r.At(path, expected, "has %d sentences", sentences(text))
	}
}

// isList reports whether lines of a text begin like the items of a list.
func isList(text string) bool {
	item := regexp.MustCompile(`(?m)^\s*([-*•+]|\d+[.)])\s`)
	return len(item.FindAllString(text, 2)) > 1 || item.FindStringIndex(text) != nil && item.FindStringIndex(text)[0] == 0
}

// sentences counts the sentences of a text: a final mark before white space. A mark
// after an abbreviation or a single letter does not count.
func sentences(text string) int {
	n, words := 0, strings.Fields(text)
	for i, word := range words {
		bare := strings.TrimRight(word, `"')]}»”’`)
		last, _ := utf8.DecodeLastRuneInString(bare)
		inner := strings.Count(bare, "。") + strings.Count(bare, "！") + strings.Count(bare, "？")
		if strings.ContainsRune("。！？", last) {
			inner--
		}
		n += max(inner, 0)
		if i == len(words)-1 || strings.ContainsRune("!?。！？", last) || last == '.' && !abbreviates(strings.TrimLeft(bare, `"'([{«“‘`)) {
			n++
		}
	}
	return n
}

func abbreviates(word string) bool {
	word = strings.ToLower(strings.TrimSuffix(word, "."))
	known := []string{"e.g", "i.e", "etc", "vs", "cf", "approx", "incl", "resp", "no", "mr", "mrs", "ms", "dr", "st", "v"}
	first, size := utf8.DecodeRuneInString(word)
	return slices.Contains(known, word) || size == len(word) && unicode.IsLetter(first)
}

func (g *Goal) validateDone(r *decode.Report) {
	const expected = "what shows that it is done: {when: [{command: [argv…]} or {cel: EXPRESSION}]}"
	d := g.Done
	if d == nil {
		if !r.Reported("done") {
			decode.Missing(r, "done", expected)
		}
		return
	}
	validateEvidence(r, "done.when", d.When, expected)
	decode.NotEmpty(r, "done.judge.prompt", decode.Given(d.Judge).Prompt)
}

func validateEvidence(r *decode.Report, path string, all []Evidence, expected string) {
	switch {
	case len(all) > 0 || r.Reported(path):
	case r.Has(path):
		r.At(path, expected, "is an empty list")
	default:
		decode.Missing(r, path, expected)
	}
	for i, e := range all {
		at := fmt.Sprintf("%s[%d]", path, i)
		if r.Reported(at) || r.Reported(at+".command") || r.Reported(at+".cel") {
			continue
		}
		switch {
		case (e.Command != nil) == (strings.TrimSpace(e.CEL) != ""):
			r.At(at, "command or cel, one of the two", "says %s", map[bool]string{true: "both", false: "neither"}[e.Command != nil])
		case e.Command != nil && (len(e.Command.Argv) == 0 || e.Command.Argv[0] == ""):
			r.At(at+".command", e.Command.Expected(), "names no program")
		case e.Command == nil:
			CheckExpression(r, at+".cel", e.CEL, expr.Scope{Place: expr.Until, Single: true})
		}
	}
}

func (g *Goal) validateStop(r *decode.Report) {
	seen := map[string]bool{}
	for i, s := range g.Stop {
		at := fmt.Sprintf("stop[%d]", i)
		decode.Within(r, at+".max_iterations", s.MaxIterations, 1, mostIterations)
		decode.Within(r, at+".failures", s.Failures, 1, mostIterations)
		given := map[string]bool{"max_iterations": s.MaxIterations != nil, "failures": s.Failures != nil, "final_answer": s.FinalAnswer}
		for _, name := range slices.Sorted(maps.Keys(given)) {
			if given[name] && seen[name] {
				r.At(at, "each rule once", "%s is given twice", name)
			}
			seen[name] = seen[name] || given[name]
		}
		decode.Single(r, at, "one of max_iterations, failures, final_answer: true", given["max_iterations"], given["failures"], given["final_answer"])
	}
}

// The names of a goal's agents in its plan.
const (
	GoalWorker   = "worker"
	goalJudge    = "judge"
	goalPlanner  = "planner"
	goalReviewer = "reviewer"
)

// uses sets the agents of the goal.
func (g *Goal) uses(r *decode.Report, o Options) {
	worker := g.worker(r, o)
	if worker == nil {
		return
	}
	g.Uses = map[string]*Agent{GoalWorker: worker, goalReviewer: g.reviewer(worker, goalReviewer, "answers the questions at a checkpoint")}
	if g.Plan != nil && g.Plan.Auto {
		g.Uses[goalPlanner] = g.reviewer(worker, goalPlanner, "plans the way to the objective")
	}
	if g.Done == nil || g.Done.Judge == nil {
		return
	}
	j := g.Done.Judge
	judge := g.reviewer(worker, goalJudge, "says whether the objective is reached")
	judge.Prompt.System = strings.TrimSpace(judge.Prompt.System + "\n\n" + j.Prompt)
	judge.System = judge.Prompt.System
	if j.Model != "" {
		judge.ModelPolicy, judge.Dir = ModelPolicy{Primary: Model{Model: j.Model}}, g.Dir
		held := &decode.Report{}
		judge.ModelPolicy.validate(held, judge, o)
		for _, p := range held.Problems {
			r.At("done.judge.model", p.Expected, "%s", p.Message)
		}
	}
	g.Uses[goalJudge] = judge
}

// worker returns the agent that does the work, nil if it is invalid.
func (g *Goal) worker(r *decode.Report, o Options) *Agent {
	if g.Agent == "" && !r.Has("agent") {
		a := &Agent{
			APIVersion: Version, Kind: "Agent", Identity: g.Identity, ModelPolicy: g.ModelPolicy, Prompt: g.Prompt, Tools: g.Tools, Budgets: g.Budgets, Dir: g.Dir, File: g.File,
		}
		a.validate(r, o)
		a.ModelPolicy.Budget = Money{} // the budget belongs to the goal
		_, a.Budgets = g.budgets()
		return a
	}
	for _, key := range []string{"model_policy", "prompt", "tools"} {
		if r.Has(key) {
			r.At(key, "agent, or model_policy, prompt and tools", "the file in agent says that")
		}
	}
	if decode.NotEmpty(r, "agent", g.Agent); g.Agent == "" {
		return nil
	}
	path := PathIn(g.Dir, g.Agent)
	g.Budgets.Validate(r, g.Limits())
	if _, each := g.budgets(); each.Limits != (budget.Limits{}) || len(each.Actions) > 0 {
		r.At("budgets", "limits of the whole goal: in money, in time and in tokens", "the file in agent says the limits of each run")
	}
	a, err := ReadAgent(path, o)
	if err != nil {
		r.At("agent", "the path of an agent file, relative to this one", "%s", FirstLine(err))
		return nil
	}
	if g.Tools = a.CommandTools(); a.Identity.Name == "" {
		a.Identity.Name = agentName(path)
	}
	return a
}

// reviewer returns an agent that answers one question about the goal and does nothing
// else. It has the architect's model if the worker's models have roles.
func (g *Goal) reviewer(worker *Agent, name, does string) *Agent {
	p := worker.ModelPolicy
	a := &Agent{
		Identity:    Identity{Name: name, Description: does},
		ModelPolicy: ModelPolicy{Primary: p.Primary, Fallbacks: p.Fallbacks, Roles: p.Roles, Role: p.Role}, Role: worker.Role,
		Dir: worker.Dir, File: worker.File, ResultSchema: &ResultSchema{JSON: goalSchema(name)},
	}
	if architect := p.Roles.Architect; architect != (Model{}) {
		a.ModelPolicy = ModelPolicy{Primary: architect, Fallbacks: slices.Concat(slices.DeleteFunc([]Model{p.Primary}, func(m Model) bool { return m == Model{} }), p.Fallbacks)}
		a.Role = ""
	}
	a.Tools.Allow = Names{}
	a.Prompt.System = "You are part of a goal: an agent works on one objective, in iterations that begin afresh. You do none of its work. " +
		"Go by evidence before what the agent says of itself; what is claimed and not shown is not done. Answer by submit_result."
	a.System = a.Prompt.System
	return a
}
