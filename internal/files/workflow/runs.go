package workflow

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

// nest reads the file that a step runs, and all that its steps run. It has its own
// agents, expressions and limits.
func (f *workflowFile) nest(at, name string) {
	const expected = "the path of a workflow file, relative to this one"
	if f.Reported(at) || f.refusedFile(at, "workflow") {
		return
	}
	path := f.path(name)
	abs, above := spec.Absolute(path), slices.Concat(f.above, f.open)
	switch {
	case slices.Contains(above, abs):
		f.fail(at, "another file", "%s runs itself", filepath.Base(abs))
		return
	case f.runs[f.runName(name)] != nil:
		return
	case len(f.above) > spec.MaxLevels:
		f.fail(at, fmt.Sprintf("runs of at most %d levels", spec.MaxLevels+1), "is one too many")
		return
	}
	data, err := decode.ReadFile(path)
	switch {
	case err != nil:
		f.fail(at, expected, "cannot be read: %v", err)
		return
	case !spec.ParseHeading(data).Workflow():
		f.fail(at, expected, "%s is no workflow", name)
		return
	}
	inner := &workflowFiles{
		options: f.options, checker: f.checker, uses: f.uses, root: f.root, runs: map[string]*workflowFile{}, above: above, of: f.runName(name),
	}
	file := inner.parse(path, data)
	f.found, f.noted, f.unbuilt = slices.Concat(f.found, inner.found), slices.Concat(f.noted, inner.noted), slices.Concat(f.unbuilt, inner.unbuilt)
	f.runs[f.runName(name)] = file
}

// runName returns the plan's name for the run of a file: its path relative to the
// outermost run's file. No agent has such a name.
func (f *workflowFile) runName(name string) string {
	abs := spec.Absolute(f.path(name))
	if rel, err := filepath.Rel(f.root, abs); err == nil {
		name = filepath.ToSlash(rel)
	}
	if !strings.ContainsAny(name, "./") {
		name = "./" + name
	}
	return name
}

// whole returns the plan of a run's file, with those that its steps run.
func (f *workflowFile) whole() plan.Plan {
	p := f.plan()
	f.coordinate(&p)
	f.hook()
	for _, name := range slices.Sorted(maps.Keys(f.runs)) {
		if p.Runs == nil {
			p.Runs = map[string]plan.Inner{}
		}
		inner := f.runs[name]
		inner.w.Options.Isolation = cmp.Or(inner.w.Options.Isolation, f.w.Options.Isolation)
		p.Runs[name] = plan.Inner{Plan: inner.whole(), File: plan.File{Path: spec.Absolute(inner.File), Text: string(inner.data)}}
	}
	return p
}

// innerOf separates the name of an agent from that of its run, in a step that is a run.
const innerOf = " of "

// named returns a name for an agent that is unique in the tree.
func (f *workflowFile) named(name string) string {
	if f.of != "" {
		name += innerOf + f.of
	}
	return name
}

// CoordinatorBeside returns the name of the coordinator for an agent, given the agent's
// own name, if its workflow has one. An agent with that name is the coordinator.
func CoordinatorBeside(name string) string {
	if _, of, inner := strings.Cut(name, innerOf); inner {
		return CoordinatorAgent + innerOf + of
	}
	return CoordinatorAgent
}
