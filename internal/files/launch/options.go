package launch

import (
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/host/sandbox"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/transport"
	"github.com/pawlrun/pawl/models"
	"github.com/pawlrun/pawl/tool/web"
)

// Options are what a run is made of beside its file: what the user said, what the
// host offers, and what was prepared from both.
type Options struct {
	Flags
	Host
	prepared
}

// Flags are what the user said, in the place of what the file says.
type Flags struct {
	// Model replaces every model of the file.
	Model string
	// Workspace is the directory that the tools work in.
	Workspace string
	// BudgetUSD replaces the file's caps in money, NoBudget removes them.
	BudgetUSD *float64
	NoBudget  bool
	// Limits replace single limits of the file, after all of the above.
	Limits  []Limit
	Approve agent.ApproveMode
	// NoStream asks the provider for whole answers instead of streams.
	NoStream bool
	// Attachments are images and files that go with the input.
	Attachments []llm.Media
	// Vars are the values of the prompt's ${name}.
	Vars map[string]string
	// MaxDepth is how deep the tree of runs may be, the run itself counted; 0 leaves
	// the default.
	MaxDepth int
	// MaxConcurrency is how many runs below it may be at work at once; 0 leaves that
	// to the file and the default.
	MaxConcurrency int
	// Dir is the directory that relative paths of flags are relative to.
	Dir string
}

// Limit is a new value of one of [budget.Settings]; [budget.None] takes the
// limit away.
type Limit struct {
	Setting string
	Value   float64
}

// Host is what the process offers in which a run is driven. It counts as well where
// a run goes on, whose flags were pinned when it began.
type Host struct {
	// Dress changes the environment of each run that the run starts, as whoever
	// starts that does with its own; nil changes nothing.
	Dress func(*engine.Env)
	// Getenv looks keys and endpoints up; nil means os.Getenv.
	Getenv func(string) string
	// Replay opens the model that answers from a recorded run; nil where there
	// is no journal.
	Replay func(run string) (llm.Model, error)
	// Config is what the owner's config file says, see [ReadConfig].
	Config models.Config
	// Limiter is shared by all runs of a process; nil limits nothing.
	Limiter *transport.Limiter
	// Pages are shared by all runs of a process; nil are each run's own.
	Pages *web.PageLimit
	// Sandbox is what this machine can do; nil runs commands without one.
	Sandbox *sandbox.Machine
	// Journal is the path of the journal, which no command may read and no tool
	// may write: a call could otherwise approve itself.
	Journal string
}

// prepared is what was made ready for a run, and for the runs that it starts.
type prepared struct {
	// confined is where the commands of the run run, and hookPins what the programs
	// of its hooks held when it began, and nested the repositories that were
	// within its workspace then.
	confined confinement
	hookPins []event.HookFile
	// commandPins are the programs of tools.commands as they were then.
	commandPins []event.CommandTool
	nested      nested
	// tree is what the run shares with those that it starts. started says that another run
	// starts it, and source is then its file.
	tree *tree
	// forAgents are the limits that a workflow hands to its agents.
	forAgents []Limit
	started   bool
	// checking says that no run begins: what only its command line or its workspace
	// could say is not asked for.
	checking bool
	source   string
	// protected is what the rules protect that a run began with.
	protected []policy.Pattern
}

// seams are the options that count where a run is resumed.
func (o Options) seams() Options {
	return Options{Host: o.Host, prepared: prepared{tree: o.tree, source: o.source}}
}
