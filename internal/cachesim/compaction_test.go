package cachesim_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/rules/compact"
)

// window is small enough for a run of 50 cycles to be compacted more than once,
// and large enough for a summary to be asked for behind the whole conversation.
const window = 55_000

// six asks for six calls in every cycle but the last.
func six(n int) int {
	if n >= cycles {
		return 0
	}
	return 6
}

// compacting makes the lab's runs compact in a way, and the provider and its
// oracle know of it.
func (l *lab) compacting(strategy compact.Strategy) {
	l.cfg.Compact = compact.Settings{Window: window, Strategy: strategy}
	l.p.summary = func(body []byte) bool {
		return bytes.Contains(body, []byte("Write the summary that you will go on from")) ||
			bytes.Contains(body, []byte("Sum up this transcript"))
	}
	n, seen := 0, int64(0)
	l.p.compactions = func() int {
		records, err := l.store.Tail(context.Background(), seen, 0)
		for _, r := range records {
			if seen = r.Pos; bytes.Contains(r.Body, []byte(`"type":"history.compressed"`)) {
				n++
			}
		}
		if err != nil {
			l.t.Error(err)
		}
		return n
	}
}

// compressed are the compactions of a run.
func (l *lab) compressed(run string) []event.HistoryCompressed {
	var all []event.HistoryCompressed
	l.events(run, func(e *event.Event) {
		if d, ok := e.Data.(event.HistoryCompressed); ok {
			all = append(all, d)
		}
	})
	return all
}

var strategies = []compact.Strategy{"", compact.RollingWindow, compact.PeriodicSummary, compact.SummarizeOlder}

// A 50-cycle run with compaction reads at least 99 % of what could be read from
// the cache, the boundaries left out, by the rules of each provider.
func TestACompactedRunReadsWhatItsProviderHolds(t *testing.T) {
	for _, s := range services() {
		for _, strategy := range strategies {
			t.Run(s.name+"/"+named(strategy), func(t *testing.T) {
				p := s.provider(six)
				l := newLab(t, s, p)
				l.compacting(strategy)
				r := l.start(t.Context())
				state := l.finish(r)
				if state.Cycle != cycles {
					t.Fatalf("%d cycles", state.Cycle)
				}
				compactions := l.compressed(r.ID)
				if len(compactions) < 2 {
					t.Fatalf("%d compactions", len(compactions))
				}
				l.judge(s.name+"/compacted/"+named(strategy), r.ID)
				l.judgeSummaries(strategy, compactions)
			})
		}
	}
}

func named(s compact.Strategy) string {
	if s == "" {
		return "default"
	}
	return string(s)
}

// judgeSummaries holds each summary that is asked for behind the conversation
// against the request before it, whose whole prompt it must read again.
func (l *lab) judgeSummaries(strategy compact.Strategy, compactions []event.HistoryCompressed) {
	l.t.Helper()
	paid, asked := 0, 0
	for _, d := range compactions {
		if d.Usage != nil {
			paid++
		}
	}
	for i, s := range l.p.served {
		if !s.summary {
			continue
		}
		asked++
		before := l.p.served[i-1]
		if strategy != compact.SummarizeOlder && (!s.goesOn || s.read < before.input-before.input/100) {
			l.t.Errorf("summary %d reads %d of the %d tokens of the request before it", asked, s.read, before.input)
		}
	}
	// The default clears old results as long as that is enough, for nothing.
	wants := strategy == compact.PeriodicSummary || strategy == compact.SummarizeOlder
	if asked != paid || wants != (asked > 0) {
		l.t.Errorf("%d summaries were asked for, %d compactions paid for one", asked, paid)
	}
}

// What every request begins with is not written again because of a compaction:
// tools, system text and task are read by the first request behind it.
func TestTheFirstRequestAfterACompactionReadsWhatDidNotChange(t *testing.T) {
	for _, s := range services() {
		t.Run(s.name, func(t *testing.T) {
			p := s.provider(six)
			l := newLab(t, s, p)
			l.compacting(compact.RollingWindow)
			l.finish(l.start(t.Context()))
			fixed := int64(compact.Overhead(l.cfg.System, l.cfg.Tools))
			seen := 0
			for i, served := range p.served {
				if !served.boundary {
					continue
				}
				seen++
				if fixed >= minimum(p.cache) && served.read < fixed-fixed%128 {
					t.Errorf("request %d reads %d tokens, and %d did not change", i+1, served.read, fixed)
				}
			}
			if seen == 0 {
				t.Error("no boundary")
			}
		})
	}
}

func minimum(c cache) int64 {
	switch c := c.(type) {
	case *markedCache:
		return c.minimum
	case *prefixCache:
		return c.minimum
	case *breakpointCache:
		return c.minimum
	}
	return 0
}

// A summary that came to nothing leaves the conversation where it was in the
// provider's cache: the loop goes on and reads it.
func TestASummaryThatFailsCostsNoCache(t *testing.T) {
	for _, s := range services() {
		t.Run(s.name, func(t *testing.T) {
			p := s.provider(six)
			l := newLab(t, s, p)
			l.compacting(compact.PeriodicSummary)
			failed := 0
			p.refuse = func() bool { failed++; return failed == 1 }
			r := l.start(t.Context())
			l.finish(r)
			if failed < 2 {
				t.Fatalf("%d summaries were asked for", failed)
			}
			l.judge(s.name+"/summary failed", r.ID)
		})
	}
}
