package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

// workload is a run of four cycles. In the first it calls wait, which takes ten
// seconds, in the others two reads at once and whatever else a limit needs.
type workload struct {
	*rig
	reads peak
	flops int
}

func newWorkload(t *testing.T) *workload {
	w := &workload{rig: newRig(t)}
	pause := toolFunc("wait", func(context.Context) (string, error) { time.Sleep(10 * time.Second); return "", nil })
	read := tool.New("read", "Read.", func(_ context.Context, a struct {
		N int `json:"n"`
	}) (string, error) {
		defer w.reads.begin()()
		time.Sleep(time.Second)
		return strings.Repeat(fmt.Sprint(a.N, " "), 300), nil
	})
	read.Effect, read.ReadOnly, read.Concurrent = event.EffectPure, true, true
	busy := toolFunc("busy", func(context.Context) (string, error) {
		if w.flops++; w.flops <= 2 {
			return "", tool.Transient(fmt.Errorf("busy"))
		}
		return "fine", nil
	})
	busy.Effect = event.EffectIdempotent
	same := toolFunc("same", func(context.Context) (string, error) { time.Sleep(3 * time.Second); return "", nil })
	usage := &llm.Usage{Input: 400, Output: 1100}
	w.tools(pause, read, busy, same).turns(
		scripted.Turn{Usage: usage, ToolCalls: calls("wait", `{}`)},
		scripted.Turn{Usage: usage, ToolCalls: calls("read", `{"n":1}`, "read", `{"n":2}`, "busy", `{}`)},
		scripted.Turn{Usage: usage, ToolCalls: calls("same", `{}`)},
		scripted.Turn{Usage: usage, Error: &scripted.Failure{Class: llm.ClassOverloaded}},
		scripted.Turn{Usage: usage, Error: &scripted.Failure{Class: llm.ClassOverloaded}},
		scripted.Turn{Usage: usage, Text: "done"},
	)
	w.cfg.MaxTokens = 2000
	w.cfg.Targets[0].Price = &llm.Price{Input: 1, Output: 10}
	return w
}

// Each setting of the ledger, so low that it stops or narrows the run, and raised while
// the run is driven: it holds as long as it is low, in any process that drives the run,
// and no longer.
//
// rows: HAR-41..50
func TestEveryLimitHoldsAndCanBeRaisedWhileTheRunGoes(t *testing.T) {
	type limited struct {
		low, high float64
		// stops is how the run ends under the low limit, "" for one that only
		// shapes it; differs says that what the run did shows the low limit.
		stops   event.Reason
		differs func(w *workload, events []event.Event) bool
	}
	retries := func(kind string, most int) func(*workload, []event.Event) bool {
		return func(_ *workload, events []event.Event) bool { return count(events, kind) <= most }
	}
	table := map[string]limited{
		"max_cycles":                     {low: 1, high: 9, stops: event.ReasonMaxCycles},
		"usd_per_run":                    {low: 0.02, high: 5, stops: "budget:usd_per_run"},
		"max_total_cost":                 {low: 0.02, high: 5, stops: "budget:max_total_cost"},
		"max_model_turns":                {low: 1, high: 9, stops: "budget:max_model_turns"},
		"max_tool_calls":                 {low: 2, high: 9, stops: "budget:max_tool_calls"},
		"max_wall_time_seconds":          {low: 8, high: 100, stops: "budget:max_wall_time_seconds"},
		"max_input_tokens":               {low: 2000, high: 1e6, stops: "budget:max_input_tokens"},
		"max_output_tokens":              {low: 2200, high: 1e6, stops: "budget:max_output_tokens"},
		"max_no_progress_seconds":        {low: 6, high: 100, stops: "budget:max_no_progress_seconds"},
		"max_context_tokens_per_request": {low: 1000, high: 1e6, stops: "budget:max_context_tokens_per_request"},
		"max_retries_per_model_call":     {low: 1, high: 5, stops: event.ReasonModelError},
		"max_retries_per_tool_call":      {low: 1, high: 5, differs: retries("tool.retrying", 1)},
		"max_parallel_tool_calls":        {low: 1, high: 5, differs: func(w *workload, _ []event.Event) bool { return w.reads.most() == 1 }},
		"max_tool_result_chars": {low: 100, high: 1e6, differs: func(_ *workload, events []event.Event) bool {
			for _, r := range results(events) {
				if r.Truncated {
					return true
				}
			}
			return false
		}},
	}
	for _, setting := range budget.Settings() {
		l, ok := table[setting]
		if !ok {
			t.Errorf("nothing shows that %s holds", setting)
			continue
		}
		alone := 0 // the cycles of the run that is left alone
		for _, meanwhile := range []string{"left alone", "raised", "interrupted"} {
			t.Run(setting+" "+meanwhile, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorkload(t)
					if err := w.cfg.Limits.Set(setting, l.low); err != nil {
						t.Fatal(err)
					}
					if setting == "max_no_progress_seconds" {
						w.turns(scripted.Turn{ToolCalls: calls("wait", `{}`)}, scripted.Turn{ToolCalls: calls("same", `{}`)},
							scripted.Turn{ToolCalls: calls("same", `{}`)}, scripted.Turn{Text: "done"})
					}
					o, events := w.through(meanwhile, setting, l.high)
					want := event.ReasonFinalAnswer
					if l.stops != "" && meanwhile != "raised" {
						want = l.stops
					}
					if o.Reason != want {
						t.Errorf("ended with %s after %d cycles, want %s: %+v", o.Reason, o.Cycles, want, o.Error)
					}
					if meanwhile == "left alone" {
						alone = o.Cycles
					}
					if timed := strings.HasSuffix(setting, "_seconds"); meanwhile == "interrupted" && !timed && o.Cycles != alone {
						t.Errorf("ended after %d cycles in two processes, and after %d in one", o.Cycles, alone)
					}
					if l.differs != nil && l.differs(w, events) == (meanwhile == "raised") {
						t.Error("the run does not show its limit, or shows it though it was raised")
					}
				})
			})
		}
	}
}

// through plays the run to its end. After five seconds the limit is raised, or
// the process parks the run and another goes on a day later.
func (w *workload) through(meanwhile, setting string, high float64) (event.Outcome, []event.Event) {
	w.t.Helper()
	w.cfg.Compact.Off = true
	ctx, interrupt := context.WithCancelCause(w.t.Context())
	defer interrupt(nil)
	run := w.start(ctx)
	time.Sleep(5 * time.Second)
	switch meanwhile {
	case "raised":
		w.send(journal.Command{Run: run.ID, Kind: journal.Raise, Setting: setting, Value: high})
	case "interrupted":
		interrupt(engine.ErrInterrupted)
		parkedAs(w.t, run, event.ParkInterrupted)
		time.Sleep(24 * time.Hour)
		run = w.other().resume(run.ID)
	}
	o := outcome(w.t, run)
	return o, w.whole(run.ID)
}
