package wiregate

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/machine/versions"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
)

// loopTime bounds one session, so that a loop that hangs is a failed test.
const loopTime = 30 * time.Second

// loopGate runs recorded tool loops through the real engine, with tools that
// answer what was answered then: as many requests as recorded, each of the
// recorded meaning, the same final text, and the summed usage. Where the
// recorded user spoke again after a final answer, a new run continues there.
func loopGate(t *testing.T, a Adapter) {
	r := report{name: "loop/" + a.API}
	for _, s := range load(t, a.API) {
		a := a.of(&s)
		if !s.ToolLoop && !pausesOnly(&s) || failsMidway(&s) {
			continue
		}
		r.run(t, s.ID, func(t *testing.T) string {
			l, why := newLoop(t, a, &s)
			if why != "" {
				return why
			}
			l.run(t)
			return ""
		})
	}
	r.finish(t)
}

// pausesOnly reports whether a session goes on only because its turns were paused.
func pausesOnly(s *Scenario) bool {
	for i := range s.Exchanges[:len(s.Exchanges)-1] {
		if !isPause(&s.Exchanges[i]) {
			return false
		}
	}
	return len(s.Exchanges) > 1
}

func isPause(x *Exchange) bool {
	f, ok := x.Expected.finish()
	return ok && f == llm.FinishPause
}

// failsMidway reports whether an exchange before the last one failed: what its
// client then made up in the answer's place cannot follow from the recording.
func failsMidway(s *Scenario) bool {
	for _, x := range s.Exchanges[:len(s.Exchanges)-1] {
		if x.Expected.Error != nil {
			return true
		}
	}
	return false
}

// loop is one session under way.
type loop struct {
	adapter  *Adapter
	scenario *Scenario
	recorded []llm.Request
	replay   *Replay
	tools    *tool.Set
	engine   *engine.Engine

	mu sync.Mutex
	// answers are the results to give, by tool, in the order of the calls.
	answers map[string][]llm.ToolResult
}

func newLoop(t *testing.T, a *Adapter, s *Scenario) (*loop, string) {
	l := &loop{adapter: a, scenario: s, answers: map[string][]llm.ToolResult{}}
	for i := range s.Exchanges {
		x := &s.Exchanges[i]
		if x.Request == nil && i > 0 && isPause(&s.Exchanges[i-1]) {
			// Its client asked for the same answer once more.
			l.recorded = append(l.recorded, l.recorded[i-1])
			continue
		}
		if x.Request == nil {
			return nil, "the recorder kept no request of exchange " + x.Name
		}
		req, err := a.Parse(x.Request)
		if err != nil {
			t.Fatalf("parse the recorded request of %s: %v", x.Name, err)
		}
		l.recorded = append(l.recorded, req)
		if i > 0 && turns(req.Messages) != turns(l.recorded[i-1].Messages)+1 {
			// Its client went back to an earlier point; the loop ends before.
			short := *s
			short.Exchanges = s.Exchanges[:i]
			l.scenario, l.recorded = &short, l.recorded[:i]
			break
		}
		since, ok := tail(req.Messages)
		if i > 0 && !ok {
			return nil, "request " + x.Name + " begins a new conversation"
		}
		if i > 0 {
			l.queue(results(since), s.Exchanges[i-1].Expected.ToolCalls)
		}
	}
	var tools []tool.Tool
	for _, def := range l.recorded[0].Tools {
		tools = append(tools, tool.Tool{
			Name: def.Name, Description: def.Description, Schema: def.Schema, Effect: event.EffectPure,
			Deferred: def.Deferred, Search: def.Search, Run: l.toolRun(def.Name),
		})
	}
	var err error
	if l.tools, err = tool.NewSet(tools...); err != nil {
		t.Fatal(err)
	}
	l.replay = Serve(t, l.scenario.Exchanges...)
	l.engine = engine.New(memory.New(nil), versions.Make, engine.Options{})
	t.Cleanup(func() { _ = l.engine.Close() })
	return l, ""
}

func (l *loop) queue(fed []llm.ToolResult, calls []ExpectedCall) {
	for i, c := range calls {
		for n, r := range fed {
			if r.ProviderID == c.ID && (c.ID != "" || n == i) {
				l.answers[c.Name] = append(l.answers[c.Name], r)
				break
			}
		}
	}
}

func (l *loop) toolRun(name string) func(context.Context, tool.Call) (tool.Result, error) {
	return func(context.Context, tool.Call) (tool.Result, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.answers[name]) == 0 {
			return tool.Result{}, fmt.Errorf("the recording holds no further result of %s", name)
		}
		r := l.answers[name][0]
		l.answers[name] = l.answers[name][1:]
		return tool.Result{Output: r.Output, IsError: r.IsError, Media: r.Media, Tools: r.Tools}, nil
	}
}

func (l *loop) run(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), loopTime)
	defer cancel()
	exchanges := l.scenario.Exchanges
	first := l.recorded[0].Messages
	conversation, input := first[:len(first)-1], first[len(first)-1]
	var usage llm.Usage
	var outcome event.Outcome
	for {
		outcome, conversation = l.segment(ctx, t, conversation, input)
		usage = usage.Add(outcome.Usage)
		sent := len(l.replay.Requests())
		if sent >= len(exchanges) || t.Failed() {
			break
		}
		since, _ := tail(l.recorded[sent].Messages)
		next := said(since)
		if len(next) != 1 {
			t.Fatalf("the run ended after %d of %d requests: %s", sent, len(exchanges), outcome.Reason)
		}
		input = next[0]
	}
	l.check(t, outcome, usage)
}

// segment is one run: from a user's message to a final answer.
func (l *loop) segment(ctx context.Context, t *testing.T, from []*llm.Message, input *llm.Message) (event.Outcome, []*llm.Message) {
	model := l.adapter.New(l.replay.URL, l.replay.Client(Unsplit))
	name := l.recorded[0].Model
	cfg := agent.Config{
		System: l.recorded[0].System, Tools: l.tools.Defs(), MaxTokens: l.recorded[0].MaxTokens,
		ProviderTools: l.recorded[0].ProviderTools, Schema: l.recorded[0].Schema,
		Targets: []agent.Target{{Model: l.adapter.origin(name), Price: &llm.Price{}}},
		Policy:  policy.Rules{Declared: true},
	}
	started, err := agent.Start(cfg.WithDefaults(), input)
	if err != nil {
		t.Fatal(err)
	}
	if len(from) > 0 {
		started.From = &event.ContinuedFrom{Run: "before", Seq: 1, History: from}
	}
	r, err := l.engine.Start(ctx, started, perform.Env{
		Model: func(string) (llm.Model, string, error) { return model, name, nil }, Tools: l.tools,
	})
	if err != nil {
		t.Fatal(err)
	}
	state, err := r.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if state.Outcome == nil {
		t.Fatalf("the run did not end: %+v", state.Parked)
	}
	m, ok := r.Machine().(machine.Conversing)
	if !ok {
		t.Fatalf("machine is a %T", r.Machine())
	}
	conversation, err := m.Conversation()
	if err != nil {
		t.Fatal(err)
	}
	return *state.Outcome, conversation
}

func (l *loop) check(t *testing.T, outcome event.Outcome, usage llm.Usage) {
	exchanges := l.scenario.Exchanges
	last := &exchanges[len(exchanges)-1].Expected
	reason, requests := event.ReasonFinalAnswer, len(exchanges)
	var want llm.Usage
	for i := range exchanges {
		want = want.Add(usageOf(&exchanges[i].Expected.Usage))
	}
	if len(last.ItemOrder) == 0 && last.Text == "" && len(last.ToolCalls) == 0 {
		// An empty answer is nudged once before the run ends; the
		// replay answers the nudge with the same empty answer.
		reason, requests = event.ReasonEmptyResponse, requests+1
		want = want.Add(usageOf(&last.Usage))
	}
	sent := l.replay.Requests()
	var d differences
	d.want("reason", outcome.Reason, reason)
	d.want("requests", len(sent), requests)
	if reason == event.ReasonFinalAnswer {
		d.want("final text", outcome.FinalOutput, l.finalText())
	}
	want.Reasoning, usage.Reasoning = 0, 0
	// An answer that is not there yet, as of a job in the background, reports
	// no usage, so that the sum is an estimate.
	want.Estimated = slices.ContainsFunc(exchanges, func(x Exchange) bool { return x.Expected.Usage.Input == nil })
	d.want("usage", usage, want)
	for i, body := range sent[:min(len(sent), len(exchanges))] {
		got, err := l.adapter.Parse(body)
		if err != nil {
			t.Fatalf("our own request %d does not parse: %v", i+1, err)
		}
		for _, diff := range compareRequests(l.scenario, &l.recorded[i], &got) {
			d.addf("request %d: %s", i+1, diff)
		}
	}
	d.report(t, l.scenario.ID)
}

// finalText is what the last answer said, with what it had said before it was
// paused.
func (l *loop) finalText() string {
	exchanges := l.scenario.Exchanges
	text := exchanges[len(exchanges)-1].Expected.Text
	for i := len(exchanges) - 2; i >= 0; i-- {
		if f, ok := exchanges[i].Expected.finish(); !ok || f != llm.FinishPause {
			break
		}
		text = exchanges[i].Expected.Text + text
	}
	return text
}

func usageOf(e *ExpectedUsage) llm.Usage {
	value := func(p *int64) int64 {
		if p == nil {
			return 0
		}
		return *p
	}
	return llm.Usage{
		Input: value(e.Input), Output: value(e.Output), CacheRead: value(e.CacheRead), CacheWrite: value(e.CacheWrite),
	}
}
