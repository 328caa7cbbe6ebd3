package simulate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/machine/flow"
	processes "github.com/pawlrun/pawl/internal/machine/process"
	"github.com/pawlrun/pawl/internal/rules/plan"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
)

// workflows are what a grove has of workflows.
type workflows struct {
	// says is what the models of the tree answer.
	says func(name string, req *llm.Request, a *llm.Response) *llm.Error
	// flows are the workflows, funcs the functions that their steps may be, and own the
	// tools that agents have beside those of every agent.
	flows map[string]flow.Config
	funcs []string
	own   map[string][]tool.Tool
	// runners are the children that other programs do.
	runners map[string]processes.Config
	// steady trees come to the same ends in any order of events. Quiet ones get no
	// commands.
	steady, quiet bool
	// paths are the names of the runs from the root down, by their ids; begun are the
	// ids of steps, and commands how often each program was started by the journals.
	paths    map[string]string
	begun    []string
	commands map[string]int
	ranAs    map[string]int
	// told is what became of the steps of all runs.
	told []string
}

func newWorkflows() *workflows {
	return &workflows{flows: map[string]flow.Config{}, own: map[string][]tool.Tool{}, runners: map[string]processes.Config{}, paths: map[string]string{}, commands: map[string]int{}, ranAs: map[string]int{}}
}

func TestSeedsOfFlows(t *testing.T) {
	playFlows(t, newFlows, 100, 1000, []string{
		"a tree four deep", "taken up with a child under way", "iteration", "items in order", "verdict done", "verdict not_done", "verdict impossible", "no verdict",
		"step completed", "step failed", "step cancelled", "step skipped", "another attempt", "delivered to a step", "delivered to the coordinator", "dropped target-terminal",
		"dropped unknown-step", "step timed out", "command", "command asked about", "function", "wait", "expression failed",
	})
}

// playFlows plays seeds of trees of workflows, which all together must come across
// what is wanted.
func playFlows(t *testing.T, tree func(*testing.T, int) *grove, few, many int, wanted []string) {
	first, last := 1, few
	if os.Getenv("PAWL_LONG") != "" {
		last = many
	}
	if *seedFlag != 0 {
		first, last = *seedFlag, *seedFlag
	}
	oneByOne(t)
	happened := map[string]int{}
	for seed := first; seed <= last && !t.Failed(); seed++ {
		var stories [2][]string
		for i := range stories {
			if i == 0 && !steadySeed(seed) {
				continue
			}
			synctest.Test(t, func(t *testing.T) {
				g := tree(t, seed)
				if i == 0 {
					g.turnCalm()
				}
				g.toTheEnd(g)
				g.mu.Lock()
				defer g.mu.Unlock()
				slices.Sort(g.told)
				if stories[i] = g.told; i == 1 && steadySeed(seed) && !slices.Equal(stories[0], stories[1]) {
					g.violatef("with crashes it goes another way:\n%s", strings.Join(differences(stories[0], stories[1]), "\n"))
				}
				if len(g.violations) > 0 {
					t.Error(g.report(t.Name(), g.listing()))
				}
				for what, n := range g.happened {
					happened[what] += n
				}
			})
		}
	}
	t.Log(happened)
	for _, what := range wanted {
		if *seedFlag == 0 && happened[what] == 0 {
			t.Errorf("no seed came across %q", what)
		}
	}
}

// steadySeed reports whether a seed's tree is steady.
func steadySeed(seed int) bool { return seed%2 == 0 }

// differences are the lines that only one of two stories has.
func differences(before, after []string) (lines []string) {
	for _, l := range before {
		if !slices.Contains(after, l) {
			lines = append(lines, "- "+l)
		}
	}
	for _, l := range after {
		if !slices.Contains(before, l) {
			lines = append(lines, "+ "+l)
		}
	}
	return lines
}

// newFlows is a tree whose root is a workflow. Its steps are agents, which may call
// others, functions, programs, plans, loops and workflows in which there are steps
// again.
func newFlows(t *testing.T, seed int) *grove {
	g := emptyGrove(t, seed)
	r := rand.New(rand.NewPCG(uint64(seed), 53))
	g.steady, g.quiet, g.says, g.funcs = steadySeed(seed), r.IntN(2) == 0, g.play, []string{"sum"}
	config := func(name string) agent.Config {
		cfg := agent.Config{
			Targets: []agent.Target{{Model: "m/a", Price: priceOf("m/a")}}, MaxTokens: 300, Limits: budget.Limits{MaxCycles: 20, MaxParallelTools: 1 + r.IntN(4)},
			Policy: policy.Rules{Declared: true, Gates: []string{"pay"}, Open: []string{tool.SendName, "read"}},
		}
		if most := 1000; g.steady {
			cfg.Limits.MaxModelRetries = &most
		} else {
			cfg.Limits.MaxWallSeconds = float64(600 + r.IntN(20_000))
			if cfg.Limits.USDPerRun = pick(r, 0, 0.01, 100); r.IntN(4) == 0 {
				cfg.Approvals = agent.Approvals{Seconds: float64(100 + r.IntN(400)), OnTimeout: pick(r, agent.TimeoutReject, agent.TimeoutStop)}
			}
		}
		if name == "judge" || name == "giver" {
			cfg.Result = tool.ResultName
			g.own[name] = []tool.Tool{tool.ForResult(json.RawMessage(`{"type":"object"}`))}
		}
		return cfg.WithDefaults()
	}
	for _, name := range []string{"worker", "giver", "chief", "helper", "judge", "coordinator"} {
		g.agents[name] = config(name)
		switch name {
		case "coordinator":
			g.own[name] = tool.ForCoordinator()
		case "worker", "giver", "chief":
			g.own[name] = append(g.own[name], tool.ForSteps()...)
		}
	}
	g.offers["chief"] = []string{"helper"}
	for name, inner := range map[string][]string{"root": {"outer", "inner"}, "outer": {"inner"}, "inner": nil} {
		d := draft{Rand: rand.New(rand.NewPCG(uint64(seed), 59+uint64(len(name)+2*len(inner)))), steady: g.steady, inner: inner, left: 8 + 8*len(inner), leaf: name == "inner"}
		cfg := flow.Config{Plan: d.plan(1+len(inner)/2, 1), Concurrency: pick(r, 0, 0, 1, 3)}
		cfg.Plan.Name = name
		if name == "root" || d.IntN(2) == 0 {
			cfg.Plan.Coordinator = "coordinator"
		}
		if !g.steady && d.IntN(3) == 0 {
			cfg.Limits.USDPerRun = 0.01 + 0.2*d.Float64()
		}
		g.flows[name] = cfg
		g.offers[name] = append([]string{"worker", "giver", "chief", "judge", "coordinator"}, inner...)
	}
	for name := range g.agents {
		g.tools[name] = g.toolSet(name)
	}
	return g
}

// draft draws plans from luck of its own.
type draft struct {
	*rand.Rand
	steady bool
	// inner are the workflows that a step may be. No step of a leaf calls agents.
	inner []string
	leaf  bool
	// left is about how many runs there may still be.
	left int
}

// plan draws a plan that is done so many times, with plans and loops so many levels
// deep.
func (d *draft) plan(deep, times int) plan.Plan {
	p := plan.Plan{
		Concurrency: pick(d.Rand, 0, 0, 1, 2, 4), Width: pick(d.Rand, 0, 0, 0, 1, 2), OnFailure: pick(d.Rand, plan.Cascade, plan.SkipDependents),
		Scheduler: pick(d.Rand, plan.DependencyFirst, plan.RoundRobin, plan.LeastBusy),
	}
	if !d.steady && d.IntN(4) == 0 {
		p.OnFailure = plan.Abort
	}
	for i := range 1 + d.IntN(4) {
		if i > 0 && d.left <= 0 {
			break
		}
		s := plan.Step{ID: string(rune('a' + i)), Retries: pick(d.Rand, 0, 0, 0, 1, 2)}
		for _, before := range p.Steps {
			if d.IntN(3) == 0 {
				s.DependsOn = append(s.DependsOn, before.ID)
			}
		}
		if d.IntN(6) == 0 {
			s.Condition = "luck"
		}
		if !d.steady && d.IntN(6) == 0 {
			s.Timeout = time.Duration(1+d.IntN(200)) * time.Second
		}
		d.work(&s, deep, times)
		p.Steps = append(p.Steps, s)
	}
	return p
}

// work draws what a step is.
func (d *draft) work(s *plan.Step, deep, times int) {
	n := d.IntN(16)
	switch {
	case n < 3 && deep > 0:
		items := &plan.Items{Concurrency: d.IntN(4), OnError: pick(d.Rand, plan.Collect, plan.Continue), MinSuccess: pick(d.Rand, 0, 0, 1), MinSuccessPercent: pick(d.Rand, 0.0, 0, 50)}
		if !d.steady && d.IntN(2) == 0 {
			items.OnError = plan.FailFast
		}
		if items.Expression = "items"; d.IntN(2) == 0 {
			items.Expression = ""
			for i := range d.IntN(5) {
				items.Static = append(items.Static, json.RawMessage(fmt.Sprint(10*i)))
			}
		}
		s.Loop = d.loop(plan.Loop{Items: items}, deep, 3*times)
	case n < 7 && deep > 0:
		l := plan.Loop{
			Max: 1 + d.IntN(3), Delay: time.Duration(d.IntN(3)) * time.Minute, Output: pick(d.Rand, plan.Last, plan.Cumulative),
			OnLimit: pick(d.Rand, plan.LimitFails, plan.LimitIsOK, plan.LimitStopped), OnError: pick(d.Rand, plan.IterationFails, plan.IterationContinues),
			JudgeFailuresMax: d.IntN(3), Carry: plan.Carry{None: d.IntN(4) == 0},
		}
		for range d.IntN(3) {
			l.StopWhen = append(l.StopWhen, pick(d.Rand, plan.Stop{Judge: "judge"}, plan.Stop{Judge: "judge"}, plan.Stop{Expression: "luck"}, plan.Stop{Regex: "TEXT [0-3]"}))
		}
		if !d.steady && d.IntN(4) == 0 {
			l.StopWhen = append(l.StopWhen, plan.Stop{Command: d.command()})
		}
		s.Loop = d.loop(l, deep, 2*times)
	case n == 7 && deep > 0:
		sub := d.plan(deep-1, times)
		if s.Plan = &sub; !d.steady && d.IntN(3) == 0 {
			sub.Timeout = time.Duration(1+d.IntN(500)) * time.Second
		}
	case n == 8:
		s.Func = &plan.Func{Name: "sum"}
	case n < 11 && !d.steady:
		s.Command = d.command()
	case n < 13 && len(d.inner) > 0 && times == 1:
		s.Run, d.left = &plan.Run{Kind: flow.Kind, Name: pick(d.Rand, d.inner...), Instructions: "Do all of it."}, d.left-4
	case n < 14 && !d.leaf:
		s.Agent, d.left = &plan.Agent{Name: "chief", Instructions: "Have it done."}, d.left-2*times
	default:
		s.Agent, d.left = &plan.Agent{Name: "worker", Instructions: "Do it."}, d.left-times
		if d.IntN(2) == 0 {
			s.Agent.Name, s.Agent.Result = "giver", true
		}
	}
}

// loop draws what a loop goes around.
func (d *draft) loop(l plan.Loop, deep, times int) *plan.Loop {
	if l.Single = d.IntN(3) == 0; l.Single {
		l.Body.Steps = []plan.Step{{Agent: &plan.Agent{Name: pick(d.Rand, "worker", "giver"), Instructions: "Do it again."}}}
		d.left -= times
		return &l
	}
	l.Body = d.plan(deep-1, times)
	return &l
}

func (d *draft) command() *plan.Command {
	return &plan.Command{Argv: []string{"make", fmt.Sprint(d.Uint32())}, Timeout: pick(d.Rand, 0, 0, 5*time.Second)}
}

// equip gives an environment what workflows need.
func (g *grove) equip(env *perform.Env, name string, p *process) {
	if _, is := g.runners[name]; is {
		env.Commands, env.Rules = programs{g, p}, policy.Rules{Open: []string{machine.CommandTool}}
		return
	}
	if _, is := g.flows[name]; !is {
		if len(g.flows) > 0 && g.world.asks {
			env.Ask = g.person
		}
		return
	}
	if l := g.flows[name].Plan.Steps[0].Loop; l != nil && l.StuckAfter > 0 {
		env.Tree = func(context.Context) (string, error) { return fmt.Sprint("tree ", g.draw(5)/3), nil }
	}
	env.Evaluate, env.Commands, env.Rules = g.evaluate, programs{g, p}, policy.Rules{Open: []string{machine.CommandTool}}
	if g.seed%3 == 0 {
		env.Rules = policy.Rules{Gates: []string{machine.CommandTool}}
	}
	for _, f := range g.funcs {
		env.Children[f] = perform.Child{Func: func(ctx context.Context, input json.RawMessage) (perform.Output, error) {
			return g.function(ctx, p, input)
		}}
	}
}

// roll is a number below 100 that something has in each process.
func (g *grove) roll(of ...any) int {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, append(of, g.seed)...)
	return rand.New(rand.NewPCG(h.Sum64(), 61)).IntN(100)
}

var errorText = regexp.MustCompile(`"error":("(?:[^"\\]|\\.)*"|\{[^{}]*\})`)

// withoutErrors leaves out why things failed: of several that failed it says that of
// the first.
func withoutErrors(raw []byte) string { return errorText.ReplaceAllString(string(raw), "") }

type missingKey struct{ error }

func (missingKey) ErrorType() string { return "missing_key" }

func (g *grove) evaluate(_ context.Context, expression string, variables json.RawMessage) (json.RawMessage, error) {
	n := g.roll(expression, withoutErrors(variables))
	switch {
	case n < 5:
		g.seen("expression failed")
		return nil, errors.New("no such overload")
	case n < 10:
		return nil, missingKey{errors.New("no such key")}
	case expression == "items":
		return json.Marshal([]string{"x", "y", "z", "u"}[:n%5])
	}
	return json.Marshal(n%2 == 0)
}

func (g *grove) function(ctx context.Context, p *process, input json.RawMessage) (perform.Output, error) {
	if p.dead.Load() {
		<-ctx.Done()
		return perform.Output{}, ctx.Err()
	}
	g.seen("function")
	if err := sleep(ctx, time.Duration(g.draw(9_000))*time.Millisecond); err != nil {
		return perform.Output{}, err
	}
	n := g.roll("sum", withoutErrors(input))
	if n < 10 {
		return perform.Output{}, errors.New("no sum")
	}
	return perform.Output{Text: fmt.Sprint("the sum is ", n), Result: json.RawMessage(fmt.Sprint(n))}, nil
}

// programs runs the commands of steps in a process.
type programs struct {
	*grove
	process *process
}

func (programs) Facts(tool.Invocation) (event.Facts, event.Labels) {
	return event.Facts{}, event.Labels{}
}

func (c programs) Run(ctx context.Context, cmd tool.Invocation) (tool.Ended, error) {
	if c.process.dead.Load() {
		<-ctx.Done()
		return tool.Ended{}, ctx.Err()
	}
	c.mu.Lock()
	if c.ranAs[cmd.Argv[1]]++; c.ranAs[cmd.Argv[1]] > c.commands[cmd.Argv[1]] {
		c.violatef("%v runs without an intent on disk", cmd.Argv)
	}
	c.mu.Unlock()
	c.seen("command")
	if err := sleep(ctx, time.Duration(c.draw(9_000))*time.Millisecond); err != nil {
		return tool.Ended{Signal: "killed"}, err
	}
	if len(cmd.Stdin) > 0 {
		return c.ran(cmd), nil
	}
	code := c.draw(3) / 2
	return tool.Ended{ExitCode: &code, Output: "made"}, nil
}

// committed takes in what is on disk of how runs are called.
func (g *grove) committed(b journal.Batch) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range b.Records {
		if r.Type != string(event.TypeChildStarted) && r.Type != "command.started" {
			continue
		}
		e, err := event.Decode(r.Body)
		if err != nil {
			g.violatef("stored event %d does not decode: %v", r.Seq, err)
			return
		}
		switch d := e.Data.(type) {
		case event.ChildStarted:
			g.paths[d.Child] = g.paths[e.Run] + " " + strings.TrimPrefix(d.Action(), e.Run)
			if d.Step != "" && d.Step != event.Coordinator {
				g.begun = append(g.begun, d.Step)
			}
		case event.CommandStarted:
			g.commands[d.Argv[1]]++
		}
	}
}

func (g *grove) path(run string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.paths[run]
}

// play is what the models of a tree of workflows say, by the names of their runs and
// by how often they have spoken.
func (g *grove) play(name string, req *llm.Request, a *llm.Response) *llm.Error {
	path, turn := g.path(req.CacheKey), req.Ordinal
	roll := func(of ...any) int { return g.roll(append(of, path)...) }
	call := func(tool, args string) {
		a.Finish = llm.FinishTool
		a.Parts = append(a.Parts, llm.ToolCall{ProviderID: fmt.Sprint("p", len(a.Parts)), Name: tool, Args: []byte(args)})
	}
	// Each message is unique.
	text := func() string { return fmt.Sprintf("{%s #%d.%d}", path, turn, len(a.Parts)) }
	a.Usage.Output = min(a.Usage.Output, int64(req.MaxTokens)-1)
	a.Parts = llm.Parts{llm.Text{Text: fmt.Sprintf("text %d of %s", roll("text")%10, path)}}
	switch busy := turn < roll("turns")%4; {
	case name == "coordinator":
		if turn == 0 {
			g.coordinate(call, text)
		}
	case name == "reviewer":
		if n := roll("verdict"); n >= 20 && turn == 0 {
			call(tool.ResultName, fmt.Sprintf(`{"verdict":%q,"objective":"so","human":"which?"}`, pickBy(n, "not_done", "blocked_on_human", "blocked_on_human", "impossible")))
		}
	case name == "judge":
		if n := roll("verdict"); n >= 20 && turn == 0 {
			call(tool.ResultName, pickBy(n, `{"done":true}`, `{"verdict":"not_done","reason":"no"}`, `{"verdict":"impossible","reason":"never"}`, `{"done":false}`, `{"what":1}`))
		}
	case busy && name == "chief":
		call("helper", `{"task":"find out"}`)
		call(tool.SendName, fmt.Sprintf(`{"text":%q}`, text()))
	case busy:
		for i := range 1 + roll("calls", turn)%2 {
			switch tools := []string{"read", "send", tool.SendName, "pay", tool.SendName}; tools[roll("tool", turn, i)%5] {
			case tool.SendName:
				if name != "helper" {
					call(tool.SendName, fmt.Sprintf(`{"text":%q}`, text()))
				}
			default:
				call(tools[roll("tool", turn, i)%5], `{"path":"1"}`)
			}
		}
	case roll("fails") < 12:
		return &llm.Error{Class: llm.ClassInvalid, Message: "it cannot"}
	case name == "giver" && roll("gives") < 85:
		call(tool.ResultName, fmt.Sprintf(`{"by":%q}`, path))
	}
	return nil
}

func pickBy[T any](n int, from ...T) T { return from[n%len(from)] }

// coordinate is what the coordinator does when it is called.
func (g *grove) coordinate(call func(tool, args string), text func() string) {
	g.mu.Lock()
	to := "nosuch"
	if n := len(g.begun); n > 0 && g.r.IntN(4) > 0 {
		to = g.begun[n-1-g.r.IntN(min(n, 6))]
	}
	g.mu.Unlock()
	switch g.draw(6) {
	case 0:
		to = string(rune('a' + g.draw(3)))
	case 1:
		call("narrate", fmt.Sprintf(`{"text":%q}`, text()))
	}
	kind := pickBy(g.draw(8), event.MessageInfo, event.MessageContextUpdate)
	if !g.steady && g.draw(8) == 0 {
		kind = event.MessageCancel
	}
	if g.draw(8) > 0 {
		call("forward_to_agent", fmt.Sprintf(`{"target":%q,"text":%q,"kind":%q}`, to, text(), kind))
	}
	if !g.steady && g.draw(5) == 0 {
		call("finalize", fmt.Sprintf(`{"text":%q}`, text()))
	}
}
