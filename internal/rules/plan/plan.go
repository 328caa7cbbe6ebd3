// Package plan defines what a run that starts others does, as a value: a graph of
// steps, in which a step may be a loop around a graph. Files and programs make plans,
// and internal/machine/flow carries them out. A plan is pinned in the first event of
// its run, so its JSON only grows.
package plan

import (
	"encoding/json"
	"time"

	"github.com/pawlrun/pawl/llm"
)

// Plan is a graph of steps. Steps without dependencies start at once, the others when
// all of their dependencies have finished.
type Plan struct {
	Name  string `json:"name,omitempty"`
	Steps []Step `json:"steps"`
	// Concurrency bounds the concurrent agents, functions, commands and runs in this
	// graph and below its steps, 0 for no limit.
	Concurrency int `json:"concurrency,omitempty"`
	// Width bounds the concurrent steps of this graph, each with everything below it, 0
	// for no limit.
	Width int `json:"width,omitempty"`
	// OnFailure sets the effect of a failed step on the others.
	OnFailure OnFailure `json:"onFailure,omitempty"`
	// Timeout bounds the plan, 0 for no limit.
	Timeout time.Duration `json:"timeout,omitempty"`
	// Scheduler is the order of steps that are ready at the same time.
	Scheduler Scheduler `json:"scheduler,omitempty"`
	// Coordinator is the name of the agent that receives messages of steps, empty for
	// none. Only the plan of a run has one, not the plans within it.
	Coordinator string `json:"coordinator,omitempty"`
	// Runs holds the plans that steps run, at any depth, by the names of the runs. Only
	// the plan of a run has them, not the plans within it.
	Runs map[string]Inner `json:"runs,omitempty"`
	// Worktrees reports that each agent and each command in this graph and below its
	// steps, except in runs of other kinds, works in a separate git worktree.
	Worktrees bool `json:"worktrees,omitempty"`
	// Refine reports whether the plan of a run is one loop around one agent: the
	// loop's end is the run's, and the agent's task is the run's input and, in later
	// iterations, the log of the earlier ones.
	Refine bool `json:"refine,omitempty"`
	// Team reports whether the steps of a run's plan are members of a team: each task
	// contains the run's input, and in a loop the members' answers of the previous
	// iteration. A condition that ends a loop sees the input and the round too.
	Team bool `json:"team,omitempty"`
	// Templates reports that the instructions and arguments of a run's steps, at every
	// depth, may contain values, as [Pieces] parses them.
	Templates bool `json:"templates,omitempty"`
}

// OnFailure is the effect of a failed step on the other steps of a graph.
type OnFailure string

// The values of OnFailure.
const (
	// Cascade fails its direct and indirect dependents.
	Cascade OnFailure = ""
	// SkipDependents skips them.
	SkipDependents OnFailure = "skip-dependents"
	// Abort cancels everything in progress and starts nothing more.
	Abort OnFailure = "abort"
)

// Scheduler is the order of steps that could start at the same time.
type Scheduler string

// The orders of the workflow specification.
const (
	// DependencyFirst starts the step with the most dependents.
	DependencyFirst Scheduler = ""
	// RoundRobin alternates between the agents of the steps.
	RoundRobin Scheduler = "round-robin"
	// LeastBusy starts the step whose agent has the fewest running steps.
	LeastBusy Scheduler = "least-busy"
)

// Step is a node of the graph. Exactly one of Agent, Func, Command, Run, Plan and
// Loop is set.
type Step struct {
	// ID names the step among those of its graph. Its id in the run has a prefix:
	// parent.inner for a plan in a plan, parent.0.inner for sequential iterations,
	// parent[0].inner for items.
	ID        string   `json:"id"`
	DependsOn []string `json:"dependsOn,omitempty"`
	// Condition is an expression; if it is false, the step is skipped. Empty means
	// none.
	Condition string `json:"condition,omitempty"`
	// Timeout bounds the step with all its attempts and iterations.
	Timeout time.Duration `json:"timeout,omitempty"`
	// Retries is the number of further attempts after a failed one.
	Retries int `json:"retries,omitempty"`

	Agent   *Agent   `json:"agent,omitempty"`
	Func    *Func    `json:"func,omitempty"`
	Command *Command `json:"command,omitempty"`
	Run     *Run     `json:"run,omitempty"`
	Plan    *Plan    `json:"plan,omitempty"`
	Loop    *Loop    `json:"loop,omitempty"`
}

// Agent is a step that an agent performs, in a separate run.
type Agent struct {
	// Name names an agent that the run's environment offers.
	Name string `json:"name"`
	// Instructions are the step's task, in addition to the results of its dependencies.
	Instructions string `json:"instructions,omitempty"`
	// Files are the context files for it.
	Files []File `json:"files,omitempty"`
	// Result reports that the agent has a schema for its result, and that the step
	// fails without one.
	Result bool `json:"result,omitempty"`
}

// File is a file for a step, as it was when the run began.
type File struct {
	Path string `json:"path"`
	Text string `json:"text"`
	// Media is the content if it is not text.
	Media *llm.Media `json:"media,omitempty"`
}

// Func is a step that a function of the program performs.
type Func struct {
	// Name names a function that the run's environment offers.
	Name string `json:"name"`
}

// Command is a step that a program performs.
type Command struct {
	Argv []string `json:"argv"`
	// Timeout bounds it, 0 for no limit of its own.
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

// Inner is a plan that a step runs as a separate run, with its file, both as they were
// when the outermost run began.
type Inner struct {
	Plan Plan `json:"plan"`
	File File `json:"file"`
}

// Each visits all steps of the plan, including those of nested graphs.
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
