package llm

// Usage counts tokens. Input includes cached tokens and Output includes reasoning,
// whatever convention the provider uses.
type Usage struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cacheRead"`
	CacheWrite int64 `json:"cacheWrite"`
	Reasoning  int64 `json:"reasoning"`
	// CacheWriteLong is the part of CacheWrite that is cached for an hour, which costs
	// more ([CacheLong]).
	CacheWriteLong int64 `json:"cacheWriteLong,omitempty"`
	// Estimated marks counts that the provider did not report, for example because a
	// stream broke before its usage arrived.
	Estimated bool `json:"estimated,omitempty"`
}

// Add returns the sum; it is estimated if either operand is.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		Input:      u.Input + v.Input,
		Output:     u.Output + v.Output,
		CacheRead:  u.CacheRead + v.CacheRead,
		CacheWrite: u.CacheWrite + v.CacheWrite,
		Reasoning:  u.Reasoning + v.Reasoning,

		CacheWriteLong: u.CacheWriteLong + v.CacheWriteLong,
		Estimated:      u.Estimated || v.Estimated,
	}
}

// Price is the price of a model, in USD per million tokens. A CacheWrite below Input is
// a surcharge on Input.
type Price struct {
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cacheRead"`
	CacheWrite float64 `json:"cacheWrite"`
	// Long, if set, is the price of requests with a long input; it applies to the whole
	// request.
	Long *LongPrice `json:"long,omitempty"`
}

// LongPrice replaces a [Price] for a request with more than Over input tokens.
type LongPrice struct {
	Over       int64   `json:"over"`
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cacheRead"`
	CacheWrite float64 `json:"cacheWrite"`
}

// Cost is an amount of money. Priced is false if any part of it has no known price, so
// that USD is a lower bound.
type Cost struct {
	USD    float64 `json:"usd"`
	Priced bool    `json:"priced"`
}

// longWrite is the price of writing a token that is cached for an hour, in input
// tokens, at the only provider that offers it.
const longWrite = 2

// Of returns the cost of the usage.
func (p Price) Of(u Usage) float64 {
	if l := p.Long; l != nil && u.Input > l.Over {
		p = Price{Input: l.Input, Output: l.Output, CacheRead: l.CacheRead, CacheWrite: l.CacheWrite}
	}
	if p.CacheWrite < p.Input {
		p.CacheWrite += p.Input // a value below the input price is a surcharge
	}
	fresh := max(u.Input-u.CacheRead-u.CacheWrite, 0)
	return (float64(fresh)*p.Input +
		float64(u.CacheRead)*p.CacheRead +
		float64(u.CacheWrite-u.CacheWriteLong)*p.CacheWrite +
		float64(u.CacheWriteLong)*max(p.Input*longWrite, p.CacheWrite) +
		float64(u.Output)*p.Output) / 1e6
}
