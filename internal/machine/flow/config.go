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

// Version names the machine's rules; a run's first event pins it.
const Version = "flow/1"

// Kind is the kind of the machine's runs, as files name it.
const Kind = "Workflow"

// Config is everything that a workflow depends on. run.started stores it whole, so that
// a fold needs only the journal.
type Config struct {
	Plan plan.Plan `json:"plan"`
	// Limits bound the run and all runs below it.
	Limits budget.Limits `json:"limits"`
	// OnBudget maps a limit's name to what reaching it means.
	OnBudget map[string]tree.OnBudget `json:"onBudget,omitempty"`
	// Tree is the hash of a loop's workspace at its start, see [event.Iteration].
	Tree string `json:"tree,omitempty"`
	// Concurrency is how many children of the run may be active at once, in addition to
	// the plan's bound, 0 for no limit.
	Concurrency int `json:"concurrency,omitempty"`
	// Policy holds the rules for the plan's commands, nil if it has none.
	Policy *policy.Rules `json:"policy,omitempty"`
	// Edition is the edition of the rules by which the run decides; [Start] sets the
	// newest. What an edition changed holds for the runs that began under it:
	//
	//	1  A command gives its output without the line ends behind it, and as its result
	//	   that output where it is JSON; it has PAWL_INPUT and PAWL_ITEM. A loop over items
	//	   is skipped where all of them were.
	Edition int `json:"edition,omitempty"`
}

// edition is the newest edition of the rules.
const edition = 1

// Start returns the first event of a run: its configuration pinned, and its task.
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
