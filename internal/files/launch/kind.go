package launch

import (
	"context"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/plan"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
)

// File is the text of a file that says what is to be run.
type File struct {
	// Path is where the file is, or the name that a text has in problems which
	// somebody sent.
	Path string
	Text []byte
	// Sent says that somebody sent the text, so that it may name no file, secret or
	// program of this machine.
	Sent bool
}

// Kind is one kind of files that can be run. What has no function, such a run
// cannot do. The table of them is package launch/kinds.
type Kind struct {
	// Name is what the first event of a run of the file says ([event.RunStarted.Kind]);
	// in lower case it names the file's schema, see [spec.Schema].
	Name string
	// Recognises says that a file is of this kind, right or wrong.
	Recognises func(spec.Heading) bool
	// Check says what is wrong with a file, and what its owner should know of it,
	// without a workspace, a key or a call. The error is [spec.Errors] when the file
	// is wrong.
	Check func(File, Options) (warnings []spec.Problem, err error)
	// Launch prepares a run of a file. The error is [spec.Errors] when the file is
	// wrong, and [ErrNoInput] where the run would have nothing to do; whatever it
	// is, nothing has begun.
	Launch func(f File, input string, o Options) (event.RunStarted, engine.Env, error)
	// Limits is a file as what its limits say of a whole run of it; nil is the file as
	// an agent's.
	Limits func(path string, text []byte) (*spec.Agent, error)
	// Plan is what a file says is to be done, to be drawn.
	Plan func(File, Options) (plan.Plan, error)
	// Explain says what a run of a file would do with one call of a tool.
	Explain func(f File, call string, o Options) (Explanation, error)
	// Call runs one call of a program of tools.commands outside a run; see [CallProgram].
	Call func(ctx context.Context, f File, call string, o Options) (tool.Result, error)
	// Resume gives the environment of a run that goes on, by its first event; see
	// [Environment].
	Resume func(event.RunStarted, Options) (engine.Env, error)
	// Continue prepares a run that goes on where an ended one stopped; see [Continue].
	Continue func(ctx context.Context, store journal.Store, run, input string, o Options) (event.RunStarted, engine.Env, error)
	// Fork prepares what a fork does otherwise; see [Fork].
	Fork func(*engine.Branch, ForkChanges, Options) (f event.RunForked, warnings []string, err error)
	// Redactor takes a run's secrets out of what it is told; see [Redactor].
	Redactor func(event.RunStarted) (r *secret.Redactor, missing []string, err error)
	// CheckCall says what stands against a call of a run's tool; see [CheckCall].
	CheckCall func(event.RunStarted, llm.ToolCall) (*event.Problem, error)
	// Templates are ways to begin with such a file.
	Templates []Template
}

// Template is a way to begin with a file. Its files are in the directory of its
// name, among the templates of 'pawl init'.
type Template struct {
	Name, About, Task string
	// File is the one to run.
	File string
	// Workspace is the directory of the template to try it on.
	Workspace string
}

// AgentFiles is the kind of files that describe one agent.
func AgentFiles() Kind {
	return Kind{
		Name: agent.Kind, Recognises: spec.Heading.Agent,
		Check: Check, Launch: Agent, Explain: Explain, Call: CallProgram,
		Resume: Environment, Continue: Continue, Fork: Fork, Redactor: Redactor, CheckCall: CheckCall,
		Templates: []Template{
			{Name: "minimal", About: "reads files and answers questions about them", Task: "What is in this directory?", File: "agent.yaml"},
			{Name: "fix-tests", About: "changes code until its tests pass", Task: "Make the tests pass.", File: "agent.yaml", Workspace: "demo"},
			{Name: "ask-first", About: "asks a person before it writes a file", Task: "Write an announcement to announcement.md.", File: "agent.yaml"},
			{Name: "report", About: "answers in JSON that matches a schema", Task: "Which files are here?", File: "agent.yaml"},
			{Name: "tool", About: "calls two programs of yours, in Python and in sh", Task: "What is ticket 1 about, and how long is its title?", File: "agent.yaml"},
			{Name: "loop", About: "repeats one task in fresh runs until its tests pass", Task: "Make the tests pass.", File: "agent.yaml", Workspace: "demo"},
		},
	}
}
