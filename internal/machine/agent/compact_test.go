package agent_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/compact"
	"github.com/pawlrun/pawl/llm"
)

// compressed are the run's compactions, in order.
func (p *play) compressed() []event.HistoryCompressed {
	p.t.Helper()
	var all []event.HistoryCompressed
	for _, body := range p.journal {
		e, err := event.Decode(body)
		if err != nil {
			p.t.Fatal(err)
		}
		if d, ok := e.Data.(event.HistoryCompressed); ok {
			all = append(all, d)
		}
	}
	return all
}

// last is the newest event of a kind.
func (p *play) last(kind event.Type) event.Data {
	p.t.Helper()
	for _, body := range slices.Backward(p.journal) {
		e, err := event.Decode(body)
		if err != nil {
			p.t.Fatal(err)
		}
		if e.Type() == kind {
			return e.Data
		}
	}
	p.t.Fatalf("there is no %s:\n%s", kind, p.log.String())
	return nil
}

// windowed is a run in a window of 1,000 tokens.
func windowed(s compact.Settings) agent.Config {
	s.Window = 1000
	return agent.Config{Compact: s, MaxTokens: 100}
}

// work plays whole cycles of one call with a result of 100 tokens each, until
// a summary is asked for, the run ends, or there were n.
func (p *play) work(n int) {
	p.t.Helper()
	for range n {
		if p.call == nil || p.call.Purpose != "" {
			return
		}
		cycle := p.cycle
		p.answer(asks("", fmt.Sprint("read file", cycle)))
		p.result(fmt.Sprintf("c%d.1", cycle), event.ToolResult{Output: strings.Repeat(fmt.Sprint(cycle%10, " is "), 80)})
	}
}

func first(messages []*llm.Message) string { return messages[0].Text() }

// rows: ALDO-5, ALDO-18..20, ALDO-28, ALDO-39, ALDO-47, HAR-23, HAR-1
func TestHistoryIsCompressedBetweenCyclesWhenDue(t *testing.T) {
	p := newPlay(t, windowed(compact.Settings{Strategy: compact.RollingWindow, Inclusive: true}))
	for p.cycle < 20 {
		before := len(p.compressed())
		p.work(1)
		asked := p.call.Request
		size := compact.Messages(asked.Messages)
		switch compressed := p.compressed(); {
		case len(compressed) > before+1:
			t.Fatalf("%d compactions after one cycle", len(compressed)-before)
		case len(compressed) == before && size >= 800:
			t.Fatalf("a request of %d tokens went out of a window of 1000", size)
		case len(compressed) > before:
			d := compressed[before]
			if d.TokensBefore < 800 || int(d.TokensAfter) != size || d.Trigger != event.CompressThreshold {
				t.Errorf("%+v; the next request has %d tokens", d, size)
			}
		}
		if first(asked.Messages) != "do it" {
			t.Fatal("the task is gone")
		}
	}
	if n := len(p.compressed()); n < 2 || n > 10 {
		t.Errorf("%d compactions in 20 cycles", n)
	}
	p.check()
}

// A run that continues another begins with a conversation that may be too long
// for its first request.
//
// rows: HAR-23
func TestALongConversationIsCompressedBeforeTheFirstCall(t *testing.T) {
	var history []*llm.Message
	for i := range 20 {
		history = append(history, llm.UserText(fmt.Sprint("question ", i)), &llm.Message{
			Role: llm.RoleAssistant, Parts: llm.Parts{llm.Text{Text: strings.Repeat(fmt.Sprint(i, " is "), 80)}},
		})
	}
	p := emptyPlay(t)
	started, err := agent.Start(config(windowed(compact.Settings{Strategy: compact.RollingWindow})), llm.UserText("go on"))
	if err != nil {
		t.Fatal(err)
	}
	started.From = &event.ContinuedFrom{Run: "q", Seq: 9, History: history}
	p.apply(started)
	p.advance()
	if n := len(p.compressed()); n != 1 {
		t.Errorf("%d compactions before the first call:\n%s", n, p.log.String())
	}
	if size := compact.Messages(p.call.Request.Messages); p.call.Cycle != 1 || size >= 800 {
		t.Errorf("the first call is of cycle %d and has %d tokens in a window of 1000", p.call.Cycle, size)
	}
}

// rows: ALDO-24..27
func TestPeriodicSummaryIsChargedThreeTimesPerRun(t *testing.T) {
	cfg := windowed(compact.Settings{Strategy: compact.PeriodicSummary, Inclusive: true})
	dollar := &llm.Price{Input: 1e6, Output: 1e6} // for every token
	cfg.Targets = []agent.Target{{Model: "m/a", Price: dollar}, {Model: "m/b", Price: dollar}}
	cfg.Limits.MaxCycles = 100
	p := newPlay(t, cfg)
	p.breaks(llm.ClassOverloaded)
	p.after(time.Second)
	for n := range 3 {
		p.work(30)
		if p.call.Purpose != event.PurposeSummary || p.call.Target != "m/b" || p.call.Streamed {
			t.Fatalf("summary %d: %+v", n+1, p.call)
		}
		messages := p.call.Request.Messages
		if last := messages[len(messages)-1].Text(); !strings.Contains(last, "Write the summary") {
			t.Errorf("asked with %q", last)
		}
		usage := p.live.State().Usage
		p.answer(says(fmt.Sprintf("summary %d of what happened", n+1)))
		if got := p.live.State().Usage; got.Input != usage.Input+2 || got.Output != usage.Output+1 {
			t.Errorf("usage went from %+v to %+v: the summary is not charged", usage, got)
		}
		d := p.compressed()[n]
		if d.Strategy != "periodic-summary" || d.Usage == nil || d.Cost == nil || d.Cost.USD != 3 {
			t.Errorf("%+v", d)
		}
		if got := p.call.Request.Messages[d.SummaryAt].Text(); got != d.Summary || !strings.Contains(got, fmt.Sprint("summary ", n+1)) {
			t.Errorf("in the place of the summary stands %q", got)
		}
		if size := compact.Messages(p.call.Request.Messages); int64(size) != d.TokensAfter || size >= compact.Messages(messages) {
			t.Errorf("the next request has %d tokens, before %d; the event says %d", size, compact.Messages(messages), d.TokensAfter)
		}
	}
	p.crash()
	p.resume() // the count is the run's, not the process's
	p.work(30)
	compressed := p.compressed()
	if len(compressed) < 5 {
		t.Fatalf("%d compactions", len(compressed))
	}
	for _, d := range compressed[3:] {
		if d.Strategy != "rolling-window" || d.Usage != nil {
			t.Errorf("after three summaries: %+v", d)
		}
	}
	p.check()
}

// What is set aside for a call in flight is settled by what the call used.
func TestARaiseLeavesWhatIsSetAsideForACallInFlight(t *testing.T) {
	for purpose, cycles := range map[event.Purpose]int{"": 0, event.PurposeSummary: 30} {
		p := newPlay(t, windowed(compact.Settings{Strategy: compact.SummarizeOlder}))
		p.work(cycles)
		if p.call.Purpose != purpose {
			t.Fatalf("the call in flight is for %q", p.call.Purpose)
		}
		before := len(p.types())
		p.command(event.BudgetRaised{Setting: "max_tool_calls", Value: 500})
		if after := p.types()[before:]; !slices.Equal(after, []event.Type{event.TypeBudgetRaised}) {
			t.Errorf("a raise during a call for %q brings about %v", purpose, after)
		}
	}
}

// rows: ALF-9, ALF-45, ALF-53..55
func TestASummaryThatFailsLeavesTheHistoryAndTheLoopGoesOn(t *testing.T) {
	cfg := windowed(compact.Settings{Strategy: compact.SummarizeOlder})
	cfg.System, cfg.Tools = "You mend.", []llm.ToolDef{{Name: "read"}}
	p := newPlay(t, cfg)
	p.work(30)
	if p.call.Purpose != event.PurposeSummary || !strings.HasPrefix(p.call.Request.System, "You compact the history") || len(p.call.Request.Tools) > 0 {
		t.Fatalf("%+v", p.call)
	}
	if asked := p.call.Request.Messages; len(asked) != 1 || !strings.Contains(asked[0].Text(), "USER: do it\n") {
		t.Fatalf("the summary is asked for with %d messages", len(asked))
	}
	before, _ := p.live.Conversation()
	p.breaks(llm.ClassQuota)
	if p.call == nil || p.call.Purpose != "" || !slices.Equal(p.call.Request.Messages, before) || len(p.compressed()) > 0 {
		t.Fatalf("the loop does not go on with the same list:\n%s", p.log.String())
	}
	// The next cycle tries again; a third failure is the last.
	for n := 2; n <= 3; n++ {
		p.work(1)
		if p.call.Purpose != event.PurposeSummary {
			t.Fatalf("summary %d is not tried", n)
		}
		p.answer(says(" "))
	}
	p.work(30)
	if p.call.Purpose != "" {
		t.Error("a fourth summary is tried")
	}
	for _, d := range p.compressed() {
		if d.Strategy != "rolling-window" || d.TokensBefore <= 1000 {
			t.Errorf("what would still have fitted was cut: %+v", d)
		}
	}
	if len(p.compressed()) == 0 {
		t.Error("a window that overflows is not rolled")
	}
	p.check()
}

func TestASummaryIsRetriedAndResumedLikeAnyCall(t *testing.T) {
	p := newPlay(t, windowed(compact.Settings{Strategy: compact.SummarizeOlder}))
	p.work(30)
	p.breaks(llm.ClassOverloaded)
	if p.asleep == nil || p.asleep.Purpose != event.PurposeSummary || p.asleep.Attempt != 2 {
		t.Fatalf("an overloaded model is not tried again:\n%s", p.log.String())
	}
	p.after(1e9)
	p.crash()
	p.resume()
	lost := p.last(event.TypeModelAttemptFailed).(event.ModelAttemptFailed)
	if lost.Class != llm.ClassInterrupted || lost.Model != "m/a" || lost.Attempt != 2 || lost.Purpose != event.PurposeSummary ||
		!strings.Contains(lost.Message, "the process stopped") || lost.Usage.Input == 0 || !lost.Cost.Priced {
		t.Errorf("of the call whose process is gone it says %+v", lost)
	}
	if p.call == nil || p.call.Purpose != event.PurposeSummary || p.call.Attempt != 3 {
		t.Fatalf("the summary is lost with its process:\n%s", p.log.String())
	}
	p.answer(says("what happened"))
	if d := p.compressed(); len(d) != 1 || d[0].Strategy != "summarize-older" || p.call.Purpose != "" {
		t.Errorf("%+v", d)
	}
	p.work(3)
	p.answer(says("done"))
	p.check()
}

func TestACancelDuringASummaryEndsTheRun(t *testing.T) {
	p := newPlay(t, windowed(compact.Settings{Strategy: compact.SummarizeOlder}))
	p.work(30)
	p.cancel()
	if o := p.outcome(); o.Reason != event.ReasonCancelled {
		t.Errorf("%+v", o)
	}
	p.check()
}

func TestASummaryThatCannotBePaidForIsNotMade(t *testing.T) {
	cfg := windowed(compact.Settings{Strategy: compact.SummarizeOlder})
	cfg.Limits.MaxRequestTokens = 900
	p := newPlay(t, cfg)
	p.work(30)
	if p.call.Purpose != event.PurposeSummary {
		t.Fatal("no summary")
	}
	reserved := 0
	for _, body := range p.journal {
		if e, _ := event.Decode(body); e.Type() == event.TypeBudgetReserved {
			if d := e.Data.(event.BudgetReserved); strings.HasPrefix(d.ID, "summary-") {
				reserved++
			}
		}
	}
	if reserved != 1 {
		t.Errorf("the summary has %d reservations", reserved)
	}
}

// A limit on the size of single requests is a window, too.
func TestARunCompactsBeforeItEndsByTheSizeOfARequest(t *testing.T) {
	p := newPlay(t, agent.Config{
		Compact: compact.Settings{Strategy: compact.RollingWindow}, Limits: budget.Limits{MaxRequestTokens: 1000, MaxCycles: 12},
	})
	p.work(30)
	if o := p.outcome(); o.Reason != event.ReasonMaxCycles || len(p.compressed()) == 0 {
		t.Errorf("ended with %s after %d compactions", o.Reason, len(p.compressed()))
	}
}

// A strategy that drops turns only where nothing else helps does so then, too.
func TestASizeOfRequestsThatIsReachedIsRoomThatIsMissing(t *testing.T) {
	p := newPlay(t, agent.Config{
		Compact: compact.Settings{Strategy: compact.SummarizeOlder, MaxSummaries: new(0)}, Limits: budget.Limits{MaxRequestTokens: 1000, MaxCycles: 15},
	})
	p.work(30)
	if o := p.outcome(); o.Reason != event.ReasonMaxCycles || len(p.compressed()) == 0 {
		t.Errorf("ended with %s after %d cycles and %d compactions", o.Reason, o.Cycles, len(p.compressed()))
	}
}

// What the provider says of a request that was too long is more than an estimate.
func TestRunEndsWithProviderErrorIfNothingCanBeDropped(t *testing.T) {
	p := newPlay(t, windowed(compact.Settings{Strategy: compact.RollingWindow}))
	p.command(event.InputReceived{Text: strings.Repeat("long ", 2000)})
	p.breaks(llm.ClassContextOverflow, func(f *event.ModelAttemptFailed) { f.Status, f.RequestID = 413, "req_1" })
	if o := p.outcome(); o.Error == nil || o.Error.Message != "it broke" || o.Error.Status != 413 || o.Error.RequestID != "req_1" {
		t.Errorf("%+v", o.Error)
	}
	p.check()
}

// What the provider found too long is sent once more, shorter, and not again.
func TestAnOverflowIsAnsweredByOneCompactionAndOneRetry(t *testing.T) {
	overflow := func(p *play) { p.breaks(llm.ClassContextOverflow) }
	for name, overflows := range map[string]func(p *play){
		"the provider refuses":  overflow,
		"the answer breaks off": func(p *play) { p.answer(finish(llm.FinishContext, says("I was about to"))) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, agent.Config{MaxTokens: 100, Compact: compact.Settings{Strategy: compact.RollingWindow}})
			p.work(12)
			before := p.call.Request.Messages
			overflows(p)
			if p.call == nil || compact.Messages(p.call.Request.Messages) >= compact.Messages(before) {
				t.Fatalf("it is not tried again with less:\n%s", p.log.String())
			}
			if d := p.compressed(); len(d) != 1 || d[0].Trigger != event.CompressOverflow {
				t.Errorf("%+v", d)
			}
			if first(p.call.Request.Messages) != "do it" {
				t.Error("the task is gone")
			}
			overflows(p)
			o := p.outcome()
			if o.Reason != event.ReasonModelError || o.Error.Class != string(llm.ClassContextOverflow) {
				t.Errorf("%+v", o)
			}
			p.check()
		})
	}
	t.Run("an answer in between clears the count", func(t *testing.T) {
		p := newPlay(t, agent.Config{MaxTokens: 100, Compact: compact.Settings{Strategy: compact.RollingWindow}})
		for range 3 {
			p.work(12)
			overflow(p)
		}
		if len(p.compressed()) != 3 || p.call == nil {
			t.Errorf("%d compactions", len(p.compressed()))
		}
	})
	t.Run("a summary is asked for first", func(t *testing.T) {
		p := newPlay(t, agent.Config{MaxTokens: 100, Compact: compact.Settings{Strategy: compact.SummarizeOlder}})
		p.work(40)
		overflow(p)
		if p.call.Purpose != event.PurposeSummary {
			t.Fatalf("no summary:\n%s", p.log.String())
		}
		p.crash()
		p.resume()
		p.answer(says("what happened"))
		if p.call == nil || p.call.Purpose != "" || p.call.Attempt != 2 || !strings.Contains(p.call.Request.Messages[1].Text(), "what happened") {
			t.Errorf("the call is not made again:\n%s", p.log.String())
		}
		p.answer(says("done"))
		p.check()
	})
	t.Run("and asked for with less than was too long", func(t *testing.T) {
		p := newPlay(t, agent.Config{MaxTokens: 100, Compact: compact.Settings{Strategy: compact.PeriodicSummary}})
		p.work(40)
		refused := compact.Messages(p.call.Request.Messages)
		overflow(p)
		if p.call.Purpose != event.PurposeSummary {
			t.Fatalf("no summary:\n%s", p.log.String())
		}
		if size := compact.Messages(p.call.Request.Messages); size > refused*4/5 {
			t.Errorf("asked for with %d tokens where %d were too many", size, refused)
		}
	})
	t.Run("not where compaction is off", func(t *testing.T) {
		p := newPlay(t, agent.Config{Compact: compact.Settings{Off: true}})
		p.work(12)
		overflow(p)
		if o := p.outcome(); o.Reason != event.ReasonModelError || len(p.compressed()) > 0 {
			t.Errorf("%+v", o)
		}
	})
}

func TestARunEndsWithAdviceWhenNothingMoreCanBeLeftOut(t *testing.T) {
	for name, d := range map[string]event.InputReceived{
		"a text": {Text: strings.Repeat("long ", 2000)},
		"a file": {Media: []llm.Media{{MediaType: "image/png", Data: []byte("png")}}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, windowed(compact.Settings{Strategy: compact.RollingWindow}))
			p.answer(asks("", "read a"))
			p.command(d)
			p.results("c1.1=ok")
			o := p.outcome()
			if o.Reason != event.ReasonModelError || !strings.Contains(o.Error.Message, "context_window") || o.Cycles != 1 {
				t.Errorf("%+v", o)
			}
		})
	}
}

func TestARunWhoseFloorFillsTheWindowDoesNotStart(t *testing.T) {
	cfg := windowed(compact.Settings{})
	cfg.System = strings.Repeat("rule ", 700)
	_, err := agent.Start(config(cfg), llm.UserText("do it"))
	if !errors.Is(err, compact.ErrNoRoom) {
		t.Errorf("%v", err)
	}
}

// The text about fences is in every request, so it counts against the room that a run
// needs to begin.
func TestFenceTextCountsAsFloor(t *testing.T) {
	cfg := windowed(compact.Settings{})
	cfg.System = strings.Repeat("rule ", 600)
	if _, err := agent.Start(config(cfg), llm.UserText("do it")); err != nil {
		t.Fatalf("without a fence: %v", err)
	}
	if _, err := agent.StartFenced(config(cfg), llm.UserText("do it"), &event.Fence{}); !errors.Is(err, compact.ErrNoRoom) {
		t.Errorf("with a fence: %v", err)
	}
}

// What a person said of a call stays when the call itself has left.
func TestDecisionsOutliveTheCallsTheyWereAbout(t *testing.T) {
	cfg := windowed(compact.Settings{Strategy: compact.SummarizeOlder})
	cfg.Policy.Gates = []string{"send"}
	p := newPlay(t, cfg)
	p.answer(asks("", "send mail"))
	p.decide("c1.1", event.ApprovalRejected, "not to customers")
	p.work(30)
	p.answer(says("what happened"))
	if d := p.compressed(); len(d) != 1 || !strings.Contains(d[0].Summary, `send {"path":"mail"} was rejected by ann: not to customers`) {
		t.Errorf("%+v", d)
	}
}

// The newest decisions are kept, and a fork that changes the run's window still
// holds to them.
func TestTheNewestDecisionsAreKeptAlsoByAFork(t *testing.T) {
	cfg := windowed(compact.Settings{Strategy: compact.SummarizeOlder, Off: true})
	cfg.Policy.Gates = []string{"send"}
	p := newPlay(t, cfg)
	for n := range compact.MaxDecisions + 5 {
		p.answer(asks("", fmt.Sprint("send mail", n), fmt.Sprint("read n", n)))
		p.decide(fmt.Sprintf("c%d.1", n+1), event.ApprovalRejected, fmt.Sprint("reason ", n, " of many"))
		p.results(fmt.Sprintf("c%d.2=%d", n+1, n))
	}
	p.call = nil
	p.apply(event.ModelAttemptFailed{Attempt: 1, Model: "m/a", Class: llm.ClassInterrupted})
	settings := p.live.Config()
	settings.Compact.Off, settings.Compact.Window = false, 3000
	raw, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	p.command(event.RunForked{From: "r", Seq: p.seq, Config: raw})
	p.work(30)
	p.answer(says("what happened"))
	d := p.compressed()
	if len(d) != 1 {
		t.Fatalf("%d compactions:\n%s", len(d), p.log.String())
	}
	for n := range compact.MaxDecisions + 5 {
		if kept := strings.Contains(d[0].Summary, fmt.Sprintf("reason %d of many", n)); kept != (n >= 5) {
			t.Errorf("decision %d: kept %t", n, kept)
		}
	}
}

// A request is measured by what the provider counted, where the owner wants it.
func TestTheProvidersCountIsBelievedWhereItIsAskedFor(t *testing.T) {
	heavy := asks("", "read a")
	heavy.Usage.Input = 900
	for _, tt := range []struct {
		measure compact.Measure
		counted int64
		result  string
		want    int
	}{
		{compact.MeasureEstimate, 900, "ok", 0},
		{compact.MeasureProvider, 900, "ok", 1},
		{compact.MeasureProvider, 10, "ok", 0},
		// What came since is estimated.
		{compact.MeasureProvider, 700, "ok", 0},
		{compact.MeasureProvider, 700, strings.Repeat("more ", 100), 1},
	} {
		p := newPlay(t, windowed(compact.Settings{Strategy: compact.RollingWindow, Measure: tt.measure}))
		p.work(4)
		heavy.Parts, heavy.Usage.Input = asks("", "read b").Parts, tt.counted
		p.answer(heavy)
		p.results("c5.1=" + tt.result)
		if got := len(p.compressed()); got != tt.want {
			t.Errorf("%s of %d and %.9q: %d compactions, want %d", tt.measure, tt.counted, tt.result, got, tt.want)
		}
	}
}

// A tool that keeps the todos says so of its results; the newest of them
// stays as it is, whatever the loop makes of the rest.
func TestOpenTodosOutliveEveryCompaction(t *testing.T) {
	for _, strategy := range []compact.Strategy{"", compact.RollingWindow, compact.SummarizeOlder} {
		p := newPlay(t, windowed(compact.Settings{Strategy: strategy}))
		p.answer(asks("", "read todos"))
		p.result("c1.1", event.ToolResult{Output: "open: mend it, because it fails", Pin: "todo"})
		p.answer(asks("", "read todos again"))
		p.result("c2.1", event.ToolResult{Output: "open: test it, because it was mended", Pin: "todo"})
		for len(p.compressed()) < 3 {
			p.work(30)
			if p.call.Purpose != "" {
				p.answer(says("what happened"))
			}
			if p.cycle > 100 {
				t.Fatalf("%s: %d compactions in %d cycles", strategy, len(p.compressed()), p.cycle)
			}
		}
		p.crash()
		p.resume()
		found := ""
		for _, m := range p.call.Request.Messages {
			for _, part := range m.Parts {
				if r, ok := part.(llm.ToolResult); ok && r.Pin == "todo" {
					found += r.Output
				}
			}
		}
		if found != "open: test it, because it was mended" {
			t.Errorf("%s: the todos are %q", strategy, found)
		}
		p.check()
	}
}
