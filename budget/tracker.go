package budget

import "github.com/pawlrun/pawl/llm"

// Tracker sums the usage and cost of the calls of a run. It is a value: adding returns
// a new one. The zero value has no calls.
type Tracker struct {
	usage llm.Usage
	cost  llm.Cost
	calls int
}

// Add returns a tracker that counts one more call. The sum is priced
// while every part of it is.
func (t Tracker) Add(u llm.Usage, c llm.Cost) Tracker {
	return Tracker{
		usage: t.usage.Add(u),
		cost:  llm.Cost{USD: t.cost.USD + c.USD, Priced: c.Priced && (t.cost.Priced || t.calls == 0)},
		calls: t.calls + 1,
	}
}

// Usage returns the sum over all calls.
func (t Tracker) Usage() llm.Usage { return t.usage }

// Cost returns the sum over all calls.
func (t Tracker) Cost() llm.Cost { return t.cost }

// Calls returns the number of calls.
func (t Tracker) Calls() int { return t.calls }
