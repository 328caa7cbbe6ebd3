package budget

import (
	"fmt"
	"math"
	"time"

	"github.com/pawlrun/pawl/llm"
)

// MinOutput is the lowest output limit to which a call is reduced so that it fits the
// rest of a budget. A shorter answer would only be truncated.
const MinOutput = 1024

// Call is a model call that is about to be made.
type Call struct {
	// Input is an upper bound on the tokens of the request, Output the limit on the
	// answer.
	Input  int64
	Output int64
	// Likely is the expected number of input tokens.
	Likely int64
	// Price is nil if it is unknown; a cost limit then has no effect.
	Price *llm.Price
	// KeptLong reports that the request may write a cache entry with the lifetime of an
	// hour, which costs more.
	KeptLong bool
}

// Refusal is the limit that a call does not fit. The zero value is no refusal.
type Refusal struct {
	Setting string
	// Need is the minimum that the call needs, Left what is left.
	Need float64
	Left float64
	// Because is the reason for the refusal, if the numbers do not explain it.
	Because string
	// Wait reports whether the call will fit if other calls use less than what is
	// reserved for them.
	Wait bool
	// Call is the call without room, if the caller sets it, and After the wait before
	// it.
	Call  Call
	After time.Duration
}

// Detail returns the refusal in words.
func (r Refusal) Detail() string {
	switch {
	case r.Need == 0 && r.Left == 0:
		return r.Because
	case IsMoney(r.Setting):
		return fmt.Sprintf("the next call could cost USD %.4f, and USD %.4f are left", r.Need, max(r.Left, 0))
	}
	return fmt.Sprintf("the next call could take %.0f tokens, and %.0f are left", r.Need, max(r.Left, 0))
}

// Admit checks the worst case of a call against the rest of the limits. It
// reduces the output limit, down to [MinOutput], before it refuses. A refused
// call costs nothing.
func (l Limits) Admit(s Spent, held Amount, c Call) (Amount, Refusal) {
	if setting := l.BeforeModelCall(s); setting != "" {
		return Amount{}, Refusal{Setting: setting}
	}
	a, refusal := l.fit(s, held, c)
	if refusal.Setting != "" && held != (Amount{}) {
		_, alone := l.fit(s, Amount{}, c)
		refusal.Wait = alone.Setting == ""
	}
	return a, refusal
}

func (l Limits) fit(s Spent, held Amount, c Call) (Amount, Refusal) {
	if most := l.MaxRequestTokens; most > 0 && c.Likely > most {
		return Amount{}, Refusal{Setting: RequestTokens, Need: float64(c.Likely), Left: float64(most)}
	}
	if left := l.MaxInputTokens - s.Input - held.Input; l.MaxInputTokens > 0 && c.Input > left {
		return Amount{}, Refusal{Setting: InputTokens, Need: float64(c.Input), Left: float64(left)}
	}
	output, floor := c.Output, min(c.Output, MinOutput)
	if l.MaxOutputTokens > 0 {
		left := l.MaxOutputTokens - s.Output - held.Output
		// An owner who allows less than the floor in total means it.
		floor = min(floor, l.MaxOutputTokens)
		if left < floor {
			return Amount{}, Refusal{Setting: OutputTokens, Need: float64(floor), Left: float64(left)}
		}
		output = min(output, left)
	}
	a := Amount{Input: c.Input, Output: output, USD: c.worst(output)}
	limit, setting := l.CostCap()
	if left := limit - s.USD - held.USD; limit > 0 && a.USD > left {
		a.Output = c.affordable(left, output)
		if a.Output < floor {
			return Amount{}, Refusal{Setting: setting, Need: c.worst(floor), Left: left}
		}
		a.USD = c.worst(a.Output)
	}
	return a, Refusal{}
}

// affordable returns the largest output, at most most, that the remaining money pays
// for. A call's cost grows at least linearly with its output.
func (c Call) affordable(left float64, most int64) int64 {
	input := c.worst(0)
	rate := (c.worst(most) - input) / float64(max(most, 1))
	if rate <= 0 {
		return 0 // the input alone costs too much
	}
	n := int64(math.Min((left-input)/rate, float64(most)))
	for n > 0 && c.worst(n) > left {
		n--
	}
	return max(n, 0)
}

// worst returns the maximum cost of the call with an answer of that length: no input
// read from a cache, all of it written to one if that costs more, at the price of the
// more expensive tier.
func (c Call) worst(output int64) float64 {
	if c.Price == nil {
		return 0
	}
	uses := [...]llm.Usage{
		{Input: c.Input, Output: output},
		{Input: c.Input, Output: output, CacheRead: c.Input},
		{Input: c.Input, Output: output, CacheWrite: c.Input},
		{Input: c.Input, Output: output, CacheWrite: c.Input, CacheWriteLong: c.Input},
	}
	kinds := uses[:3]
	if c.KeptLong {
		kinds = uses[:]
	}
	short := *c.Price
	short.Long = nil
	most := 0.0
	for _, u := range kinds {
		most = max(most, c.Price.Of(u), short.Of(u))
	}
	return most
}

// Unreported returns the usage to charge for a call whose usage the provider did not
// report, for example because its stream broke: the received data if it is known,
// otherwise the reservation; never zero.
func Unreported(reserved, received llm.Usage, bytes int) llm.Usage {
	u := received
	u.Estimated = true
	if u.Input == 0 {
		u.Input = max(reserved.Input, 1)
	}
	switch {
	case u.Output > 0:
	case bytes > 0:
		u.Output = max(min(int64(bytes), reserved.Output), 1)
	default:
		u.Output = max(reserved.Output, 1)
	}
	return u
}
