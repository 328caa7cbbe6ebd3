package simulate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/machine/flow"
	processes "github.com/pawlrun/pawl/internal/machine/process"
	"github.com/pawlrun/pawl/internal/machine/versions"
	"github.com/pawlrun/pawl/internal/rules/compact"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
)

// grove is a world in which a run starts others: their processes die and stall, their
// models fail, lie and delay, and commands cancel, pause, raise and decide.
type grove struct {
	*world
	t      *testing.T
	agents map[string]agent.Config
	tools  map[string]*tool.Set
	offers map[string][]string
	boots  int
	ids    int
	effect sync.Map // how often each call took effect
	// released is signalled when the driver of the root commits and releases its lease. It
	// is nil for workflows, whose seeds have no rivals and no such cancels.
	released chan struct{}
	*workflows
}

func TestSeedsOfTrees(t *testing.T) {
	first, last := 1, 150
	if os.Getenv("PAWL_LONG") != "" {
		last = 2500
	}
	if *seedFlag != 0 {
		first, last = *seedFlag, *seedFlag
	}
	oneByOne(t)
	happened := map[string]int{}
	for seed := first; seed <= last && !t.Failed(); seed++ {
		synctest.Test(t, func(t *testing.T) {
			g := newGrove(t, seed)
			g.toTheEnd(g)
			g.mu.Lock()
			defer g.mu.Unlock()
			if len(g.violations) > 0 {
				t.Error(g.report(t.Name(), g.listing()))
			}
			for what, n := range g.happened {
				happened[what] += n
			}
		})
	}
	t.Log(happened)
	for _, what := range []string{"child ok", "child parked", "child cancelled", "child stopped by its parent's limit", "two calls at once in a tree",
		"taken up with a child under way", "given back", "overrun by a child", "summary in a child", "a tree four deep", "a leaf parked four deep",
		"refused by a share two above", "a tree taken from a stalled process", "cancelled in the moment of a release"} {
		if *seedFlag == 0 && happened[what] == 0 {
			t.Errorf("no seed came across %q", what)
		}
	}
}

// oneByOne has one goroutine run after the other, so that what happens at the same
// moment mostly goes the same way when a seed is played again.
func oneByOne(t *testing.T) {
	before := runtime.GOMAXPROCS(1)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

func newGrove(t *testing.T, seed int) *grove {
	g := emptyGrove(t, seed)
	g.released = make(chan struct{}, 1)
	r := g.r
	config := func(usd float64) agent.Config {
		cfg := agent.Config{
			Targets:   []agent.Target{{Model: "m/a", Price: priceOf("m/a")}, {Model: "m/b", Price: priceOf("m/b")}}[:1+r.IntN(2)],
			Limits:    budget.Limits{MaxCycles: 2 + r.IntN(6), MaxParallelTools: 1 + r.IntN(4), MaxWallSeconds: float64(600 + r.IntN(20_000)), USDPerRun: usd},
			MaxTokens: pick(r, 300, 2000), Policy: policy.Rules{Declared: true, Gates: []string{"pay"}},
			Dispatch: pick(r, agent.ParallelAll, agent.ParallelAll, agent.OrderedGroups),
		}
		if r.IntN(2) == 0 {
			cfg.Compact = compact.Settings{Window: 500 + r.IntN(600), Strategy: pick(r, compact.PeriodicSummary, compact.SummarizeOlder)}
		}
		return cfg.WithDefaults()
	}
	g.agents["root"] = config(0.01 + 0.3*r.Float64())
	for _, name := range []string{"thrifty", "lavish"} {
		g.agents[name] = config(pick(r, 0.05, 100))
	}
	if r.IntN(4) == 0 {
		cfg := g.agents["root"]
		cfg.OnBudget = map[string]agent.OnBudget{"usd_per_run": agent.BudgetAsk}
		g.agents["root"] = cfg
	}
	g.outgrow()
	g.hurry()
	g.offers["root"] = []string{"thrifty", "lavish"}
	g.says = g.chat
	g.deepen()
	for name := range g.agents {
		g.tools[name] = g.toolSet(name)
	}
	return g
}

func emptyGrove(t *testing.T, seed int) *grove {
	return &grove{
		world: newWorld(seed), t: t, agents: map[string]agent.Config{}, tools: map[string]*tool.Set{}, offers: map[string][]string{},
		workflows: newWorkflows(),
	}
}

// outgrow has the children of a tree of five outgrow their windows, drawn from
// luck of its own: a seed keeps its other events.
func (g *grove) outgrow() {
	r := rand.New(rand.NewPCG(uint64(g.seed), 23))
	if r.IntN(5) > 0 {
		return
	}
	for _, name := range []string{"thrifty", "lavish"} {
		cfg := g.agents[name]
		cfg.MaxTokens, cfg.Limits.MaxCycles = 300, 8
		cfg.Compact = compact.Settings{Window: 500 + r.IntN(200), Strategy: pick(r, compact.PeriodicSummary, compact.SummarizeOlder)}
		g.agents[name] = cfg
	}
}

// hurry gives the children of a tree of three little time for decisions, drawn
// from luck of its own: a seed keeps its other events.
func (g *grove) hurry() {
	r := rand.New(rand.NewPCG(uint64(g.seed), 29))
	if r.IntN(3) > 0 {
		return
	}
	for _, name := range []string{"thrifty", "lavish"} {
		cfg := g.agents[name]
		cfg.Approvals = agent.Approvals{Seconds: float64(100 + r.IntN(400)), OnTimeout: pick(r, agent.TimeoutReject, agent.TimeoutStop)}
		g.agents[name] = cfg
	}
}

// deepen lets the agents of every other tree offer agents as well, so that it is
// up to four deep.
func (g *grove) deepen() {
	if g.seed%2 == 0 {
		return
	}
	for _, level := range []struct{ of, offered string }{{"", "-3"}, {"-3", "-4"}} {
		for _, name := range []string{"thrifty", "lavish"} {
			g.agents[name+level.offered] = g.agents[name]
			g.offers[name+level.of] = []string{"thrifty" + level.offered, "lavish" + level.offered}
		}
	}
}

// talker is the model of one agent.
type talker struct {
	*grove
	process *process
	target  string
	name    string
}

func (m talker) Generate(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	if m.bad(60) {
		m.notef("%s dies during a model call", m.process.name)
		m.process.die()
	}
	if m.bill.deaf() {
		ctx = context.WithoutCancel(ctx)
	}
	if err := sleep(ctx, time.Duration(m.draw(20_000))*time.Millisecond); err != nil {
		m.bill.add(m.target, m.bill.whole(req))
		return nil, &llm.Error{Class: llm.ClassNetwork, Message: err.Error(), Err: err}
	}
	if !m.steady && m.bad(6) {
		partial, err := m.failure()
		m.bill.failed(m.target, req, partial, err)
		return partial, err
	}
	a := &llm.Response{Finish: llm.FinishEnd, Usage: llm.Usage{Input: 1 + textBytes(req)/4, Output: int64(1 + m.draw(req.MaxTokens))}}
	if !m.honest && m.draw(5) == 0 {
		a.Usage.Input += 30_000
	}
	if err := m.says(m.name, req, a); err != nil {
		m.bill.failed(m.target, req, nil, err)
		return nil, err
	}
	m.bill.add(m.target, a.Usage)
	return a, nil
}

// chat is what a model says that goes by luck alone.
func (g *grove) chat(name string, req *llm.Request, a *llm.Response) *llm.Error {
	a.Parts = append(a.Parts, llm.Text{Text: fmt.Sprint("text ", g.draw(1000), strings.Repeat(" and more", g.draw(30)))})
	if g.draw(4) == 0 {
		return nil
	}
	a.Finish, a.Usage.Output = llm.FinishTool, min(a.Usage.Output, int64(req.MaxTokens)-1)
	asks := g.asks(name)
	for i := range 1 + g.draw(3) {
		name := asks[g.draw(len(asks))]
		args := fmt.Sprintf(`{"path":"%d"}`, g.draw(9))
		if strings.HasPrefix(name, "thrifty") || strings.HasPrefix(name, "lavish") {
			args = fmt.Sprintf(`{"task":"find out about %d"}`, g.draw(9))
		}
		a.Parts = append(a.Parts, llm.ToolCall{ProviderID: fmt.Sprint("p", i), Name: name, Args: []byte(args)})
	}
	return nil
}

// asks are the tools that the model of an agent calls.
func (g *grove) asks(agent string) []string {
	if agent == "root" {
		return []string{"read", "thrifty", "lavish", "lavish"}
	}
	return append([]string{"read", "send", "pay", "read"}, g.offers[agent]...)
}

// toolSet are the tools of an agent.
func (g *grove) toolSet(agent string) *tool.Set {
	build := func(name string, effect event.Effect, concurrent bool) tool.Tool {
		t := tool.New(name, name, func(ctx context.Context, _ pathArgs) (string, error) { return "", nil })
		t.Effect, t.Concurrent, t.Labels = effect, concurrent, &event.Labels{}
		t.Run = func(ctx context.Context, c tool.Call) (tool.Result, error) {
			if processOf(ctx).dead.Load() {
				<-ctx.Done()
				return tool.Result{}, ctx.Err()
			}
			n, _ := g.effect.LoadOrStore(c.ID, new(int))
			g.mu.Lock()
			if *n.(*int)++; *n.(*int) > 1 && effect == event.EffectAtMostOnce {
				g.violatef("%s took effect twice", c.ID)
			}
			g.mu.Unlock()
			if err := sleep(ctx, time.Duration(g.draw(9_000))*time.Millisecond); err != nil {
				return tool.Result{}, err
			}
			return tool.Result{Output: fmt.Sprint("result ", g.draw(1000), strings.Repeat(" long", 40))}, nil
		}
		return t
	}
	tools := []tool.Tool{build("read", event.EffectPure, true), build("send", event.EffectAtMostOnce, false), build("pay", event.EffectAtMostOnce, false)}
	for _, child := range g.offers[agent] {
		tools = append(tools, tool.ForAgent(child, child, nil))
	}
	set, err := tool.NewSet(append(tools, g.own[agent]...)...)
	if err != nil {
		panic(err)
	}
	return set
}

// env is what the runs of an agent are made of in a process.
func (g *grove) env(name string, p *process) perform.Env {
	env := perform.Env{
		Tools: g.tools[name],
		Model: func(target string) (llm.Model, string, error) {
			return talker{grove: g, process: p, target: target, name: name}, "m", nil
		},
		Children: map[string]perform.Child{},
	}
	for _, child := range g.offers[name] {
		env.Children[child] = perform.Child{
			Begin: func(args json.RawMessage) (event.RunStarted, perform.Env, error) {
				return g.begin(child, string(args), p)
			},
			Resume: func(string, event.RunStarted) (perform.Env, error) { return g.env(child, p), nil },
		}
	}
	g.equip(&env, name, p)
	return env
}

// begin is the beginning of a run by the name of its agent, or of its workflow.
func (g *grove) begin(name, task string, p *process) (started event.RunStarted, env perform.Env, err error) {
	env = g.env(name, p)
	if cfg, is := g.flows[name]; is {
		started, err = flow.Start(cfg, llm.UserText(task))
		return started, env, err
	}
	if cfg, is := g.runners[name]; is {
		started, err = processes.Start(cfg, task)
		return started, env, err
	}
	cfg := g.agents[name]
	cfg.Tools = env.Tools.Defs()
	started, err = agent.Start(cfg, llm.UserText(task))
	return started, env, err
}

func (g *grove) boot() *incarnation {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.boots++
	p := &process{Store: g.store, world: g.world, name: fmt.Sprint("process ", g.boots), committed: g.onDisk}
	e := engine.New(p, versions.Make, engine.Options{
		Owner: p.name,
		NewID: func() string {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.ids++
			return fmt.Sprintf("r%d", g.ids)
		},
		NewNonce: func() string { return nonce },
	})
	g.t.Cleanup(func() { _ = e.Close() })
	return &incarnation{process: p, engine: e}
}

// onDisk notes a commit.
func (g *grove) onDisk(b journal.Batch) {
	g.committed(b)
	if b.Release && b.Lease.Run == "r1" {
		select {
		case g.released <- struct{}{}:
		default:
		}
	}
}

// rows are the runs, the root first.
func (g *grove) rows() []journal.Run {
	rows, err := g.store.Runs(g.t.Context(), journal.Filter{})
	if err != nil {
		g.t.Fatal(err)
	}
	for i := range rows {
		if rows[i].Parent == "" {
			rows[0], rows[i] = rows[i], rows[0]
		}
	}
	return rows
}

func (g *grove) takeUp(in *incarnation) (*engine.Run, error) {
	rows := g.rows()
	if len(rows) > 0 {
		for _, row := range rows[1:] {
			if row.State != journal.Ended {
				g.seen("taken up with a child under way")
			}
		}
		return in.engine.Resume(in.inside(g.t.Context()), rows[0].ID, func(event.RunStarted) (perform.Env, error) { return g.env("root", in.process), nil })
	}
	started, env, err := g.begin("root", "do it", in.process)
	if err != nil {
		return nil, err
	}
	return in.engine.Start(in.inside(g.t.Context()), started, env)
}

func (g *grove) leave(in *incarnation) { in.die() }

// drive watches a tree while a process drives it, and says whether it ended.
func (g *grove) drive(in *incarnation, run *engine.Run) bool {
	stop := make(chan struct{})
	var beside sync.WaitGroup
	beside.Go(func() { g.operate(in, run, stop) })
	var taken, ended bool
	if g.released != nil {
		beside.Go(func() { taken, ended = g.rival(stop) })
	}
	ctx, cancel := context.WithTimeout(g.t.Context(), 30*24*time.Hour)
	defer cancel()
	state, err := run.Wait(ctx)
	close(stop)
	beside.Wait()
	switch {
	case ctx.Err() != nil:
		g.violate("%s waits for nothing that comes", in.name)
		in.die()
		return true
	case err != nil:
		g.notef("%s gives the run up: %v", in.name, firstLine(err))
		if _, ok := errors.AsType[*engine.PanicError](err); ok || state.Outcome != nil && state.Outcome.Reason == event.ReasonInternal {
			g.violate("%s: %v", in.name, err)
		}
		in.die()
		return ended
	case taken:
		return ended
	}
	g.sameAnew(run.ID, state)
	if state.Phase == machine.Ended {
		return true
	}
	g.notef("%s parked the run: %s: %s", in.name, state.Parked.Reason, state.Parked.Detail)
	g.standing()
	g.decide(in)
	time.Sleep(time.Duration(g.draw(600_000)) * time.Millisecond)
	g.standing()
	return false
}

// decide plays a person at the parked tree: it raises what the tree asks for, and
// decides about the calls that wait, on the run itself or on the one above.
func (g *grove) decide(in *incarnation) {
	for _, row := range g.rows() {
		if row.State == journal.Ended {
			continue
		}
		m, err := in.engine.Inspect(g.t.Context(), row.ID)
		if err != nil {
			continue
		}
		state := m.State()
		if row.Parent == "" && !g.steady && g.draw(3) == 0 {
			value := 1 + float64(g.draw(5))
			if g.isCalm() {
				value = 1000 // or it is not raised to what the tree needs
			}
			g.send(in, journal.Command{Run: row.ID, Kind: journal.Raise, Setting: "usd_per_run", Value: value})
		}
		if p := state.Parked; p != nil && p.Detail == "which?" {
			g.send(in, journal.Command{Run: row.ID, Kind: journal.Input, By: "operator", Text: "this one"})
		}
		if row.Parent == "" && g.flows["root"].Plan.Refine && !g.steady && g.bad(8) {
			g.send(in, journal.Command{Run: row.ID, Kind: journal.Cancel, By: "operator"})
		}
		for _, p := range state.Pending {
			if g.bad(6) {
				continue
			}
			to := row.ID
			for above := row.Parent; above != "" && g.draw(2) == 0; {
				up, err := g.store.Run(g.t.Context(), above)
				if err != nil {
					g.t.Fatal(err)
				}
				to, above = up.ID, up.Parent
			}
			g.send(in, journal.Command{Run: to, Kind: pick2(g, journal.Approve, journal.Reject), CallID: p.ID, By: "operator"})
		}
	}
}

func pick2[T any](g *grove, a, b T) T {
	if g.draw(3) == 0 {
		return b
	}
	return a
}

func (g *grove) send(in *incarnation, c journal.Command) {
	g.notef("operator: %s %s %s", c.Kind, c.Run, c.CallID)
	g.sent(c, in.engine.Send(g.t.Context(), c))
}

// operate sends commands to any run of the tree while it goes.
func (g *grove) operate(in *incarnation, run *engine.Run, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-g.released:
			if g.bad(30) {
				g.send(in, journal.Command{Run: run.ID, By: "operator", Text: "word", Kind: journal.Cancel})
				g.seen("cancelled in the moment of a release")
			}
			continue
		case <-time.After(time.Duration(5_000+g.draw(60_000)) * time.Millisecond):
		}
		if g.quiet {
			continue
		}
		rows := g.rows()
		c := journal.Command{Run: rows[g.draw(len(rows))].ID, By: "operator", Text: "word"}
		switch {
		case g.bad(12):
			c.Kind = journal.Pause
		case g.steady && !g.bad(30):
			continue
		case g.steady:
			run.Interrupt()
			continue
		case g.bad(10):
			c.Kind = journal.Cancel
		case g.bad(8):
			c.Kind, c.Setting, c.Value = journal.Raise, "usd_per_run", 0.05+float64(g.draw(100))/100
		case g.bad(30):
			run.Interrupt()
			continue
		default:
			continue
		}
		g.send(in, c)
	}
}
