package perform

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/hook"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
)

// Env is what a run's effects need. The program that starts or resumes the run
// builds it; it is not part of the journal.
type Env struct {
	// Model returns the model for a target ("provider/model"), and the provider's
	// own name for it.
	Model func(target string) (llm.Model, string, error)
	Tools *tool.Set
	// Secrets are removed from everything that the run journals; nil means none.
	Secrets *secret.Redactor
	// Hooks are the hooks that the run's configuration declares, by stage and
	// name; see [hook.Named].
	Hooks []hook.Hook
	// Ask puts a question to a person and waits for the answer. If it is nil, the
	// run parks instead.
	Ask func(ctx context.Context, q event.Question) (event.Resolution, error)
	// AskInTurn calls Ask for one question after another, in the order in which the
	// model made the calls. Otherwise Ask is called for all of them at once.
	AskInTurn bool
	// Tree returns a hash of the run's workspace, so that edits which change nothing
	// can be detected; nil if there is no workspace. It must be cheap, because it is
	// called after every call that may have changed a file.
	Tree func(ctx context.Context) (string, error)
	// Children are the agents that the run may start, by tool name.
	Children map[string]Child
	// Evaluate returns the value of an expression over variables, both as JSON; nil
	// if the run has no expressions. It must be quick and have no effect.
	Evaluate func(ctx context.Context, expression string, variables json.RawMessage) (json.RawMessage, error)
	// Commands runs the programs that the run's machine requests; nil if none can run.
	// Rules decide about programs that the machine does not check itself.
	Commands tool.Commands
	Rules    policy.Rules
	// Worktrees holds the worktrees of isolated steps and agents; nil for none.
	Worktrees Worktrees
	// Inputs are messages that a new run receives, by the current cycle, 0 before
	// the first: those of a recorded run (package replay). A resumed run receives
	// none.
	Inputs map[int][]event.InputReceived
	// Began is called with the run's id once the run is in the journal and is driven
	// with this environment; it may be nil.
	Began func(run string)
	// Close releases the environment's resources; it may be nil. It is called once,
	// when the run is no longer driven and no effect uses the environment, even if
	// the run could not start.
	Close func() error
}

// Release calls Close.
func (v *Env) Release() error {
	if v.Close == nil {
		return nil
	}
	_, err := Guard(func() (struct{}, error) { return struct{}{}, v.Close() },
		func(message string) error { return errors.New("engine: closing the run's environment " + message) })
	return err
}

// Performer performs the effects of one run: it calls models, tools, hooks, commands
// and people, and returns the events to journal for each. It does not hold the driver's
// lock, so its fields must not change while the run is driven, unless they are safe for
// concurrent use.
type Performer struct {
	Env
	Place  Place
	Record *drive.Recorder
	Clock  *Clock
	Deltas Deltas
	shared Shared
}

// Shared is what an engine gives to the effects of all its runs.
type Shared struct {
	Observers []Observer
	// Secrets are removed from everything that is journalled; nil means none.
	Secrets *secret.Redactor
	// Admission admits model calls; nil admits all.
	Admission Admission
}

// Place identifies the run.
type Place struct {
	Run, Parent, Step string
	// Worktrees is the prefix of the names of the run's worktrees.
	Worktrees string
}

// Init sets what does not depend on the run's environment.
func (p *Performer) Init(store journal.Store, now func() time.Time, shared Shared) {
	p.Record, p.Clock, p.shared = drive.NewRecorder(store), &Clock{machine: now}, shared
	p.Deltas.place, p.Deltas.now = &p.Place, p.Clock.Now
}

// Equip sets the run's environment.
func (p *Performer) Equip(given Env) {
	p.Env = given
	p.Record.Equip(given.Tools, given.Secrets, p.shared.Secrets)
}

// Worktrees manages the worktrees of isolated steps. Its methods are called from
// several goroutines at once.
type Worktrees interface {
	// Make makes a step's worktree, or returns the existing one, which a crash or an
	// earlier attempt may have left. dir is the workspace in it. name is the unique
	// path of the worktree.
	Make(ctx context.Context, name string) (dir string, err error)
	// Find returns a worktree's place and commit, nil if it does not exist.
	Find(ctx context.Context, name string) (*event.Worktree, error)
	// Commands returns a runner of programs in a worktree and the rules that apply
	// there. close releases its resources.
	Commands(dir string) (commands tool.Commands, rules policy.Rules, close func() error, err error)
}

// Child is what a tool or a step may start: a run, or a function of the program.
// Begin and Resume are called on the goroutine of a call, possibly of several
// calls at once.
type Child struct {
	// Begin returns the first event and the environment of a new child.
	Begin func(args json.RawMessage) (event.RunStarted, Env, error)
	// BeginIn is Begin with another workspace; nil if the child can only have its
	// own.
	BeginIn func(dir string, args json.RawMessage) (event.RunStarted, Env, error)
	// Resume returns the environment of a run that was started before.
	Resume func(run string, started event.RunStarted) (Env, error)
	// Secrets are those of both environments. They are removed from commands to the
	// child, even while it is parked and no process drives it; nil means none.
	Secrets *secret.Redactor
	// Func does the work instead of a run. It has no journal: its output is in the
	// parent's journal, and after a crash or an interruption it is called again. It
	// must return soon after ctx ends, and is called from several goroutines at
	// once.
	Func func(ctx context.Context, input json.RawMessage) (Output, error)
	// MaxDepth is how many levels of runs may be below the run that offers the
	// child, 0 for as many as the tree allows.
	MaxDepth int
	// Isolated reports whether each run has a worktree of its own; see [Env.Worktrees].
	Isolated bool
}

// Output is a function's output: a text, and a result as JSON, nil for none.
type Output struct {
	Text   string
	Result json.RawMessage
}
