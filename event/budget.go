package event

import "github.com/pawlrun/pawl/llm"

// BudgetReserved sets the worst case of a call aside before it is made. Output
// is the cap on the answer that the call is made with.
type BudgetReserved struct {
	ID     string  `json:"id"`
	USD    float64 `json:"usd"`
	Input  int64   `json:"input"`
	Output int64   `json:"output"`
	// Run is the child that makes the call; empty for the run itself. A child's
	// own journal has the same reservation, behind this one.
	Run string `json:"run,omitempty"`
}

// BudgetRefused says that a child's call was not made, because the run that
// started it has no room for it. The parent's journal says why it has none.
type BudgetRefused struct {
	ID string `json:"id"`
	// Setting is the limit of the parent's, Detail the refusal in words.
	Setting string `json:"setting"`
	Detail  string `json:"detail,omitempty"`
	// Ask says that the parent's owner wants to be asked for more: the child
	// waits until somebody has raised the limit there.
	Ask bool `json:"ask,omitempty"`
	// AtLeast is the value below which raising the limit changes nothing, where
	// that is known.
	AtLeast float64 `json:"atLeast,omitempty"`
}

// BudgetCommitted replaces a reservation by what was really used; all of it is
// 0 for a call that was not made after all.
type BudgetCommitted struct {
	ID     string  `json:"id"`
	USD    float64 `json:"usd"`
	Input  int64   `json:"input"`
	Output int64   `json:"output"`
	// Estimated says that the provider did not report what was used.
	Estimated bool `json:"estimated,omitempty"`
	// Run is the child that made the call; empty for the run itself.
	Run string `json:"run,omitempty"`
	// Usage and Priced are what the run above adds to its own sums; absent where
	// there is no run above, and for a call that was not made.
	Usage  *llm.Usage `json:"usage,omitempty"`
	Priced bool       `json:"priced,omitempty"`
}

// BudgetWarning says that a share of a limit has been used.
type BudgetWarning struct {
	Setting string  `json:"setting"`
	Used    float64 `json:"used"`
	Limit   float64 `json:"limit"`
	Percent int     `json:"percent"`
}

// BudgetOverrun says that reported usage went beyond its reservation and, with
// it, beyond the limit. Nothing starts after it.
type BudgetOverrun struct {
	Setting string  `json:"setting"`
	Used    float64 `json:"used"`
	Limit   float64 `json:"limit"`
}
