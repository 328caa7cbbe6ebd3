package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/internal/view"
)

// used returns how much of each limit has been used.
func (p *page) used() string {
	l := p.Limits
	var parts []string
	if limit, _ := l.CostCap(); limit > 0 {
		used := 0.0
		if p.Cost != nil {
			used = p.Cost.USD
		}
		parts = append(parts, usd(used, p.Usage)+" of "+dollars(limit))
	}
	spent := budget.Spent{
		Cycles: p.Cycles, Turns: p.Turns, ToolCalls: p.ToolCalls, Input: p.Usage.Input, Output: p.Usage.Output,
		Active: seconds(p.ActiveSeconds), Idle: seconds(p.IdleSeconds),
	}
	table := budget.Table()
	slices.SortStableFunc(table, func(a, b budget.Setting) int { return cmp.Compare(a.Kind, b.Kind) })
	for _, s := range table {
		limit, _ := s.Value(l)
		switch used := s.Used(spent); {
		case limit <= 0 || s.Kind == budget.Money:
		case s.Kind == budget.Each:
			parts = append(parts, view.Bound(s, limit)...)
		case s.Kind == budget.Time || s.Kind == budget.Idle:
			parts = append(parts, lasting(used)+" of "+strings.TrimSpace(lasting(limit)+" "+s.Unit))
		default:
			parts = append(parts, fmt.Sprintf("%.0f of %.0f %s", used, limit, s.Unit))
		}
	}
	return strings.Join(parts, ", ")
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
