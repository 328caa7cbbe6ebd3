package event

import "github.com/pawlrun/pawl/llm"

// BudgetReserved reserves the worst case of a call before it is made. Output is the
// limit on the answer of the call.
type BudgetReserved struct {
	ID     string  `json:"id"`
	USD    float64 `json:"usd"`
	Input  int64   `json:"input"`
	Output int64   `json:"output"`
	// Run is the child that makes the call; empty for the run itself. The child's own
	// journal contains the same reservation.
	Run string `json:"run,omitempty"`
}

func (BudgetReserved) EventType() Type { return TypeBudgetReserved }

// BudgetRefused records that a child's call was not made, because it does not fit the
// budget of its parent. The parent's journal contains the reason.
type BudgetRefused struct {
	ID string `json:"id"`
	// Setting is the parent's limit, Detail the refusal in words.
	Setting string `json:"setting"`
	Detail  string `json:"detail,omitempty"`
	// Run is the run that has the limit; absent if it is the parent.
	Run string `json:"run,omitempty"`
	// Ask reports that the limit asks to be raised: the child waits until it is raised
	// on that run.
	Ask bool `json:"ask,omitempty"`
	// AtLeast is the lowest value of the limit that would help, if known.
	AtLeast float64 `json:"atLeast,omitempty"`
}

func (BudgetRefused) EventType() Type { return TypeBudgetRefused }

// BudgetCommitted replaces a reservation by the actual usage, which is zero for a call
// that was not made.
type BudgetCommitted struct {
	ID     string  `json:"id"`
	USD    float64 `json:"usd"`
	Input  int64   `json:"input"`
	Output int64   `json:"output"`
	// Estimated reports that the provider did not report the usage.
	Estimated bool `json:"estimated,omitempty"`
	// Run is the child that made the call; empty for the run itself.
	Run string `json:"run,omitempty"`
	// Usage and Priced are what the parent adds to its own sums; absent without a
	// parent, and for a call that was not made.
	Usage  *llm.Usage `json:"usage,omitempty"`
	Priced bool       `json:"priced,omitempty"`
}

func (BudgetCommitted) EventType() Type { return TypeBudgetCommitted }

// BudgetWarning reports that a share of a limit has been used.
type BudgetWarning struct {
	Setting string  `json:"setting"`
	Used    float64 `json:"used"`
	Limit   float64 `json:"limit"`
	Percent int     `json:"percent"`
}

func (BudgetWarning) EventType() Type { return "budget.warning" }

// BudgetOverrun reports that usage exceeded its reservation and so the limit. No call
// starts after it.
type BudgetOverrun struct {
	Setting string  `json:"setting"`
	Used    float64 `json:"used"`
	Limit   float64 `json:"limit"`
}

func (BudgetOverrun) EventType() Type { return "budget.overrun" }
