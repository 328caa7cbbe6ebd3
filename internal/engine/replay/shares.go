package replay

import (
	"context"
	"fmt"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/llm"
)

const (
	// KindAnswer is the kind of what answers cost, and KindOther that of calls that
	// answer no cycle, such as summaries.
	KindAnswer = "answer"
	KindOther  = "other"
)

// Share is what a part of a run's requests cost, in all requests that carried it.
type Share struct {
	Run string `json:"run"`
	// Kind is that of a [Segment], answer, or other.
	Kind string `json:"kind"`
	// Name and CallID are those of the call of a result.
	Name   string `json:"name,omitempty"`
	CallID string `json:"callId,omitempty"`
	// Requests counts the requests that carried it; Tokens are those of all of them.
	Requests int     `json:"requests"`
	Tokens   float64 `json:"tokens"`
	USD      float64 `json:"usd"`
}

// Shares divides what a run paid by the parts of its requests: each result of a tool,
// the rest by kind, and the answers. The sum is what the run's account was charged.
func Shares(ctx context.Context, past drive.Past, run string) ([]Share, error) {
	d := division{run: run, at: map[Share]int{}, known: map[*llm.Message][]Segment{}}
	if err := past.Refold(ctx, run, d.step); err != nil {
		return nil, fmt.Errorf("replay: shares of run %s: %w", run, err)
	}
	return d.all, nil
}

// division divides the charges of a run.
type division struct {
	run string
	all []Share
	// at is the place of a share in all, by its names.
	at    map[Share]int
	known map[*llm.Message][]Segment
	// segments are those of the call that is under way, nil for one that answers no
	// cycle.
	segments []Segment
	price    *llm.Price
	usage    *llm.Usage
}

func (d *division) step(m machine.Machine, ev *event.Event) error {
	switch data := ev.Data.(type) {
	case event.ModelRequested:
		d.segments, d.price, d.usage = nil, nil, nil
		if a, ok := drive.Due[machine.CallModel](m); ok && data.Purpose == "" {
			d.segments, d.price = segmentsWith(&a.Request, d.known), a.Price
		}
	case event.ModelResponse:
		d.usage = &data.Usage
	case event.BudgetCommitted:
		if data.Run == "" && ev.Run == d.run && (data.USD > 0 || data.Input+data.Output > 0) {
			d.charge(data.USD)
			d.segments, d.price, d.usage = nil, nil, nil
		}
	}
	return nil
}

// charge divides the cost of a call. The beginning of a request is what was read from
// the cache, at its price.
func (d *division) charge(usd float64) {
	if d.segments == nil || d.usage == nil || d.usage.Input <= 0 {
		d.add(Share{Kind: KindOther}, 0, usd)
		return
	}
	u, price := *d.usage, llm.Price{}
	if d.price != nil {
		price = *d.price
	}
	all := scaled(d.segments, u.Input)
	of := price.Of(u)
	if of <= 0 {
		of = 1
	}
	input := u
	input.Output = 0
	read := price.Of(llm.Usage{Input: u.Input, CacheRead: u.Input}) / float64(u.Input)
	cached := float64(min(u.CacheRead, u.Input))
	fresh := 0.0
	if rest := float64(u.Input) - cached; rest > 0 {
		fresh = (price.Of(input) - read*cached) / rest
	}
	paid, begin := 0.0, 0.0
	for i, s := range d.segments {
		end := begin + all[i]
		old := max(min(end, cached)-begin, 0)
		part := usd / of * (old*read + (all[i]-old)*fresh)
		name := Share{Kind: s.Kind}
		if s.Kind == "result" {
			name.Name, name.CallID = s.Name, s.CallID
		}
		d.add(name, all[i], part)
		paid, begin = paid+part, end
	}
	d.add(Share{Kind: KindAnswer}, float64(u.Output), usd-paid)
}

func (d *division) add(name Share, tokens, usd float64) {
	if tokens == 0 && usd == 0 {
		return
	}
	i, known := d.at[name]
	if !known {
		i = len(d.all)
		d.at[name] = i
		name.Run = d.run
		d.all = append(d.all, name)
	}
	s := &d.all[i]
	s.Requests, s.Tokens, s.USD = s.Requests+1, s.Tokens+tokens, s.USD+usd
}

// scaled divides the input that a provider counted by an estimate of all segments.
func scaled(segments []Segment, input int64) []float64 {
	var all int64
	for _, s := range segments {
		all += s.Tokens
	}
	shares := make([]float64, len(segments))
	for i, s := range segments {
		if all > 0 {
			shares[i] = float64(s.Tokens) * float64(input) / float64(all)
		}
	}
	return shares
}
