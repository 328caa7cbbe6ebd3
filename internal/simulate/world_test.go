package simulate_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/compact"
	"github.com/pawlrun/pawl/internal/rules/history"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
)

// world is everything around a run: the disk that outlives processes, the
// models, the tools with what they really did, and the luck.
type world struct {
	seed  int
	store *memory.Store
	cfg   agent.Config

	mu sync.Mutex
	r  *rand.Rand
	// calm ends all misfortune, so that a run can come to its end.
	calm bool
	// odds is one in how many appends something goes wrong; 0 is never.
	odds int
	// asks says that a person sits at the terminal.
	asks bool
	// honest models never use more than was set aside for a call.
	honest bool
	// idea is the only tool that the model calls, "" for any. flaky tools fail
	// more often than not.
	idea  string
	flaky bool
	// chatty models seldom call a tool, and people talk to them all the time.
	chatty bool
	// labels are those of every other tool, nil for any.
	labels *event.Labels
	// stalled tells of a process that stands still while its lease runs out.
	stalled chan struct{}

	requested int
	called    int
	intents   map[intent]bool
	settled   map[string]bool
	ran       map[string]int // how often each call took effect
	effects   map[string]event.Effect
	// approvals follows what is on disk.
	approvals *approvals
	taints    taints
	bill      *bill

	// fortune is the hooks' luck. tool are the calls' as they stand on disk,
	// outputs what they gave, hidden what a hook took away of that.
	fortune *rand.Rand
	tool    []named
	outputs map[string]string
	hidden  map[string]string
	events  map[stored]*event.Event
	// ended are the runs whose journals were verified after their end.
	ended map[string]bool

	// happened counts what a run came across, so that it is known to be tried.
	happened map[string]int

	log        []string
	violations []string
}

// intent is one attempt at a tool call.
type intent struct {
	call    string
	attempt int
}

type fault int

const (
	none fault = iota
	dieBefore
	dieAfter
	stall
)

func newWorld(seed int) *world {
	w := &world{
		seed: seed, r: rand.New(rand.NewPCG(uint64(seed), 7)), store: memory.New(nil),
		stalled: make(chan struct{}, 1), intents: map[intent]bool{}, settled: map[string]bool{}, ran: map[string]int{}, effects: map[string]event.Effect{},
		approvals: newApprovals(), bill: newBill(seed),
		outputs: map[string]string{}, hidden: map[string]string{}, events: map[stored]*event.Event{}, ended: map[string]bool{},
	}
	w.odds, w.asks = []int{0, 8, 20, 60}[w.r.IntN(4)], w.r.IntN(2) == 0
	w.cfg = w.config()
	w.budget()
	w.ownersAsk()
	w.risks()
	w.gates()
	w.hooked()
	w.seldom()
	return w
}

func (w *world) config() agent.Config {
	r := w.r
	cfg := agent.Config{
		Targets: []agent.Target{{Model: "m/a", Price: priceOf("m/a")}, {Model: "m/b", Price: priceOf("m/b")}}[:1+r.IntN(2)],
		Limits: budget.Limits{
			MaxCycles: 1 + r.IntN(16), MaxToolCalls: 3 + r.IntN(60), MaxParallelTools: 1 + r.IntN(4),
			MaxWallSeconds: float64(60 + r.IntN(20_000)), MaxResultChars: 500,
		},
		OnNoToolCall: pick(r, agent.NoToolCallFinish, agent.NoToolCallNudge, agent.NoToolCallStop),
		Dispatch:     pick(r, agent.OrderedGroups, agent.ParallelFirst, agent.ByResource, agent.ParallelAll, agent.Serial),
		Approve:      pick(r, agent.ApproveAsk, agent.ApproveAsk, agent.ApproveAll, agent.ApproveDeny),
		Policy:       policy.Rules{Declared: true, Gates: []string{"pay"}},
		NoStream:     r.IntN(3) == 0,
	}
	if r.IntN(2) == 0 {
		cfg.Compact = compact.Settings{
			Window: 100 + r.IntN(600), Inclusive: r.IntN(2) == 0,
			Strategy: pick(r, "", compact.RollingWindow, compact.PeriodicSummary, compact.SummarizeOlder),
			Measure:  pick(r, compact.MeasureEstimate, compact.MeasureProvider),
		}
	}
	return cfg.WithDefaults()
}

// budget gives two runs of three a cap in money or tokens that some of them
// reach, drawn from luck of its own: a seed keeps its other events.
func (w *world) budget() {
	r := rand.New(rand.NewPCG(uint64(w.seed), 11))
	w.honest = r.IntN(2) == 0
	w.cfg.MaxTokens = pick(r, 300, 2000)
	if r.IntN(3) > 0 {
		w.cfg.Limits.USDPerRun = 0.005 + 0.2*r.Float64()
	}
	if r.IntN(4) == 0 {
		w.cfg.Limits.MaxInputTokens, w.cfg.Limits.MaxOutputTokens = 2000+r.Int64N(60_000), 1000+r.Int64N(9000)
	}
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// draw is luck under the lock: everything around the run happens at once.
func (w *world) draw(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.r.IntN(n)
}

func (w *world) fault() fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calm || w.odds == 0 || w.r.IntN(w.odds) > 0 {
		return none
	}
	return pick(w.r, dieBefore, dieAfter, dieAfter, stall)
}

func (w *world) turnCalm() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calm = true
}

func (w *world) isCalm() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calm
}

// bad reports whether something that happens once in n times happens.
func (w *world) bad(n int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.calm && w.r.IntN(n) == 0
}

func (w *world) violatef(format string, args ...any) {
	w.violations = append(w.violations, fmt.Sprintf(format, args...))
}

// report returns what happened and, as its last lines, what was wrong: a log that is cut keeps its end.
func (w *world) report(test, listing string) string {
	return fmt.Sprintf("seed %d\n%s\n\njournals:\n%s\n%s\nreproduce with: go test ./internal/simulate -run '^%s$' -seed=%d",
		w.seed, strings.Join(w.log, "\n"), listing, strings.Join(w.violations, "\n"), test, w.seed)
}

// seen counts something that a run came across.
func (w *world) seen(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.happen(what)
}

func (w *world) happen(what string) {
	if w.happened == nil {
		w.happened = map[string]int{}
	}
	w.happened[what]++
}

func (w *world) violate(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violatef(format, args...)
}

func (w *world) notef(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, time.Now().UTC().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// model is a random model. It answers from its place in the conversation, and
// minds that no request breaks a provider's rules.
type model struct {
	world   *world
	process *process
	target  string
}

// open gives the models of a process; some can stream and some cannot.
func (w *world) open(p *process) func(string) (llm.Model, string, error) {
	return func(target string) (llm.Model, string, error) {
		m := &model{world: w, process: p, target: target}
		if target == "m/a" {
			return streamer{m}, "a", nil
		}
		return m, "b", nil
	}
}

type streamer struct{ *model }

func (s streamer) Stream(ctx context.Context, req *llm.Request, emit func(llm.Delta)) (*llm.Response, error) {
	emit(llm.Delta{Kind: llm.DeltaText, Text: "st"})
	emit(llm.Delta{Kind: llm.DeltaReasoning, Index: 1, Text: "hm"})
	return s.Generate(ctx, req)
}

func (m *model) Generate(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	w := m.world
	if err := history.Lint(req.Messages); err != nil {
		w.violate("a request breaks a rule: %v", err)
	}
	w.sees(req.Messages)
	w.mu.Lock()
	w.called++
	if w.called > w.requested {
		w.violatef("model call %d has no intent on disk", w.called)
	}
	w.mu.Unlock()
	if w.bad(60) {
		w.notef("%s dies during a model call", m.process.name)
		m.process.die()
	}
	if w.bill.deaf() {
		ctx = context.WithoutCancel(ctx)
	}
	if err := sleep(ctx, time.Duration(w.draw(20_000))*time.Millisecond); err != nil {
		w.bill.add(m.target, w.bill.whole(req))
		return nil, &llm.Error{Class: llm.ClassNetwork, Message: err.Error(), Err: err}
	}
	if w.bad(80) {
		w.bill.add(m.target, w.bill.whole(req))
		panic("the adapter has a defect")
	}
	if w.bad(6) {
		partial, err := w.failure()
		w.bill.failed(m.target, req, partial, err)
		return partial, err
	}
	a := w.answer()
	switch {
	case !w.honest && w.draw(5) == 0:
		a.Usage.Input += 30_000
	case w.honest:
		a.Usage.Input, a.Usage.Output = 1+textBytes(req)/4, min(a.Usage.Output, int64(req.MaxTokens))
	}
	w.bill.add(m.target, a.Usage)
	return a, nil
}

// textBytes is the text of a request, of which an honest model counts a token
// for every four bytes, request after request.
func textBytes(req *llm.Request) int64 {
	n := int64(len(req.System))
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case llm.Text:
				n += int64(len(p.Text))
			case llm.ToolCall:
				n += int64(len(p.Name) + len(p.Args) + len(p.ArgsText))
			case llm.ToolResult:
				n += int64(len(p.Output))
			}
		}
	}
	return n
}

func (w *world) failure() (*llm.Response, *llm.Error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := &llm.Error{
		Class:   pick(w.r, llm.ClassThrottled, llm.ClassOverloaded, llm.ClassNetwork),
		Message: "scripted trouble",
	}
	if w.r.IntN(8) == 0 {
		e.Class = pick(w.r, llm.ClassQuota, llm.ClassContextOverflow, llm.ClassInvalid, llm.ClassAuth, llm.ClassRefused, llm.ClassInterrupted)
	}
	w.bill.gateway(e)
	if w.r.IntN(2) == 0 {
		e.RetryAfter, e.HasRetryAfter = time.Duration(w.r.IntN(100))*time.Second, true
	}
	if w.r.IntN(2) == 0 {
		return nil, e
	}
	return &llm.Response{Parts: llm.Parts{llm.Text{Text: "par"}}, Usage: llm.Usage{Input: 7, Output: 1, Estimated: true}}, e
}

func (w *world) answer() *llm.Response {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.r
	a := &llm.Response{Usage: llm.Usage{Input: int64(r.IntN(900)), Output: int64(r.IntN(300))}, Finish: llm.FinishEnd}
	if w.chatty && r.IntN(8) > 0 {
		text := strings.Repeat(fmt.Sprint("word ", r.IntN(1000), " "), 1+r.IntN(40))
		a.Parts, a.Usage.Output = append(a.Parts, llm.Text{Text: text}), int64(len(text)/4+1+r.IntN(100))
		return a
	}
	if r.IntN(4) > 0 {
		a.Parts = append(a.Parts, llm.Text{Text: fmt.Sprint("text ", r.IntN(1000))})
	}
	if (w.seed%5 == 0 || w.idea != "") && r.IntN(6) > 0 { // a model with one idea
		a.Finish = llm.FinishTool
		a.Parts = append(a.Parts, llm.ToolCall{ProviderID: "p", Name: cmp.Or(w.idea, pick(r, "read", "panic")), Args: []byte(`{"path":"a"}`)})
		return a
	}
	if r.IntN(7) > 0 {
		for i := range 1 + r.IntN(4) {
			name := pick(r, "read", "put", "send", "pay", "slow", "deaf", "panic", "nosuch")
			if w.flaky {
				name = pick(r, "read", "put", "put", "send") // mostly what may run again
			}
			call := llm.ToolCall{ProviderID: fmt.Sprint("p", i), Name: name, Args: fmt.Appendf(nil, `{"path":"%s"}`, pick(r, "a", "b", "c/d", "c"))}
			switch r.IntN(30) {
			case 0:
				call.Args = []byte(`{"path":7}`)
			case 1:
				call.Args, call.ArgsText = nil, pick(r, `{"path":"bro`, `{"path"]`)
			}
			a.Parts = append(a.Parts, call)
		}
		a.Finish = llm.FinishTool
	}
	if r.IntN(25) == 0 {
		a.Finish = pick(r, llm.FinishLength, llm.FinishPause, llm.FinishMalformed, llm.FinishEnd, llm.FinishTool,
			llm.FinishRefusal, llm.FinishContext, llm.FinishFailed)
	}
	return a
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

type pathArgs struct {
	Path string `json:"path"`
}

// toolSet are the tools; what they do, the world keeps.
func (w *world) toolSet() *tool.Set {
	build := func(name string, effect event.Effect, deaf bool, act func(*process) (tool.Result, error)) tool.Tool {
		t := tool.New(name, name, func(context.Context, pathArgs) (tool.Result, error) { return tool.Result{}, nil })
		t.Effect, t.Timeout = effect, 30*time.Second
		t.Run = func(ctx context.Context, c tool.Call) (tool.Result, error) {
			p := processOf(ctx)
			if !w.begins(p, name, c, effect) {
				<-ctx.Done()
				return tool.Result{}, ctx.Err()
			}
			work := ctx
			if deaf {
				work = context.WithoutCancel(ctx)
			}
			long := 4_000
			if w.bad(8) {
				long = 60_000
			}
			if err := sleep(work, time.Duration(w.draw(long))*time.Millisecond); err != nil {
				return tool.Result{}, err
			}
			if w.bad(40) {
				w.notef("%s dies after the effect of %s", p.name, c.ID)
				p.die()
			}
			return act(p)
		}
		return t
	}
	says := func(s string) func(*process) (tool.Result, error) {
		return func(p *process) (tool.Result, error) {
			if w.bad(6) || w.flaky && w.bad(2) {
				err := errors.New("it did not work")
				switch w.draw(4) {
				case 0:
					err = tool.Transient(err)
				case 1, 2:
					if w.flaky || w.bad(4) {
						time.AfterFunc(time.Duration(w.draw(10_000))*time.Millisecond, p.die)
					}
					err = tool.TransientAfter(err, time.Duration(w.draw(100_000))*time.Millisecond)
				}
				return tool.Result{}, err
			}
			return tool.Result{Output: s, EndsRun: w.bad(60)}, nil
		}
	}
	read := build("read", event.EffectPure, false, says(strings.Repeat("long ", 300)))
	read.ReadOnly, read.Concurrent = true, true
	put := build("put", event.EffectIdempotent, false, says("put"))
	put.Access = func(raw json.RawMessage) []event.Access {
		var a pathArgs
		_ = json.Unmarshal(raw, &a)
		return []event.Access{{Key: "file:" + a.Path, Write: true}}
	}
	all := []tool.Tool{
		read, put,
		build("send", event.EffectAtMostOnce, false, says("sent")),
		build("pay", event.EffectIdempotent, false, says("paid")),
		build("slow", event.EffectReconcilable, false, says("at last")),
		build("deaf", event.EffectAtMostOnce, true, says("what?")),
		build("panic", event.EffectPure, false, func(*process) (tool.Result, error) { panic("tool defect") }),
	}
	w.label(all)
	set, err := tool.NewSet(all...)
	if err != nil {
		panic(err)
	}
	return set
}

// begins is the moment at which a call takes effect. It is false in a process
// that is dead: its tools do nothing any more.
func (w *world) begins(p *process, name string, c tool.Call, effect event.Effect) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p.dead.Load() {
		return false
	}
	if !w.intents[intent{c.ID, c.Attempt}] {
		w.violatef("%s took effect (attempt %d) without an intent on disk", c.ID, c.Attempt)
	}
	if w.settled[c.ID] {
		w.violatef("%s took effect after it was settled", c.ID)
	}
	if got := tool.Digest(name, c.Args, ""); got != w.approvals.digest[c.ID] {
		w.violatef("%s took effect with other arguments than were judged: %s", c.ID, c.Args)
	}
	w.ran[c.ID]++
	w.effects[c.ID] = effect
	if w.ran[c.ID] > 1 && (effect == event.EffectAtMostOnce || effect == event.EffectReconcilable) {
		w.violatef("%s (%s) took effect twice", c.ID, effect)
	}
	return true
}

// commands that an operator may send at any moment.
func (w *world) command(run string, pending []*event.Question) journal.Command {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := journal.Command{Run: run, By: "operator", Text: fmt.Sprint("word ", w.r.IntN(100))}
	switch n := w.r.IntN(12); {
	case len(pending) > 0 && n < 8:
		c.CallID = pick(w.r, pending...).ID
		c.Kind = pick(w.r, journal.Approve, journal.Approve, journal.Reject)
	case n == 0:
		c.Kind = journal.Cancel
	case n < 4:
		c.Kind = journal.Pause
	case n < 7:
		c.Kind, c.Setting, c.Value = journal.Raise, pick(w.r, "max_tool_calls", "max_cycles", "usd_per_run"), float64(1+w.r.IntN(12))
	default:
		c.Kind = journal.Input
	}
	return c
}
