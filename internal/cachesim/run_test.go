package cachesim_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/anthropic"
	"github.com/pawlrun/pawl/llm/gemini"
	"github.com/pawlrun/pawl/llm/openai"
	"github.com/pawlrun/pawl/llm/openaichat"
	"github.com/pawlrun/pawl/tool"
)

const cycles = 50

// service is a provider's API with the cache behind one of its models.
type service struct {
	name   string
	target string
	wire   wire
	cache  func() cache
	model  func(*http.Client) llm.Model
}

func services() []service {
	newAnthropic := func(c *http.Client) llm.Model { return anthropic.New(anthropic.Options{HTTP: c}) }
	newOpenAI := func(c *http.Client) llm.Model { return openai.New(openai.Options{HTTP: c}) }
	older := func() cache { return &prefixCache{minimum: 1024, step: 128, lifetime: 5 * time.Minute} }
	return []service{
		{"anthropic", "anthropic/claude-sonnet-4-5", wire{renderAnthropic, answerAnthropic},
			func() cache { return &markedCache{minimum: 1024} }, newAnthropic},
		{"anthropic-4096", "anthropic/claude-haiku-4-5", wire{renderAnthropic, answerAnthropic},
			func() cache { return &markedCache{minimum: 4096} }, newAnthropic},
		{"openai", "openai/gpt-5", wire{renderOpenAI, answerOpenAI}, older, newOpenAI},
		{"openai-5.6", "openai/gpt-5.6", wire{renderOpenAI, answerOpenAI},
			func() cache { return &breakpointCache{minimum: 1024, lifetime: 30 * time.Minute} }, newOpenAI},
		{"openai-chat", "openai-chat/gpt-5", wire{renderChat, answerChat}, older,
			func(c *http.Client) llm.Model { return openaichat.New(openaichat.Options{HTTP: c}) }},
		{"gemini", "google/gemini-2.5-pro", wire{renderGemini, answerGemini},
			func() cache { return &prefixCache{minimum: 2048, step: 1, lifetime: 3 * time.Minute} },
			func(c *http.Client) llm.Model { return gemini.New(gemini.Options{HTTP: c}) }},
	}
}

func (s *service) provider(calls func(n int) int) *provider {
	return &provider{
		wire: s.wire, cache: s.cache(), calls: calls, pace: 20 * time.Second,
		now: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC),
	}
}

// two asks for two calls in every cycle but the last.
func two(n int) int {
	if n >= cycles {
		return 0
	}
	return 2
}

// wide asks for 30 calls in every fifth cycle.
func wide(n int) int {
	if n < cycles && n%5 == 0 {
		return 30
	}
	return two(n)
}

// lab is an engine with what a run of the test is made of.
type lab struct {
	t     *testing.T
	store *memory.Store
	p     *provider
	cfg   agent.Config
	env   perform.Env
}

func newLab(t *testing.T, s service, p *provider) *lab {
	t.Helper()
	set, err := tool.NewSet(tool.Tool{
		Name: "read", Description: strings.Repeat("Read a file. ", 20), Effect: event.EffectPure, ReadOnly: true, Concurrent: true,
		Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`),
		Run: func(_ context.Context, c tool.Call) (tool.Result, error) {
			return tool.Result{Output: strings.Repeat(string(c.Args)+"\n", 40)}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, store: memory.New(p.clock), p: p}
	l.cfg = agent.Config{
		System:  strings.Repeat("Work with care, and say what you did. ", 400),
		Targets: []agent.Target{{Model: s.target, Price: &llm.Price{Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 3.75}}},
		Tools:   set.Defs(), NoStream: true,
	}
	l.cfg.Policy.Declared = true
	l.cfg.Limits.MaxCycles, l.cfg.Limits.MaxToolCalls, l.cfg.Limits.USDPerRun = 2*cycles, 1000, 100
	l.env = perform.Env{Tools: set}
	l.use(s.model(&http.Client{Transport: p}))
	return l
}

// use makes a model answer every target.
func (l *lab) use(m llm.Model) {
	l.env.Model = func(target string) (llm.Model, string, error) {
		_, name, _ := strings.Cut(target, "/")
		return m, name, nil
	}
}

func (l *lab) engine() *engine.Engine {
	e := engine.New(l.store, func(string) (machine.Machine, error) { return agent.New(), nil }, engine.Options{Now: l.p.clock})
	l.t.Cleanup(func() { _ = e.Close() })
	return e
}

func (l *lab) start(ctx context.Context) *engine.Run {
	l.t.Helper()
	started, err := agent.Start(l.cfg.WithDefaults(), llm.UserText("Read everything."))
	if err != nil {
		l.t.Fatal(err)
	}
	r, err := l.engine().Start(ctx, started, l.env)
	if err != nil {
		l.t.Fatal(err)
	}
	return r
}

func (l *lab) resume(id string) *engine.Run {
	l.t.Helper()
	r, err := l.engine().Resume(l.t.Context(), id, func(event.RunStarted) (perform.Env, error) { return l.env, nil })
	if err != nil {
		l.t.Fatal(err)
	}
	return r
}

func (l *lab) wait(r *engine.Run) machine.State {
	l.t.Helper()
	s, err := r.Wait(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	return s
}

// finish waits for the end of a run that reaches its answer.
func (l *lab) finish(r *engine.Run) machine.State {
	l.t.Helper()
	s := l.wait(r)
	if s.Outcome == nil || s.Outcome.Reason != event.ReasonFinalAnswer {
		l.t.Fatalf("the run ended with %+v", s.Outcome)
	}
	return s
}

// events shows a run's events.
func (l *lab) events(run string, show func(*event.Event)) {
	l.t.Helper()
	records, err := l.store.Records(context.Background(), run, 0, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, r := range records {
		e, err := event.Decode(r.Body)
		if err != nil {
			l.t.Fatal(err)
		}
		show(e)
	}
}

func (l *lab) breaks(id string) []event.CacheBreak {
	l.t.Helper()
	var breaks []event.CacheBreak
	l.events(id, func(e *event.Event) {
		if b, ok := e.Data.(event.CacheBreak); ok {
			breaks = append(breaks, b)
		}
	})
	return breaks
}

// gate is the share of what could be read from a cache that must be.
const gate = 0.99

func (l *lab) judge(name, id string) {
	l.t.Helper()
	read, readable := l.p.totals()
	share := float64(read) / float64(max(readable, 1))
	verdict := "passed"
	if share < gate || readable == 0 {
		verdict = "failed"
		l.t.Errorf("below %.0f %%", 100*gate)
		for i, s := range l.p.served {
			if s.read < s.readable-s.readable/100 {
				l.t.Logf("request %d: read %d of %d", i+1, s.read, s.readable)
			}
		}
	}
	fmt.Fprintf(l.t.Output(), "gate cache/%s: read %.2f %% of readable (%d of %d tokens), %s\n", name, 100*share, read, readable, verdict)
	for i, s := range l.p.served {
		aside := s.summary || i > 0 && l.p.served[i-1].summary
		if !s.goesOn && !aside {
			l.t.Errorf("request %d does not begin with the one before it", i+1)
		}
	}
	if b := l.breaks(id); len(b) > 0 {
		l.t.Errorf("a healthy run has %d breaks: %+v", len(b), b[0])
	}
}

// What could be read from the cache is read, also over wide fan-outs.
func TestARunReadsWhatItsProviderHolds(t *testing.T) {
	for _, s := range services() {
		for name, calls := range map[string]func(int) int{s.name: two, s.name + "/wide": wide} {
			t.Run(name, func(t *testing.T) {
				p := s.provider(calls)
				l := newLab(t, s, p)
				r := l.start(t.Context())
				state := l.finish(r)
				if len(p.served) != cycles {
					t.Fatalf("%d requests", len(p.served))
				}
				l.judge(name, r.ID)
				var read int64
				for _, s := range p.served {
					read += s.read
				}
				if state.Usage.CacheRead != read {
					t.Errorf("the run counted %d tokens read, the provider %d", state.Usage.CacheRead, read)
				}
			})
		}
	}
}

// 200 calls in one answer keep their order, need at most four marks
// (the simulated service refuses a fifth), and the next request reads all that
// the one before them left.
func TestAFanOutOfTwoHundredCallsIsReadOn(t *testing.T) {
	for _, s := range services() {
		t.Run(s.name, func(t *testing.T) {
			p := s.provider(func(n int) int { return []int{2, 200, 2, 200, 2, 0}[n-1] })
			l := newLab(t, s, p)
			r := l.start(t.Context())
			l.finish(r)
			l.judge(s.name+"/200 calls", r.ID)
			for i, s := range p.served[1:] {
				before := p.served[i]
				if want := before.input - before.input/100 - 128; p.cache.readable(int(4*before.input), 0) > 0 && s.read < want {
					t.Errorf("request %d reads %d of the %d tokens before it", i+2, s.read, before.input)
				}
			}
			var order []string
			l.events(r.ID, func(e *event.Event) {
				if d, ok := e.Data.(event.ToolResults); ok && d.Cycle == 2 {
					for _, ref := range d.Results {
						order = append(order, ref.CallID)
					}
				}
			})
			if len(order) != 200 || !strings.HasSuffix(order[0], "-2-1") || !strings.HasSuffix(order[199], "-2-200") {
				t.Errorf("%d results, from %s to %s", len(order), order[0], order[len(order)-1])
			}
		})
	}
}

// A restart changes no byte of the prefix: another process with another adapter
// and an empty memo reads what the first one left in the cache.
func TestARunReadsOnAfterARestart(t *testing.T) {
	for _, s := range services() {
		t.Run(s.name, func(t *testing.T) {
			p := s.provider(wide)
			l := newLab(t, s, p)
			ctx, interrupt := context.WithCancelCause(t.Context())
			defer interrupt(nil)
			p.before = func(n int, flight context.Context) error {
				if n != cycles/2 {
					return nil
				}
				interrupt(engine.ErrInterrupted)
				<-flight.Done()
				return flight.Err()
			}
			r := l.start(ctx)
			if s := l.wait(r); s.Phase != machine.Parked {
				t.Fatalf("the run is %s", s.Phase)
			}
			p.pass(time.Minute)
			l.use(s.model(&http.Client{Transport: p}))
			l.finish(l.resume(r.ID))
			l.judge(s.name+"/restart", r.ID)
		})
	}
}

// Runs that continue one another are one workload to the provider.
func TestAContinuedRunReadsWhatTheFirstOneWrote(t *testing.T) {
	for _, s := range services() {
		t.Run(s.name, func(t *testing.T) {
			p := s.provider(func(n int) int {
				if n == 10 || n == 20 {
					return 0
				}
				return 3
			})
			l := newLab(t, s, p)
			first := l.start(t.Context())
			l.finish(first)
			m, ok := first.Machine().(*agent.Machine)
			if !ok {
				t.Fatalf("the machine is a %T", first.Machine())
			}
			conversation, err := m.Conversation()
			if err != nil {
				t.Fatal(err)
			}
			started, err := agent.Start(l.cfg.WithDefaults(), llm.UserText("And the rest."))
			if err != nil {
				t.Fatal(err)
			}
			started.From = &event.ContinuedFrom{Run: first.ID, Seq: 1, Root: m.Workload(), History: conversation}
			second, err := l.engine().Start(t.Context(), started, l.env)
			if err != nil {
				t.Fatal(err)
			}
			l.finish(second)
			l.judge(s.name+"/continued", second.ID)
		})
	}
}

// A run that waits between its cycles keeps its prefix by asking for an hour.
func TestAnHourOutlastsSlowCycles(t *testing.T) {
	for asked, reads := range map[llm.Caching]bool{llm.CacheShort: false, llm.CacheLong: true} {
		s := services()[0]
		p := s.provider(func(n int) int {
			if n == 5 {
				return 0
			}
			return 2
		})
		p.pace = 10 * time.Minute
		l := newLab(t, s, p)
		l.cfg.Cache = asked
		r := l.start(t.Context())
		state := l.finish(r)
		if (state.Usage.CacheRead > 0) != reads {
			t.Errorf("%s: %d tokens read", asked, state.Usage.CacheRead)
		}
		if long := asked == llm.CacheLong; long != (state.Usage.CacheWriteLong > 0) || long && state.Usage.CacheWriteLong != state.Usage.CacheWrite {
			t.Errorf("%s: %d of %d tokens written for an hour", asked, state.Usage.CacheWriteLong, state.Usage.CacheWrite)
		}
		if b := l.breaks(r.ID); len(b) > 0 {
			t.Errorf("%s: %+v", asked, b)
		}
	}
}

// The oracle must be able to fail: without marks nothing is read.
func TestWithoutMarksNothingIsRead(t *testing.T) {
	s := services()[0]
	p := s.provider(two)
	l := newLab(t, s, p)
	l.cfg.Cache = llm.CacheOff
	l.finish(l.start(t.Context()))
	if read, readable := p.totals(); read != 0 || readable == 0 {
		t.Errorf("read %d of %d", read, readable)
	}
}
