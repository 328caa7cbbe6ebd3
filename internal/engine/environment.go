package engine

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/hook"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
)

// Env is what a run's effects need. It is built by whoever starts or resumes
// the run and is not part of the journal.
type Env struct {
	// Model returns the model behind a target ("provider/model") and the
	// provider's own name of it.
	Model func(target string) (llm.Model, string, error)
	Tools *tool.Set
	// Secrets are taken out of everything that the run journals; nil knows none.
	Secrets *secret.Redactor
	// Hooks are the hooks that the run's configuration declares, by stage and
	// name; see [hook.Named].
	Hooks []hook.Hook
	// Ask puts a question to a person and waits for the answer; nil where nobody
	// can be asked, and the run then parks.
	Ask func(ctx context.Context, q event.Question) (event.Resolution, error)
	// AskInTurn has Ask called for one question after another, calls in the order in
	// which the model made them. Without it Ask is called for all of them at once.
	AskInTurn bool
	// Tree identifies what the workspace of the run holds, so that a run whose
	// edits change nothing can be told from one that gets on; nil where the run
	// has none. It must be cheap, because it is asked after every call that may
	// have changed a file.
	Tree func(ctx context.Context) (string, error)
	// Children are the agents that the run may start, by the names of the tools
	// that stand for them.
	Children map[string]Child
	// Evaluate gives what an expression of the run's language comes to over values,
	// both as JSON; nil where the run has none. It must be quick and have no effect.
	Evaluate func(ctx context.Context, expression string, variables json.RawMessage) (json.RawMessage, error)
	// Commands runs the programs that the run's machine asks for; nil where none
	// can run. Rules judge those that the machine does not judge itself.
	Commands tool.Commands
	Rules    policy.Rules
	// Worktrees are the directories of steps and agents that work apart; nil where
	// there are none.
	Worktrees Worktrees
	// Inputs are messages that a run which is started is given while it goes, by
	// the cycle that is under way, 0 before the first: those of a recorded run
	// (package replay). A run that is resumed is given none.
	Inputs map[int][]event.InputReceived
	// Began is called with the run's id once the run is in the journal and is driven
	// with this environment; may be nil.
	Began func(run string)
	// Close releases what the environment holds; may be nil. It is called
	// once, when the run is not driven any more and no effect uses the
	// environment, also when the run could not be started.
	Close func() error
}

func (v *Env) close() error {
	if v.Close == nil {
		return nil
	}
	_, err := guard(func() (struct{}, error) { return struct{}{}, v.Close() },
		func(message string) error { return errors.New("engine: closing the run's environment " + message) })
	return err
}

// environment is what the effects of a run use. They use it while others hold the
// driver's lock, so nothing in it changes once the run is driven, but for what is safe
// for concurrent use.
type environment struct {
	Env
	run    *identity
	record *drive.Recorder
	clock  *clock
	live   live
	// observers are those of the engine, and secrets what it takes out of all runs.
	observers []Observer
	secrets   *secret.Redactor
}

// equip gives the environment what its run's effects need.
func (env *environment) equip(given Env) {
	env.Env = given
	env.record.Equip(given.Tools, given.Secrets, env.secrets)
}
