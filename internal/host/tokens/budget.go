package tokens

import (
	"cmp"
	"fmt"
	"time"
)

// Budget is what the runs that the tokens of a tenant start may spend in a period.
type Budget struct {
	// Tenant is set by [Entry.Spending].
	Tenant string  `yaml:"-" json:"-"`
	USD    float64 `yaml:"usd" json:"usd"`
	// Per is "day" or "month", in UTC.
	Per string `yaml:"per" json:"per"`
	// Soft means that spending is counted and nothing is refused.
	Soft bool `yaml:"soft,omitempty" json:"soft,omitempty"`
}

// Period returns the name of the counter for a time, and when the next period begins.
func (b *Budget) Period(now time.Time) (counter string, until time.Time) {
	now = now.UTC()
	layout := time.DateOnly
	until = time.Date(now.Year(), now.Month(), now.Day()+1, 0, 0, 0, 0, time.UTC)
	if b.Per == perMonth {
		layout, until = "2006-01", time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, time.UTC)
	}
	return "spent/" + b.Tenant + "/" + now.Format(layout), until
}

const (
	perDay   = "day"
	perMonth = "month"
)

func (b *Budget) check() error {
	switch {
	case !(b.USD > 0) || b.USD > 1e9:
		return fmt.Errorf("the budget of %g USD is not above 0 and at most a billion", b.USD)
	case b.Per != perDay && b.Per != perMonth:
		return fmt.Errorf("the budget's per is %q, not day or month", b.Per)
	}
	return nil
}

// Spending returns the budget of the token's tenant, nil for none.
func (e Entry) Spending() *Budget {
	if e.Budget == nil {
		return nil
	}
	b := *e.Budget
	b.Tenant = e.tenant()
	return &b
}

func (e Entry) tenant() string { return cmp.Or(e.Tenant, e.Name) }

// Placing is what the tokens of a tenant say about the placing of its runs.
type Placing struct {
	Tenant     string
	MaxRunning int
	Weight     float64
}

func (e Entry) placing() Placing { return Placing{e.tenant(), e.MaxRunning, e.Weight} }
