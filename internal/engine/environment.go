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
	// Commands runs the programs that the run's machine wants; nil if none can run.
	// Rules judge the ones that the machine does not judge itself.
	Commands tool.Commands
	Rules    policy.Rules
	// Worktrees holds the directories of steps and agents that work apart; nil for
	// none.
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

func (v *Env) close() error {
	if v.Close == nil {
		return nil
	}
	_, err := guard(func() (struct{}, error) { return struct{}{}, v.Close() },
		func(message string) error { return errors.New("engine: closing the run's environment " + message) })
	return err
}

// environment is what the effects of a run use, without holding the driver's
// lock. So nothing in it changes once the run is driven, except fields that are
// safe for concurrent use.
type environment struct {
	Env
	run    *identity
	record *drive.Recorder
	clock  *clock
	live   live
	// observers are those of the engine, and secrets those that it removes from all
	// runs.
	observers []Observer
	secrets   *secret.Redactor
	admission Admission
}

// equip sets what the run's effects need.
func (env *environment) equip(given Env) {
	env.Env = given
	env.record.Equip(given.Tools, given.Secrets, env.secrets)
}
