package simulate_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/history"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
)

// check holds the journal that is left against the promises of the house.
func (s *simulation) check() {
	s.t.Helper()
	w := s.world
	ctx := s.t.Context()
	run, err := s.run()
	if err != nil {
		s.t.Error(err)
		return
	}
	row, err := w.store.Run(ctx, run)
	if err != nil {
		s.t.Error(err)
		return
	}
	records, err := w.store.Records(ctx, run, 0, 0)
	if err != nil {
		s.t.Error(err)
		return
	}
	if row.State != journal.Ended {
		w.violate("the run's row says %s", row.State)
	}
	p := &promises{world: w, machine: agent.New(), started: map[string]bool{}}
	head := ""
	for i, r := range records {
		e, err := event.Decode(r.Body)
		if err != nil {
			w.violate("event %d: %v", i+1, err)
			return
		}
		if e.Seq != int64(i+1) || r.Seq != e.Seq {
			w.violate("event %d has seq %d", i+1, e.Seq)
		}
		if e.Prev != head {
			w.violate("event %d does not chain", e.Seq)
		}
		head = event.Hash(r.Body)
		if err := p.machine.Apply(e); err != nil {
			w.violate("the journal does not fold: %v", err)
			return
		}
		p.event(e, i == len(records)-1)
	}
	if row.Head != head {
		w.violate("the run's row has another head than its events")
	}
	p.end(row)
}

// promises folds a journal into what it must and must not hold.
type promises struct {
	world   *world
	machine *agent.Machine
	cycle   int
	calls   []string
	listed  []string
	settled map[string]bool
	started map[string]bool
	// allowed is the highest limit on calls so far: one that is lowered later
	// takes no call back.
	allowed  int
	ends     int
	reasons  int
	usage    llm.Usage
	usd      float64
	spending spending
	hooks    hookPromises
	attempts attempts
	asking   asking
	summed   summed
}

func (p *promises) event(e *event.Event, last bool) {
	w := p.world
	p.hooks.event(w, e)
	p.spending.event(w, e.Data, p.machine.Config().Limits)
	p.attempts.event(w, e)
	p.asking.event(w, e.Data)
	p.summed.event(w, e.Data)
	p.allowed = max(p.allowed, p.machine.Config().Limits.MaxToolCalls)
	switch d := e.Data.(type) {
	case event.CycleStart:
		if p.cycle++; d.Cycle != p.cycle || d.MaxCycles > 0 && d.Cycle > d.MaxCycles {
			w.violate("cycle %d of %d starts as the %d.", d.Cycle, d.MaxCycles, p.cycle)
		}
	case event.ModelResponse:
		p.usage, p.usd = p.usage.Add(d.Usage), p.usd+d.Cost.USD
		for _, c := range d.ToolCalls {
			p.calls = append(p.calls, c.CallID)
		}
	case event.ModelAttemptFailed:
		p.usage, p.usd = p.usage.Add(d.Usage), p.usd+d.Cost.USD
	case event.HistoryCompressed:
		p.compressed(d)
	case event.Stuck:
		w.seen("stuck " + string(d.Action))
	case event.ToolStarted:
		p.started[d.CallID] = true
	case event.ToolResult:
		if p.settled == nil {
			p.settled = map[string]bool{}
		}
		if p.settled[d.CallID] {
			w.violate("%s has two results", d.CallID)
		}
		p.settled[d.CallID] = true
	case event.ToolResults:
		for _, r := range d.Results {
			p.listed = append(p.listed, r.CallID)
		}
	case event.RunTerminatedBy:
		p.reasons++
	case event.RunCompleted:
		p.ends++
		if !last {
			w.violate("events follow run.completed")
		}
	}
}

// compressed holds a compaction against its promises: it takes something away,
// and never the task.
func (p *promises) compressed(d event.HistoryCompressed) {
	w := p.world
	w.seen("compressed " + d.Strategy + " " + string(d.Trigger))
	if d.TokensAfter >= d.TokensBefore {
		w.violate("a compaction from %d to %d tokens", d.TokensBefore, d.TokensAfter)
	}
	messages := p.machine.Transcript()
	if len(messages) != d.Kept || messages[0].Text() != "do it" {
		w.violate("after a compaction %d messages stay, said to be %d; the first is %q", len(messages), d.Kept, messages[0].Text())
	}
	if err := history.Lint(messages); err != nil {
		w.violate("after a compaction: %v", err)
	}
}

func (p *promises) end(row journal.Run) {
	w := p.world
	p.spending.end(w, p.usage, p.usd)
	w.bill.settled(w, p.usage, p.usd, p.spending.most)
	w.taints.end(p)
	if p.ends != 1 || p.reasons != 1 {
		w.violate("%d terminal events for %d reasons", p.ends, p.reasons)
	}
	if !slices.Equal(p.calls, p.listed) {
		w.violate("calls %v\nresults %v", p.calls, p.listed)
	}
	if len(p.started) > p.allowed {
		w.violate("%d calls started under a limit of %d", len(p.started), p.allowed)
	}
	state := p.machine.State()
	if state.Phase != machine.Ended {
		return
	}
	o := state.Outcome
	if o.Usage != p.usage || o.Cost != nil && math.Abs(o.Cost.USD-p.usd) > 1e-9 {
		w.violate("spent %+v %v, reported %+v %v", p.usage, p.usd, o.Usage, o.Cost)
	}
	if o.Cycles != p.cycle {
		w.violate("%d cycles, reported %d", p.cycle, o.Cycles)
	}
	if !o.Completed && o.NextSafeAction == "" {
		w.violate("%s says nothing of what to do next", o.Reason)
	}
	if strings.HasPrefix(string(o.Reason), "internal") {
		w.violate("the run ended by a defect: %+v", o.Error)
	}
	var stored event.Outcome
	if err := json.Unmarshal(row.Outcome, &stored); err != nil || stored.Reason != o.Reason {
		w.violate("the run's row tells of another outcome: %s (%v)", row.Outcome, err)
	}
	messages, err := p.machine.Conversation()
	if err == nil {
		err = history.Lint(messages)
	}
	if err != nil {
		w.violate("the conversation: %v", err)
	}
}

// listing is the journal, for a person who looks for what went wrong.
func (s *simulation) listing() string {
	run, err := s.run()
	if err != nil {
		return err.Error()
	}
	records, err := s.world.store.Records(s.t.Context(), run, 0, 0)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, r := range records {
		e, err := event.Decode(r.Body)
		if err != nil {
			fmt.Fprintln(&b, err)
			continue
		}
		body, _ := json.Marshal(e.Data)
		if len(body) > 200 {
			body = append(body[:200], "…"...)
		}
		fmt.Fprintf(&b, "%4d %s %s %s\n", e.Seq, e.Time.Format("15:04:05.000"), e.Type(), body)
	}
	return b.String()
}
