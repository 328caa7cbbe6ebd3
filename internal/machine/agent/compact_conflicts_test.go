package agent_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/compact"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/stop"
)

// types are the types of the run's events, in order.
func (p *play) types() []event.Type {
	p.t.Helper()
	var all []event.Type
	for _, body := range p.journal {
		e, err := event.Decode(body)
		if err != nil {
			p.t.Fatal(err)
		}
		all = append(all, e.Type())
	}
	return all
}

// Compaction has one place, between the termination check and the next call. The order
// there is cancel, budget, compact, budget again, call; and nothing is compressed if no
// call follows.
//
// rows: ALDO-20, ALDO-47, ALF-45, HAR-22, HAR-23
func TestNothingIsCompressedForARunThatIsAboutToEnd(t *testing.T) {
	due := windowed(compact.Settings{Strategy: compact.RollingWindow, Inclusive: true})
	with := func(change func(*agent.Config)) agent.Config {
		cfg := due
		change(&cfg)
		return cfg
	}
	for name, c := range map[string]struct {
		cfg    agent.Config
		before func(p *play)
		reason event.Reason
	}{
		"it goes on": {cfg: due},
		"a condition is met": {cfg: with(func(c *agent.Config) {
			c.Conditions = []stop.Condition{{Kind: stop.ToolResult, Tool: "read", Match: stop.Match{Contains: "7 is 7 is"}}}
		}), reason: event.ReasonConditionMet},
		"the cycles are used up": {cfg: with(func(c *agent.Config) { c.Limits.MaxCycles = 7 }), reason: event.ReasonMaxCycles},
		"the turns are used up":  {cfg: with(func(c *agent.Config) { c.Limits.MaxModelTurns = 7 }), reason: "budget:max_model_turns"},
		"it was cancelled":       {cfg: due, before: func(p *play) { p.command(event.CancelRequested{By: "ann"}) }, reason: event.ReasonCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, c.cfg)
			p.work(6)
			if len(p.compressed()) > 0 || compact.Messages(p.call.Request.Messages) < 600 {
				t.Fatal("the test wants a run that is one cycle before its compaction")
			}
			p.answer(asks("", "read file7"))
			if c.before != nil {
				c.before(p)
			}
			p.result("c7.1", event.ToolResult{Output: strings.Repeat("7 is ", 140)})
			if c.reason == "" {
				types := p.types()
				at := slices.Index(types, event.TypeHistoryCompressed)
				want := []event.Type{event.TypeToolResults, event.TypeHistoryCompressed, event.TypeCycleStart, event.TypeBudgetReserved, event.TypeModelRequested}
				if at < 1 || !slices.Equal(types[at-1:at+4], want) {
					t.Errorf("got %v", types[max(at-1, 0):])
				}
				return
			}
			if o := p.outcome(); o.Reason != c.reason || len(p.compressed()) > 0 {
				t.Errorf("ended with %s after %d compactions", o.Reason, len(p.compressed()))
			}
		})
	}
}

// What the loop says so that the model goes on comes last, behind what compaction
// leaves, and counts for the size of the request that follows.
//
// rows: ALDO-47, ALDO-48
func TestACycleWithoutCallsIsCompressedBeforeItIsNudged(t *testing.T) {
	for name, c := range map[string]struct {
		strategy compact.Strategy
		nudge    string
	}{
		"rolled":                              {compact.RollingWindow, "go on"},
		"summed up":                           {compact.PeriodicSummary, "go on"},
		"due by the words of the nudge alone": {compact.RollingWindow, strings.Repeat("go on ", 100)},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := windowed(compact.Settings{Strategy: c.strategy, Inclusive: true})
			cfg.OnNoToolCall, cfg.MaxNudges, cfg.NudgeText = agent.NoToolCallNudge, budget.None, c.nudge
			p := newPlay(t, cfg)
			for p.cycle < 30 {
				if p.call.Purpose != "" {
					p.answer(says("what happened"))
					continue
				}
				p.answer(says(strings.Repeat(fmt.Sprint("step ", p.cycle, " is done, "), 30)))
				if sent := p.call.Request.Messages; p.call.Purpose == "" && (sent[len(sent)-1].Text() != c.nudge || sent[len(sent)-2].Role != llm.RoleAssistant) {
					t.Fatalf("the newest messages are %+v and %+v", sent[len(sent)-2], sent[len(sent)-1])
				}
			}
			if len(p.compressed()) < 3 {
				t.Fatalf("%d compactions", len(p.compressed()))
			}
			types := p.types()
			for i, kind := range types {
				if kind == event.TypeHistoryCompressed && types[i+1] != event.TypeNudge {
					t.Errorf("event %d, a compaction, is followed by %s", i+1, types[i+1])
				}
			}
			p.check()
		})
	}
}

// A run that parks while the summary is made uses what was paid for when it goes
// on, and of the same messages that it was made of.
func TestParkDuringSummaryBeforeNudgeKeepsSummary(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile, then event.Data
		parked          event.ParkReason
	}{
		"paused":            {event.PauseRequested{}, nil, event.ParkPaused},
		"at a limit's edge": {event.BudgetRaised{Setting: "max_model_turns", Value: 1}, event.BudgetRaised{Setting: "max_model_turns", Value: 50}, event.ParkInput},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := windowed(compact.Settings{Strategy: compact.SummarizeOlder})
			cfg.OnNoToolCall, cfg.MaxNudges = agent.NoToolCallNudge, budget.None
			cfg.OnBudget = map[string]agent.OnBudget{"max_model_turns": agent.BudgetAsk}
			p := newPlay(t, cfg)
			for p.call.Purpose == "" {
				p.answer(says(strings.Repeat(fmt.Sprint("step ", p.cycle, " is done, "), 20)))
			}
			before, _ := p.live.Conversation()
			p.command(c.meanwhile)
			p.answer(says("what happened"))
			if d := p.live.State().Parked; d == nil || d.Reason != c.parked || len(p.compressed()) > 0 {
				t.Fatalf("parked %+v after %d compactions", d, len(p.compressed()))
			}
			if c.then != nil {
				p.command(c.then)
			}
			p.resume()
			all := p.compressed()
			if len(all) != 1 || all[0].Usage == nil || all[0].Kept+all[0].Dropped != len(before)+1 {
				t.Fatalf("of %d messages: %+v", len(before), all)
			}
			if sent := p.call.Request.Messages; p.call.Purpose != "" || sent[len(sent)-1].Origin != llm.OriginLoop || len(sent) != all[0].Kept+1 {
				t.Errorf("the next request has %d messages, of which %d were kept", len(sent), all[0].Kept)
			}
			p.check()
		})
	}
}

// The trigger and its measure, each as its owner sets them. Every request has
// the system text and the tools in it, and so has the size where the owner does
// not count messages only.
//
// rows: ALDO-18, ALF-48
func TestMeasuredSizeIsWholeRequestByDefault(t *testing.T) {
	tool := llm.ToolDef{Name: "read", Description: strings.Repeat("d", 392), Schema: []byte(`{}`)} // 100 tokens
	for name, c := range map[string]struct {
		settings compact.Settings
		reported int64
		change   func(*agent.Config)
		want     bool
	}{
		"700 of 1000 tokens":                               {},
		"with 100 of tools, exceeded":                      {change: func(c *agent.Config) { c.Tools = []llm.ToolDef{tool} }},
		"with 100 of tools, reached":                       {settings: compact.Settings{Inclusive: true}, change: func(c *agent.Config) { c.Tools = []llm.ToolDef{tool} }, want: true},
		"with 104 of system text":                          {change: func(c *agent.Config) { c.System = strings.Repeat("s", 416) }, want: true},
		"another share":                                    {settings: compact.Settings{Ratio: 0.69}, want: true},
		"the provider counts more, unasked":                {reported: 900},
		"the provider counts more, and is asked":           {settings: compact.Settings{Measure: compact.MeasureProvider}, reported: 900, want: true},
		"the provider counts less, and is asked":           {settings: compact.Settings{Measure: compact.MeasureProvider, Ratio: 0.5}, reported: 100},
		"with 104 of system text, and only messages count": {settings: compact.Settings{Measure: compact.MeasureMessages}, change: func(c *agent.Config) { c.System = strings.Repeat("s", 416) }},
		"only messages count, a share of them":             {settings: compact.Settings{Measure: compact.MeasureMessages, Ratio: 0.69}, want: true},
		"only messages count, and the request does not fit": {settings: compact.Settings{Measure: compact.MeasureMessages},
			change: func(c *agent.Config) { c.System = strings.Repeat("s", 4*310) }, want: true},
		"off": {settings: compact.Settings{Off: true, Ratio: 0.1}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := windowed(c.settings)
			cfg.Compact.Strategy = compact.RollingWindow
			if c.change != nil {
				c.change(&cfg)
			}
			p := newPlay(t, cfg)
			for n := range 6 {
				r := asks("", fmt.Sprint("read f", n))
				if c.reported > 0 && n == 5 {
					r.Usage.Input = c.reported
				}
				p.answer(r)
				// The task counts 2 and a call 5, which makes 700 in all.
				output := 4 * 111
				if n == 5 {
					output = 4 * (700 - 2 - 6*5 - 5*111)
				}
				if c.reported > 0 && n == 5 {
					output = 4
				}
				p.result(fmt.Sprintf("c%d.1", n+1), event.ToolResult{Output: strings.Repeat(fmt.Sprint(n), output)})
			}
			if got := len(p.compressed()) > 0; got != c.want {
				t.Errorf("compacted: %t; the next request has %d tokens of messages", got, compact.Messages(p.call.Request.Messages))
			}
		})
	}
}

// Whatever rolls away, the system text is in every request, and so is the first
// task.
//
// rows: ALDO-22
func TestTheSystemTextIsInEveryRequestHoweverMuchRolledAway(t *testing.T) {
	for _, strategy := range []compact.Strategy{"", compact.RollingWindow, compact.PeriodicSummary} {
		cfg := windowed(compact.Settings{Strategy: strategy, Inclusive: true})
		cfg.System = "You mend what is broken."
		p := newPlay(t, cfg)
		for p.cycle < 40 {
			p.work(1)
			if p.call.Request.System != cfg.System || first(p.call.Request.Messages) != "do it" {
				t.Fatalf("%s, cycle %d: a request begins with %q and %q", strategy, p.cycle, p.call.Request.System, first(p.call.Request.Messages))
			}
			if p.call.Purpose != "" {
				p.answer(says("what happened"))
			}
		}
		if len(p.compressed()) < 3 {
			t.Errorf("%s: %d compactions", strategy, len(p.compressed()))
		}
	}
}

// What is too long for one summary is summed up piece by piece: every piece
// fits the window, nothing is passed over, and each makes it shorter.
func TestAConversationOfManyWindowsIsSummedUpPieceByPiece(t *testing.T) {
	for _, strategy := range []compact.Strategy{"", compact.SummarizeOlder} {
		cfg := windowed(compact.Settings{Strategy: strategy})
		const window = 2000
		cfg.Compact.Window = window
		started, err := agent.Start(config(cfg), llm.UserText("do it"))
		if err != nil {
			t.Fatal(err)
		}
		// As of a run that continues one with a far larger window.
		started.From = &event.ContinuedFrom{Run: "before", Seq: 1}
		started.From.History = append(started.From.History, llm.UserText("the first task"))
		for i := range 60 {
			nudge := llm.UserText("go on")
			nudge.Origin = llm.OriginLoop
			started.From.History = append(started.From.History, &llm.Message{
				Role: llm.RoleAssistant, Origin: "m/a", Parts: llm.Parts{llm.Text{Text: fmt.Sprintf("finding %d. ", i) + strings.Repeat("words ", 100)}},
			}, nudge)
		}
		p := emptyPlay(t)
		p.apply(started)
		p.advance()
		var asked strings.Builder
		pieces := 0
		for p.call != nil && p.call.Purpose != "" {
			pieces++
			size := compact.Messages(p.call.Request.Messages) + compact.Tokens(p.call.Request.System)
			if size > window {
				t.Fatalf("%s: piece %d has %d tokens in a window of %d", strategy, pieces, size, window)
			}
			for _, m := range p.call.Request.Messages {
				asked.WriteString(m.Text())
			}
			p.answer(says(fmt.Sprint("piece ", pieces)))
		}
		if pieces < 3 {
			t.Errorf("%s: %d pieces", strategy, pieces)
		}
		now := compact.Messages(p.call.Request.Messages)
		if now > window {
			t.Errorf("%s: %d tokens are left", strategy, now)
		}
		left := 0
		for i := range 60 {
			text := fmt.Sprintf("finding %d. ", i)
			there := slices.ContainsFunc(p.call.Request.Messages, func(m *llm.Message) bool { return strings.HasPrefix(m.Text(), text) })
			if !there && !strings.Contains(asked.String(), text) {
				t.Errorf("%s: %q is neither there nor summed up", strategy, text)
			}
			if !there {
				left++
			}
		}
		if left < 30 {
			t.Errorf("%s: only %d findings left", strategy, left)
		}
		for i, d := range p.compressed() {
			if d.TokensAfter >= d.TokensBefore {
				t.Errorf("%s: step %d makes %d tokens of %d", strategy, i, d.TokensAfter, d.TokensBefore)
			}
		}
		p.check()
	}
}

// A message takes the place of the nudge that a summary was due for, and may be
// shorter. What was paid for is used all the same.
func TestMessageDuringSummaryReplacesNudgeNotSummary(t *testing.T) {
	for name, message := range map[string]string{
		"a word": "stop", "as long as the nudge": strings.Repeat("words ", 100), "more than fits": strings.Repeat("words ", 500),
	} {
		t.Run(name, func(t *testing.T) {
			cfg := windowed(compact.Settings{Strategy: compact.SummarizeOlder})
			cfg.OnNoToolCall, cfg.MaxNudges, cfg.NudgeText = agent.NoToolCallNudge, budget.None, strings.Repeat("go on ", 100)
			p := newPlay(t, cfg)
			for p.call.Purpose == "" {
				p.answer(says(strings.Repeat(fmt.Sprint("step ", p.cycle, " is done, "), 5)))
			}
			p.command(event.InputReceived{Text: message})
			p.answer(says("what happened"))
			if all := p.compressed(); len(all) == 0 || all[0].Usage == nil || !strings.Contains(all[0].Summary, "what happened") {
				t.Fatalf("the summary is not used: %+v\n%s", all, p.log.String())
			}
			if name == "more than fits" {
				return
			}
			if sent := p.call.Request.Messages; sent[len(sent)-1].Text() != message {
				t.Errorf("the newest message is %q", sent[len(sent)-1].Text())
			}
			p.check()
		})
	}
}
