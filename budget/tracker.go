package budget

import "github.com/pawlrun/pawl/llm"

// Tracker sums what the calls of a run used and cost. It is a value: adding
// returns a new one. The zero value is a run without a call.
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

// Usage is the sum over all calls.
func (t Tracker) Usage() llm.Usage { return t.usage }

// Cost is the sum over all calls.
func (t Tracker) Cost() llm.Cost { return t.cost }

// Calls is the number of calls that were added.
func (t Tracker) Calls() int { return t.calls }
