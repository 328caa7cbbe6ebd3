// Package plan is what a run that starts others is to do, as a value: a graph of
// steps, of which a step may be a loop around a graph. Files and programs make
// plans, and machine/flow carries them out. A plan is pinned in the first event of
// its run, so its JSON only grows.
package plan

import (
	"encoding/json"
	"time"

	"github.com/pawlrun/pawl/llm"
)

// Plan is a graph of steps. Steps that depend on nothing start at once, others when
// all that they depend on has finished.
type Plan struct {
	Name  string `json:"name,omitempty"`
	Steps []Step `json:"steps"`
	// Concurrency is how many agents, functions, commands and runs may be at work at
	// once in this graph and in all that is below its steps, 0 for any number.
	Concurrency int `json:"concurrency,omitempty"`
	// Width is how many steps of this graph may be under way at once, each with all
	// that is below it, 0 for any number.
	Width int `json:"width,omitempty"`
	// OnFailure is what becomes of the others when a step fails.
	OnFailure OnFailure `json:"onFailure,omitempty"`
	// Timeout bounds the plan, 0 for no bound.
	Timeout time.Duration `json:"timeout,omitempty"`
	// Scheduler is the order in which steps start that are ready at once.
	Scheduler Scheduler `json:"scheduler,omitempty"`
	// Coordinator is the name of the agent that receives messages of steps, empty for
	// none. A run has that of its own plan, and none for the plans within it.
	Coordinator string `json:"coordinator,omitempty"`
	// Runs are the plans that steps run, here and below, by the names of the runs. A
	// run has those of its own plan, and none for the plans within it.
	Runs map[string]Inner `json:"runs,omitempty"`
	// Worktrees says that each agent and each command of this graph, and of all below
	// its steps but runs of other kinds, works in a git worktree of its own.
	Worktrees bool `json:"worktrees,omitempty"`
	// Refine reports whether the plan of a run is one loop around one agent: the
	// loop's end is the run's, and the agent's task is the run's input and, in later
	// iterations, the log of the earlier ones.
	Refine bool `json:"refine,omitempty"`
	// Team reports whether the steps of a run's plan are members of a team: each
	// task contains the run's input, and in a loop the members' answers of the
	// previous iteration. What ends a loop sees the input and the round, too.
	Team bool `json:"team,omitempty"`
	// Templates says of the plan of a run that the instructions and arguments of its
	// steps, at every depth, may name values, as [Pieces] reads them.
	Templates bool `json:"templates,omitempty"`
}

// OnFailure is what becomes of the other steps of a graph when one fails.
type OnFailure string

// The ways to go on after a failed step.
const (
	// Cascade fails the steps that depend on it, directly or not.
	Cascade OnFailure = ""
	// SkipDependents skips them.
	SkipDependents OnFailure = "skip-dependents"
	// Abort cancels everything that is under way and starts nothing more.
	Abort OnFailure = "abort"
)

// Scheduler is the order of steps that could start at once.
type Scheduler string

// The orders of the workflow specification.
const (
	// DependencyFirst starts what most other steps wait for.
	DependencyFirst Scheduler = ""
	// RoundRobin takes turns between the agents of the steps.
	RoundRobin Scheduler = "round-robin"
	// LeastBusy starts the step whose agent has the fewest steps under way.
	LeastBusy Scheduler = "least-busy"
)

// Step is a node of the graph. Exactly one of Agent, Func, Command, Run, Plan and
// Loop is set.
type Step struct {
	// ID names the step among those of its graph. Its id in the run is namespaced:
	// parent.inner for a plan in a plan, parent.0.inner for iterations that follow
	// each other, parent[0].inner for items.
	ID        string   `json:"id"`
	DependsOn []string `json:"dependsOn,omitempty"`
	// Condition is an expression without which the step is skipped where it is
	// false, empty for none.
	Condition string `json:"condition,omitempty"`
	// Timeout bounds the step with all its attempts and iterations.
	Timeout time.Duration `json:"timeout,omitempty"`
	// Retries are further attempts after one that failed.
	Retries int `json:"retries,omitempty"`

	Agent   *Agent   `json:"agent,omitempty"`
	Func    *Func    `json:"func,omitempty"`
	Command *Command `json:"command,omitempty"`
	Run     *Run     `json:"run,omitempty"`
	Plan    *Plan    `json:"plan,omitempty"`
	Loop    *Loop    `json:"loop,omitempty"`
}

// Agent is a step that an agent does, in a run of its own.
type Agent struct {
	// Name is that of an agent that the run's environment offers.
	Name string `json:"name"`
	// Instructions are the step's task, in addition to the results of the steps that
	// it depends on.
	Instructions string `json:"instructions,omitempty"`
	// Files are the context that is handed to it.
	Files []File `json:"files,omitempty"`
	// Result says that the agent has a schema for its result, and the step fails
	// where it gives none.
	Result bool `json:"result,omitempty"`
}

// File is a file that a step is handed, as it was when the run began.
type File struct {
	Path string `json:"path"`
	Text string `json:"text"`
	// Media is the content where it is no text.
	Media *llm.Media `json:"media,omitempty"`
}

// Func is a step that a function of the program does.
type Func struct {
	// Name is that of a function that the run's environment offers.
	Name string `json:"name"`
}

// Command is a step that a program does.
type Command struct {
	Argv []string `json:"argv"`
	// Timeout bounds it, 0 for no bound of its own.
	Timeout time.Duration `json:"timeout,omitempty"`
}

// Run is a step that is a run of another kind.
type Run struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Instructions are its task, in addition to the part that all steps share.
	// Input, if not empty, replaces all of it.
	Instructions string          `json:"instructions,omitempty"`
	Input        json.RawMessage `json:"input,omitempty"`
}

// Inner is a plan that a step runs as a run of its own, with the file that says it, as
// both were when the outermost run began.
type Inner struct {
	Plan Plan `json:"plan"`
	File File `json:"file"`
}

// Each visits all steps of the plan, also those of the graphs in it.
func (p *Plan) Each(visit func(*Step)) {
	for i := range p.Steps {
		s := &p.Steps[i]
		visit(s)
		switch {
		case s.Plan != nil:
			s.Plan.Each(visit)
		case s.Loop != nil:
			s.Loop.Body.Each(visit)
		}
	}
}
