package flow

import (
	"encoding/json"
	"fmt"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/tree"
	"github.com/pawlrun/pawl/internal/rules/plan"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/llm"
)

// Version names the machine's rules. A run's first event records it.
const Version = "flow/1"

// Kind is the kind of the machine's runs in files.
const Kind = "Workflow"

// Config is everything that a workflow's decisions depend on. run.started contains all
// of it, so that a fold needs only the journal.
type Config struct {
	Plan plan.Plan `json:"plan"`
	// Limits apply to the run and all runs below it.
	Limits budget.Limits `json:"limits"`
	// OnBudget maps a limit's name to the action when it is reached.
	OnBudget map[string]tree.OnBudget `json:"onBudget,omitempty"`
	// Tree is the hash of a loop's workspace at its start, see [event.Iteration].
	Tree string `json:"tree,omitempty"`
	// Concurrency limits the active children of the run, in addition to the plan's own
	// limit; 0 means no limit.
	Concurrency int `json:"concurrency,omitempty"`
	// Policy contains the rules for the plan's commands, nil if it has none.
	Policy *policy.Rules `json:"policy,omitempty"`
	// Edition is the edition of the rules for the run's decisions; [Start] sets the
	// newest. A run keeps the edition under which it began. Edition 1 made these
	// changes: A command's output has no trailing newlines, and its result is the
	// output if that is JSON. Commands get PAWL_INPUT and PAWL_ITEM. A loop over items
	// is skipped if all its items were skipped.
	Edition int `json:"edition,omitempty"`
}

// edition is the newest edition of the rules.
const edition = 1

// Start returns the first event of a run, with its configuration and its task.
func Start(cfg Config, input *llm.Message) (event.RunStarted, error) {
	if err := cfg.Plan.Check(); err != nil {
		return event.RunStarted{}, fmt.Errorf("flow: %w", err)
	}
	cfg.Edition = edition
	raw, err := json.Marshal(cfg)
	if err != nil {
		return event.RunStarted{}, fmt.Errorf("flow: encode config: %w", err)
	}
	return event.RunStarted{
		Vocabulary: event.Version, Machine: Version, Kind: Kind, Name: cfg.Plan.Name, Config: raw, Input: input, Fence: &event.Fence{},
	}, nil
}
