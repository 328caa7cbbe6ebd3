package event

// BudgetReserved sets the worst case of a call aside before it is made.
type BudgetReserved struct {
	ID     string  `json:"id"`
	USD    float64 `json:"usd"`
	Input  int64   `json:"input"`
	Output int64   `json:"output"`
}

// BudgetCommitted replaces a reservation by what was really used.
type BudgetCommitted struct {
	ID     string  `json:"id"`
	USD    float64 `json:"usd"`
	Input  int64   `json:"input"`
	Output int64   `json:"output"`
}

// BudgetWarning says that a share of a limit has been used.
type BudgetWarning struct {
	Setting string  `json:"setting"`
	Used    float64 `json:"used"`
	Limit   float64 `json:"limit"`
	Percent int     `json:"percent"`
}

// BudgetOverrun says that reported usage went beyond its reservation.
type BudgetOverrun struct {
	Setting string  `json:"setting"`
	Used    float64 `json:"used"`
	Limit   float64 `json:"limit"`
}
