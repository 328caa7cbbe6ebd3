package event

// BudgetReserved sets the worst case of a call aside before it is made. Output
// is the cap on the answer that the call is made with.
type BudgetReserved struct {
	ID     string  `json:"id"`
	USD    float64 `json:"usd"`
	Input  int64   `json:"input"`
	Output int64   `json:"output"`
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
