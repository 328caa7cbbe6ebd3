package workflow

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/files/expr"
	"github.com/pawlrun/pawl/internal/files/spec"
)

// Limits of the workflow specification.
const (
	maxSteps        = 100
	maxDescription  = 2000
	maxIncludeDepth = 5
)

// scopeOf is the scope of the steps of one graph.
type scopeOf struct {
	// loop is the enclosing loop, nil for none.
	loop expr.Loop
	of   *WorkflowLoop
	// outer is the scope of the loop's step.
	outer *scopeOf
	steps []WorkflowStep
	// above are the indexes of the direct and indirect dependencies of a step.
	above map[int]bool
}

func loopKind(l *WorkflowLoop) expr.Loop {
	if l.ForEach != nil {
		return expr.ForEach
	}
	return expr.Repeat
}

// validate checks a file against the specification and our own rules.
func (f *workflowFile) validate() {
	w := f.w
	f.Choices(reflect.ValueOf(w), "")
	if w.APIVersion == "" {
		f.refuseOurs(reflect.ValueOf(w).Elem(), "")
	}
	if w.Name == "" {
		decode.Missing(f.Report, "name", "the workflow's name")
	}
	f.short("description", w.Description)
	if w.Version != nil && *w.Version != 1 && !f.Reported("version") {
		f.fail("version", "1", "is %d, a version of the specification that is not known", *w.Version)
	}
	decode.Within(f.Report, "max_depth", w.MaxDepth, 1, spec.MaxLevels+1)
	decode.Within(f.Report, "options.maxConcurrency", w.Options.MaxConcurrency, 0, 1_000_000)
	decode.Within(f.Report, "options.maxRetries", w.Options.MaxRetries, 0, 100)
	f.validateAgents()
	f.validateBudgets()
	f.validateHooks()
	f.validateCoordinator()
	if len(w.Steps) == 0 && !f.Reported("steps") {
		f.fail("steps", "at least one step", "is empty")
	}
	if len(w.Steps) > maxSteps && len(f.open) == 1 {
		f.fail("steps", fmt.Sprintf("at most %d steps", maxSteps), "has %d steps", len(w.Steps))
		return
	}
	for i := range w.Steps {
		f.readIncludes(fmt.Sprintf("steps[%d]", i), &w.Steps[i])
	}
	f.validateSteps("steps", w.Steps, scopeOf{})
	f.refuseUnbuilt()
}

// refuseOurs reports the keys that a plain workflow file does not have.
func (f *workflowFile) refuseOurs(v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			f.refuseOurs(v.Elem(), path)
		}
	case reflect.Slice:
		for i := range v.Len() {
			f.refuseOurs(v.Index(i), fmt.Sprintf("%s[%d]", path, i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			f.refuseOurs(v.MapIndex(key), decode.Join(path, key.String()))
		}
	case reflect.Struct:
		for key, index := range decode.FieldsOf(v.Type()) {
			at := decode.Join(path, key)
			if v.Type().FieldByIndex(index).Tag.Get("ours") == "" {
				f.refuseOurs(v.FieldByIndex(index), at)
			} else if f.Has(at) {
				f.fail(at, "apiVersion: "+spec.Version+" at the top of the file", "is no key of the workflow specification, and needs it")
			}
		}
	}
}

// refuseUnbuilt reports requests that are not supported yet.
func (f *workflowFile) refuseUnbuilt() {
	if f.w.Hooks != nil && len(f.open) > 1 {
		f.notBuilt("hooks", "a file with hooks that another one includes")
	}
	const at = "options.isolation"
	switch isolation := f.w.Options.Isolation; {
	case isolation == worktreePerStep && f.options.CheckWorktrees != nil:
		switch refused, err := f.options.CheckWorktrees(); {
		case refused != "":
			f.noted = append(f.noted, f.Problem(f.NodeAt(at), at, "", spec.NotHere, refused))
		case err != nil:
			f.unbuilt = append(f.unbuilt, f.Problem(f.NodeAt(at), at, "a workspace in a git repository with a commit", "%v", err))
		}
	case isolation != "" && isolation != "none" && isolation != worktreePerStep:
		f.notBuilt(at, "the isolation "+isolation)
	}
}

// notBuilt reports a valid request that is not supported.
func (f *workflowFile) notBuilt(path, what string) {
	f.unbuilt = append(f.unbuilt, f.Problem(f.NodeAt(path), path, "a file without it", "%s is not built yet", what))
}

func (f *workflowFile) short(path, text string) {
	if n := utf8.RuneCountInString(text); n > maxDescription {
		f.fail(path, fmt.Sprintf("at most %d characters, or @FILE", maxDescription), "has %d characters", n)
	}
}

// validateSteps checks the steps of one graph.
func (f *workflowFile) validateSteps(path string, steps []WorkflowStep, in scopeOf) {
	places := map[string]int{}
	for i := range steps {
		at, id := fmt.Sprintf("%s[%d].id", path, i), steps[i].ID
		_, twice := places[id]
		switch {
		case f.Reported(at):
		case id == "":
			decode.Missing(f.Report, at, "the step's id")
		case !spec.StepID.MatchString(id):
			f.fail(at, "a small letter, then up to 63 small letters, digits, _ and -", "%q is not an id", id)
		case twice:
			f.fail(at, "an id of its own", "%q is the id of another step, too", id)
		default:
			places[id] = i
		}
	}
	above := f.validateEdges(path, steps, places)
	for i := range steps {
		f.validateStep(fmt.Sprintf("%s[%d]", path, i), &steps[i], scopeOf{loop: in.loop, of: in.of, outer: in.outer, steps: steps, above: above[i]})
	}
}

// validateEdges reports unknown dependencies and cycles, and returns the indexes of
// each step's dependencies.
func (f *workflowFile) validateEdges(path string, steps []WorkflowStep, places map[string]int) []map[int]bool {
	above := make([]map[int]bool, len(steps))
	var way []int
	var visit func(i int) map[int]bool
	visit = func(i int) map[int]bool {
		if above[i] != nil {
			return above[i]
		}
		way = append(way, i)
		defer func() { way = way[:len(way)-1] }()
		all := map[int]bool{}
		for k, id := range steps[i].DependsOn {
			at := fmt.Sprintf("%s[%d].dependsOn[%d]", path, i, k)
			d, known := places[id]
			if !known {
				f.unknownStep(at, id, steps)
				continue
			}
			if from := slices.Index(way, d); from >= 0 {
				f.fail(at, "steps that do not wait for each other", "is a cycle: %s", cycle(steps, append(way[from:], d)))
				continue
			}
			all[d] = true
			for further := range visit(d) {
				all[further] = true
			}
		}
		above[i] = all
		return all
	}
	for i := range steps {
		visit(i)
	}
	return above
}

func cycle(steps []WorkflowStep, way []int) string {
	ids := make([]string, len(way))
	for i, at := range way {
		ids[i] = steps[at].ID
	}
	return strings.Join(ids, " waits for ")
}

func (f *workflowFile) unknownStep(at, id string, steps []WorkflowStep) {
	if f.Reported(at) {
		return
	}
	var ids []string
	for _, s := range steps {
		ids = append(ids, s.ID)
	}
	if meant := decode.Closest(id, ids); meant != "" && len(id) > 2 {
		f.fail(at, "a step of the same list", "there is no step %s here; did you mean %s?", id, meant)
		return
	}
	f.fail(at, "a step of the same list", "there is no step %s here", id)
}

// validateStep checks one step.
func (f *workflowFile) validateStep(path string, s *WorkflowStep, in scopeOf) {
	r := f.Report
	decode.Within(r, path+".retries", s.Retries, 0, 1000)
	decode.Within(r, path+".maxRetries", s.MaxRetries, 0, 100)
	decode.NotEmpty(r, path+".condition", s.Condition)
	if !strings.HasPrefix(s.Instructions, "@") {
		f.short(path+".instructions", s.Instructions)
	}
	s.text, s.files = f.text(path+".instructions", s.Instructions), f.context(path+".contextFiles", s.ContextFiles)
	if s.Agent != "" || f.Has(path+".agent") {
		f.knownAgent(path+".agent", s.Agent)
	}
	if s.Model != "" {
		f.model(path+".model", s.Model)
	}
	if s.Condition != "" {
		f.check(path+".condition", s.Condition, expr.Scope{Place: expr.Condition, In: in.loop, Items: in.items(), Steps: f.results(in.steps)}, &in)
	}
	f.validateDoes(path, s)
	f.texts(path, s, in)
	if s.Loop != nil {
		if in.loop != expr.NoLoop {
			f.fail(path+".loop", "a step without a loop", "is a loop within a loop; an agent of a step may loop, or the step may be a workflow")
			return
		}
		f.validateLoop(path+".loop", s, in)
	}
}

// validateDoes reports conflicting actions of a step.
func (f *workflowFile) validateDoes(path string, s *WorkflowStep) {
	without := func(key string, others ...string) {
		if !f.Has(decode.Join(path, key)) {
			return
		}
		for _, other := range others {
			if at := decode.Join(path, other); f.Has(at) {
				f.fail(at, "no such key beside "+key, "a step with %s does not have it", key)
			}
		}
	}
	without("include", "agent", "instructions", "loop", "condition", "contextFiles", "model", "maxRetries", "workflow", "command", "input")
	without("workflow", "agent", "instructions", "loop", "contextFiles", "model", "maxRetries", "command")
	without("command", "agent", "instructions", "contextFiles", "model", "maxRetries", "input")
	if f.Has(path+".input") && s.Workflow == "" {
		f.fail(path+".input", "workflow beside it", "is the input of nothing")
	}
	if f.Has(path + ".command") {
		f.validateArgv(path+".command", s.Command)
	}
	if f.Has(path + ".workflow") {
		f.nest(path+".workflow", s.Workflow)
		s.text = f.text(path+".input", s.Input)
	}
}

func (f *workflowFile) validateArgv(path string, argv []string) {
	switch {
	case f.Reported(path):
	case len(argv) == 0 || argv[0] == "":
		f.fail(path, "a program and its arguments", "names no program")
	case f.options.Sent:
		f.fail(path, "a file without it", "starts a program of this machine, which a file that was sent may not")
	}
}
