package engine_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm/scripted"
)

// peak counts what runs at once.
type peak struct {
	mu           sync.Mutex
	running, max int
}

// begin counts one more until what it returns is called.
func (p *peak) begin() (end func()) {
	p.add(1)
	return func() { p.add(-1) }
}

func (p *peak) add(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running += n
	p.max = max(p.max, p.running)
}

func (p *peak) most() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.max
}

// Which calls of one answer run beside each other follows from what their tool
// declares, and nothing else: each class of work is a tool that declares what
// such a tool does.
//
// rows: ALDO-43, ALF-56, ALF-57, HAR-62, HAR-63, HAR-64
func TestOnlyIndependentReadsRunBesideEachOther(t *testing.T) {
	type declared struct {
		effect               event.Effect
		readOnly, concurrent bool
		risk                 event.Risk
		access               []event.Access
	}
	reads := declared{effect: event.EffectPure, readOnly: true, concurrent: true}
	for _, c := range []struct {
		class    string
		tool     declared
		together bool
	}{
		{"search", reads, true},
		{"read", reads, true},
		{"metadata retrieval", declared{effect: event.EffectPure, readOnly: true, concurrent: true, access: []event.Access{{Key: "db"}}}, true},
		{"classification of independent records", reads, true},
		{"summarisation of independent documents", reads, true},
		{"a read that is not safe beside another", declared{effect: event.EffectPure, readOnly: true}, false},
		{"a write", declared{effect: event.EffectIdempotent, risk: event.RiskWrite, access: []event.Access{{Key: "file:a", Write: true}}}, false},
		{"a write that is safe beside others", declared{effect: event.EffectIdempotent, concurrent: true, risk: event.RiskWrite}, false},
		{"a send", declared{risk: event.RiskSend}, false},
		{"a delete", declared{risk: event.RiskDelete}, false},
		{"a financial action", declared{effect: event.EffectIdempotent, risk: event.RiskFinancial}, false},
		{"a permission change", declared{risk: event.RiskPermission}, false},
		{"a process", declared{risk: event.RiskExecute, access: []event.Access{{Key: "*", Write: true}}}, false},
		{"a commit in several steps elsewhere", declared{effect: event.EffectReconcilable, risk: event.RiskSend}, false},
		{"a tool that declares nothing", declared{}, false},
	} {
		t.Run(c.class, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var at peak
				work := toolFunc("work", func(context.Context) (string, error) {
					defer at.begin()()
					time.Sleep(time.Second)
					return "worked", nil
				})
				work.Effect, work.ReadOnly, work.Concurrent, work.Risk = c.tool.effect, c.tool.readOnly, c.tool.concurrent, c.tool.risk
				if c.tool.access != nil {
					work.Access = accesses(c.tool.access...)
				}
				r := newRig(t).tools(work).
					turns(scripted.Turn{ToolCalls: calls("work", "{}", "work", "{}", "work", "{}")}, scripted.Turn{Text: "done"})
				if o := outcome(t, r.start(t.Context())); !o.OK {
					t.Fatalf("outcome %+v", o)
				}
				want := 1
				if c.together {
					want = 3
				}
				if got := at.most(); got != want {
					t.Errorf("%d calls ran at once, want %d", got, want)
				}
			})
		})
	}
}
