package agent_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/compact"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/stop"
)

// shown is a hook's input, for a listing.
func shown(a machine.RunHook) string {
	s := ""
	if a.Args != nil {
		s += " " + string(a.Args)
	}
	if a.Result != nil {
		s += " -> " + a.Result.Output
	}
	if a.Outcome != nil {
		s += " -> " + string(a.Outcome.Reason)
	}
	return s
}

// says settles a running hook by its id.
func (p *play) heard(id string, d event.HookResult) {
	p.t.Helper()
	a, ok := p.hooks[id]
	if !ok {
		p.t.Fatalf("%s is not heard:\n%s", id, p.log.String())
	}
	delete(p.hooks, id)
	d.CallID, d.Hook, d.Stage, d.Observer = a.CallID, a.Hook, a.Stage, a.Observer
	if d.Decision == "" {
		d.Decision = event.HookContinue
	}
	p.apply(d)
	p.advance()
}

func goesOn() event.HookResult { return event.HookResult{} }

func blocks(why string) event.HookResult {
	return event.HookResult{Decision: event.HookBlock, Reason: why}
}

func fails(why string) event.HookResult {
	return event.HookResult{Decision: event.HookBlock, Failed: true, Reason: why}
}

func wantsAPerson(why string) event.HookResult {
	return event.HookResult{Decision: event.HookAsk, Reason: why}
}

func rewrites(path string) event.HookResult {
	return event.HookResult{Decision: event.HookRewrite, Args: json.RawMessage(`{"path":"` + path + `"}`)}
}

// gate is a gate of a stage; its tools are named behind it.
func gate(stage event.HookStage, name string, tools ...string) agent.Hook {
	return agent.Hook{Stage: stage, Name: name, Tools: tools}
}

func observer(stage event.HookStage, name string, tools ...string) agent.Hook {
	return agent.Hook{Stage: stage, Name: name, Observer: true, Tools: tools}
}

func hooked(hooks ...agent.Hook) agent.Config { return agent.Config{Hooks: hooks} }

// rows: ALF-63..66, ALF-68
func TestHooksBeforeATool(t *testing.T) {
	guard, second := gate(event.HookBeforeTool, "guard"), gate(event.HookBeforeTool, "second")
	denied := hooked(guard)
	denied.Policy = policy.Rules{Rules: []policy.Rule{{Decision: event.DecisionDeny, Tool: "send", Args: map[string]string{"path": "secret*"}}}}
	asking := hooked(guard)
	asking.Policy = gated("send")
	golden(t, "hooks_before", []scenario{
		{"a hook is heard before policy, and lets the call through", hooked(guard), func(p *play) {
			p.answer(asks("", "send a"))
			p.heard("before_tool/guard/c1.1", goesOn())
			p.results("c1.1=A")
		}},
		{"only of calls that are known and whose arguments fit", hooked(guard), func(p *play) {
			p.answer(asks("", "nosuch a", "read bad", "read c"))
			p.heard("before_tool/guard/c1.3", goesOn())
			p.results("c1.3=C")
		}},
		{"only of the tools that it names", hooked(gate(event.HookBeforeTool, "guard", "se*", "put")), func(p *play) {
			p.answer(asks("", "read a", "send b"))
			p.heard("before_tool/guard/c1.2", goesOn())
			p.results("c1.1=A", "c1.2=B")
		}},
		{"a hook blocks, and the next one is not heard", hooked(guard, second), func(p *play) {
			p.answer(asks("", "send a"))
			p.heard("before_tool/guard/c1.1", blocks("not on Sundays"))
			p.answer(says("I see"))
		}},
		{"a gate that fails is closed", hooked(guard), func(p *play) {
			p.answer(asks("", "send a"))
			p.heard("before_tool/guard/c1.1", fails("it was stopped after its timeout of 10s"))
			p.answer(says("I see"))
		}},
		{"an observer that fails changes nothing", hooked(observer(event.HookBeforeTool, "log")), func(p *play) {
			p.answer(asks("", "send a"))
			p.heard("before_tool/log/c1.1", event.HookResult{Failed: true, Reason: "exit code 1"})
			p.results("c1.1=A")
		}},
		{"each sees what the one before it made of the arguments, and the last word runs", hooked(guard, second), func(p *play) {
			p.answer(asks("", "send a"))
			p.heard("before_tool/guard/c1.1", rewrites("b"))
			p.heard("before_tool/second/c1.1", rewrites("c"))
			if got := string(p.runs["c1.1"].Args); got != `{"path":"c"}` {
				p.t.Errorf("the tool was called with %s", got)
			}
			p.results("c1.1=C")
			p.answer(says("sent"))
			if got := p.calls(); got != `{"path":"a"}` {
				p.t.Errorf("the conversation says that the model called with %s", got)
			}
		}},
		{"arguments that a hook wrote and that do not fit run nothing, also not the model's", hooked(guard), func(p *play) {
			p.answer(asks("", "send a"))
			p.heard("before_tool/guard/c1.1", rewrites("bad"))
			p.answer(says("I see"))
		}},
		{"rewritten arguments are judged again, and may be denied", denied, func(p *play) {
			p.answer(asks("", "send a"))
			p.heard("before_tool/guard/c1.1", rewrites("secret.txt"))
			p.answer(says("I see"))
		}},
		{"a hook that lets a call through overrides no denial", denied, func(p *play) {
			p.answer(asks("", "send secret.txt"))
			p.heard("before_tool/guard/c1.1", goesOn())
			p.answer(says("I see"))
		}},
		{"a hook that asks downgrades no denial", denied, func(p *play) {
			p.answer(asks("", "send secret.txt"))
			p.heard("before_tool/guard/c1.1", wantsAPerson("look at it"))
			p.answer(says("I see"))
		}},
		{"a hook asks where policy would have let the call run", hooked(guard, second), func(p *play) {
			p.answer(asks("", "send a"))
			p.heard("before_tool/guard/c1.1", wantsAPerson("look at it"))
			p.heard("before_tool/second/c1.1", goesOn())
			p.decide("c1.1", event.ApprovalApproved, "")
			p.results("c1.1=A")
		}},
		{"a person is asked about the rewritten arguments, not about the model's", asking, func(p *play) {
			p.answer(asks("", "send a"))
			p.heard("before_tool/guard/c1.1", rewrites("b"))
			if err := p.try(event.ToolApprovalResolved{CallID: "c1.1", Kind: event.ApprovalApproved, Digest: `d:send{"path":"a"}`, Approver: "ann"}); err != nil {
				p.t.Fatal(err)
			}
			p.advance()
			p.decide("c1.1", event.ApprovalApproved, "")
			p.results("c1.1=B")
		}},
		{"a crash before the hook's result: it is heard again", hooked(guard), func(p *play) {
			p.answer(asks("", "put a"))
			p.crash()
			p.resume()
			p.heard("before_tool/guard/c1.1", rewrites("b"))
			p.crash()
			p.resume()
			p.results("c1.1=B")
		}},
		{"a crash after it: it is not", hooked(guard), func(p *play) {
			p.answer(asks("", "read a"))
			p.heard("before_tool/guard/c1.1", goesOn())
			p.crash()
			p.resume()
			p.results("c1.1=A")
		}},
		{"a cancel while a hook is heard; what it says comes too late", hooked(guard), func(p *play) {
			p.answer(asks("", "send a"))
			p.cancel()
		}},
		{"what a person writes in the place of the arguments is heard again, and may be blocked", asking, func(p *play) {
			p.answer(asks("", "send a", "send b"))
			p.heard("before_tool/guard/c1.1", goesOn())
			p.heard("before_tool/guard/c1.2", goesOn())
			p.edits("c1.1", "c")
			p.heard("before_tool/guard/c1.1", blocks("not even so"))
			p.edits("c1.2", "d")
			p.heard("before_tool/guard/c1.2", goesOn())
			p.results("c1.2=D")
		}},
		{"who edited a call has not approved what a hook makes of it, or asks about it", asking, func(p *play) {
			p.answer(asks("", "send a"))
			p.heard("before_tool/guard/c1.1", goesOn())
			p.edits("c1.1", "b")
			p.heard("before_tool/guard/c1.1", rewrites("c"))
			p.edits("c1.1", "d")
			p.heard("before_tool/guard/c1.1", wantsAPerson("are you sure?"))
			p.decide("c1.1", event.ApprovalRejected, "no")
		}},
		{"a call that is decided late takes no more than is left of the budget", agent.Config{
			Hooks: []agent.Hook{gate(event.HookBeforeTool, "guard", "get")}, Limits: budget.Limits{MaxToolCalls: 1},
		}, func(p *play) {
			p.answer(asks("", "get a", "read b"))
			p.heard("before_tool/guard/c1.1", goesOn())
			p.results("c1.2=B")
		}},
		{"no more hooks are heard at once than calls may run", agent.Config{
			Hooks: []agent.Hook{guard}, Limits: budget.Limits{MaxParallelTools: 2},
		}, func(p *play) {
			p.answer(asks("", "read a", "read b", "read c"))
			p.heard("before_tool/guard/c1.2", goesOn())
			p.heard("before_tool/guard/c1.3", goesOn())
			p.heard("before_tool/guard/c1.1", goesOn())
			p.results("c1.1=A", "c1.2=B", "c1.3=C")
		}},
		{"an observer whose result says more than it may", hooked(observer(event.HookBeforeTool, "log")), func(p *play) {
			p.answer(asks("", "send a"))
			p.heard("before_tool/log/c1.1", blocks("no"))
			p.results("c1.1=A")
		}},
		{"the hooks of all calls are heard before any of them runs", hooked(gate(event.HookBeforeTool, "guard", "get")), func(p *play) {
			p.answer(asks("", "read a", "get b"))
			if len(p.runs) > 0 {
				p.t.Errorf("%v run", p.running())
			}
			p.heard("before_tool/guard/c1.2", blocks("no"))
			p.results("c1.1=A")
		}},
	})
}

// The answer of one hook does not replace that of another that has not answered yet.
func TestAnotherHooksWordIsNotThatOfTheOneThatIsDue(t *testing.T) {
	p := newPlay(t, hooked(gate(event.HookBeforeTool, "guard"), gate(event.HookBeforeTool, "second")))
	p.answer(asks("", "send a"))
	p.apply(event.HookResult{CallID: "c1.1", Hook: "second", Stage: event.HookBeforeTool, Decision: event.HookContinue})
	p.advance()
	p.heard("before_tool/guard/c1.1", goesOn())
	if len(p.runs) > 0 {
		t.Fatal("the call runs before the second hook is heard")
	}
	p.heard("before_tool/second/c1.1", blocks("not on Sundays"))
	if got := p.seen(); !strings.Contains(got, "not on Sundays") {
		t.Errorf("the model sees %q", got)
	}
	p.check()
}

// A hook's input and output are bounded like a tool's result.
func TestHookGetsItsStageAndOutputBound(t *testing.T) {
	cfg := hooked(gate(event.HookBeforeTool, "guard"))
	cfg.Limits.MaxResultChars = 700
	p := newPlay(t, cfg)
	p.answer(asks("", "send a"))
	if a := p.hooks["before_tool/guard/c1.1"]; a.Cycle != 1 || a.MaxResultChars != 700 || a.Observer {
		t.Errorf("%+v", a)
	}
}

// edits gives a call that waits other arguments, as a person does.
func (p *play) edits(id, path string) {
	p.t.Helper()
	for _, pending := range p.live.State().Pending {
		if pending.ID == id {
			p.command(event.ToolApprovalResolved{
				CallID: id, Kind: event.ApprovalEdited, Digest: pending.Digest, Policy: pending.Policy, Approver: "ann",
				Args: json.RawMessage(`{"path":"` + path + `"}`), At: p.now,
			})
			return
		}
	}
	p.t.Fatalf("%s waits for no decision:\n%s", id, p.log.String())
}

// calls is what the conversation says that the model called with.
func (p *play) calls() string {
	var args []string
	for _, m := range p.live.Transcript() {
		for _, c := range m.Parts.ToolCalls() {
			args = append(args, string(c.Args))
		}
	}
	return strings.Join(args, " ")
}

// rows: ALF-70
func TestHooksAfterATool(t *testing.T) {
	redact := gate(event.HookAfterTool, "redact")
	golden(t, "hooks_after", []scenario{
		{"an observer is told of the result, and changes nothing by failing", hooked(observer(event.HookAfterTool, "log")), func(p *play) {
			p.answer(asks("", "send a"))
			p.results("c1.1=A")
			p.heard("after_tool/log/c1.1", event.HookResult{Failed: true, Reason: "exit code 1"})
			p.answer(says("sent"))
		}},
		{"a gate puts another output in the place of the tool's", hooked(redact), func(p *play) {
			p.answer(asks("", "send a"))
			p.results("c1.1=the key is 1234")
			p.heard("after_tool/redact/c1.1", event.HookResult{Decision: event.HookRewrite, Output: "the key is …"})
			if got := p.seen(); !strings.HasSuffix(got, "the key is …") {
				p.t.Errorf("the model sees %q", got)
			}
		}},
		{"a condition is not met by what a gate took out", agent.Config{
			Hooks: []agent.Hook{redact}, Limits: cycles(1),
			Conditions: []stop.Condition{{Kind: stop.ToolResult, Tool: "send", Match: stop.Match{Contains: "1234"}}},
		}, func(p *play) {
			p.answer(asks("", "send a"))
			p.result("c1.1", event.ToolResult{Output: "the keys are […] and so on", Blob: "sha256-1", Contains: []string{"1234"}})
			p.heard("after_tool/redact/c1.1", event.HookResult{Decision: event.HookRewrite, Output: "the keys are …"})
		}},
		{"a gate withholds a result, and so does one that fails", hooked(redact), func(p *play) {
			p.answer(asks("", "send a", "send b"))
			p.results("c1.1=the key is 1234")
			p.heard("after_tool/redact/c1.1", blocks("it holds a key"))
			p.results("c1.2=5678")
			p.heard("after_tool/redact/c1.2", fails("signal: killed"))
			if got := p.seen(); strings.Contains(got, "1234") || strings.Contains(got, "5678") {
				p.t.Errorf("the model sees %q", got)
			}
		}},
		{"what depends on a call waits for the hooks behind it", hooked(observer(event.HookAfterTool, "format")), func(p *play) {
			p.answer(asks("", "put a", "get a"))
			p.results("c1.1=written")
			if len(p.runs) > 0 {
				p.t.Errorf("%v run", p.running())
			}
			p.heard("after_tool/format/c1.1", goesOn())
			p.results("c1.2=formatted")
			p.heard("after_tool/format/c1.2", goesOn())
		}},
		{"calls that run at once are not held", hooked(observer(event.HookAfterTool, "log")), func(p *play) {
			p.answer(asks("", "read a", "read b"))
			p.results("c1.1=A", "c1.2=B")
			p.heard("after_tool/log/c1.2", goesOn())
			p.heard("after_tool/log/c1.1", goesOn())
		}},
		{"a call that did not run has nothing behind it", agent.Config{Hooks: []agent.Hook{redact}, Policy: gated("send"), Approve: agent.ApproveDeny}, func(p *play) {
			p.answer(asks("", "nosuch a", "send b"))
		}},
		{"a crash before the hook's result: the call does not run again, the hook does", hooked(redact), func(p *play) {
			p.answer(asks("", "send a"))
			p.results("c1.1=A")
			p.crash()
			p.resume()
			p.heard("after_tool/redact/c1.1", goesOn())
			p.answer(says("sent"))
		}},
		{"a call of which nobody knows whether it ran", hooked(observer(event.HookAfterTool, "log")), func(p *play) {
			p.answer(asks("", "send a"))
			p.crash()
			p.resume()
			p.heard("after_tool/log/c1.1", goesOn())
		}},
		{"what a hook says after a cancel comes too late and changes nothing", hooked(redact), func(p *play) {
			p.answer(asks("", "read a", "read b"))
			p.results("c1.1=the key is 1234")
			p.command(event.CancelRequested{By: "ann", Reason: "enough"})
			p.heard("after_tool/redact/c1.1", event.HookResult{Decision: event.HookRewrite, Output: "the key is 12…"})
			p.stop()
			if got := p.seen(); strings.Contains(got, "12") {
				p.t.Errorf("a run that goes on from here sees %q", got)
			}
		}},
		{"a cancel: what a gate has not seen is withheld", hooked(redact, observer(event.HookAfterTool, "log")), func(p *play) {
			p.answer(asks("", "send a"))
			p.results("c1.1=the key is 1234")
			p.cancel()
			if got := p.seen(); strings.Contains(got, "1234") {
				p.t.Errorf("a run that goes on from here sees %q", got)
			}
		}},
	})
}

// An observer that no longer runs does not withhold the result that it would have
// received.
func TestObserverThatNoLongerRunsWithholdsNothing(t *testing.T) {
	p := newPlay(t, hooked(observer(event.HookAfterTool, "log")))
	p.answer(asks("", "send a"))
	p.results("c1.1=A")
	p.cancel()
	d := p.last(event.TypeHookResult).(event.HookResult)
	if !d.Observer || d.Decision != event.HookContinue || !d.Failed || d.Reason != "the run was cancelled before this hook was heard" {
		t.Errorf("%+v", d)
	}
	if got := p.seen(); got != "A" {
		t.Errorf("a run that goes on from here sees %q", got)
	}
}

// seen is what the model sees of the results so far.
func (p *play) seen() string {
	var out []string
	for _, m := range p.live.Transcript() {
		for _, part := range m.Parts {
			if r, ok := part.(llm.ToolResult); ok {
				out = append(out, r.Output)
			}
		}
	}
	return strings.Join(out, "\n")
}

func TestHooksAroundARun(t *testing.T) {
	allow, tell := gate(event.HookBeforeRun, "allow"), observer(event.HookAfterRun, "tell")
	golden(t, "hooks_run", []scenario{
		{"the run begins and ends with its hooks", hooked(tell, allow), func(p *play) {
			p.heard("before_run/allow/0", goesOn())
			p.answer(says("done"))
			p.heard("after_run/tell/1", event.HookResult{Failed: true, Reason: "exit code 7"})
		}},
		{"a gate does not let the run begin", hooked(allow, gate(event.HookBeforeRun, "never"), tell), func(p *play) {
			p.heard("before_run/allow/0", blocks("outside of office hours"))
			p.heard("after_run/tell/0", goesOn())
		}},
		{"a crash before and in the hook after the run", hooked(allow, tell), func(p *play) {
			p.crash()
			p.resume()
			p.heard("before_run/allow/0", goesOn())
			p.answer(says("done"))
			p.crash()
			p.resume()
			p.heard("after_run/tell/1", goesOn())
		}},
		{"a cancelled run is told of as well", hooked(allow, tell), func(p *play) {
			p.cancel()
			p.heard("after_run/tell/0", goesOn())
		}},
	})
}

func TestHooksAroundACompaction(t *testing.T) {
	cfg := windowed(compact.Settings{Strategy: compact.RollingWindow})
	cfg.Hooks = []agent.Hook{
		gate(event.HookBeforeCompaction, "keep"), gate(event.HookBeforeCompaction, "second"),
		observer(event.HookAfterCompaction, "tell"),
	}
	p := newPlay(t, cfg)
	p.work(20)
	at := p.hooks["before_compaction/keep/"+strconv.Itoa(p.cycle)]
	if at.Compaction == nil || at.Compaction.TokensBefore <= 800 || at.Compaction.Trigger != event.CompressThreshold || at.Compaction.Strategy != "rolling-window" || at.Compaction.Kept == 0 || len(p.compressed()) > 0 {
		t.Fatalf("the gate is told of %+v after %d compactions", at.Compaction, len(p.compressed()))
	}
	p.heard(at.ID, blocks("not yet"))
	if len(p.compressed()) > 0 || p.call == nil {
		t.Fatal("the run did not go on with the whole conversation")
	}
	p.work(1)
	p.crash()
	p.resume()
	n := strconv.Itoa(p.cycle)
	p.heard("before_compaction/keep/"+n, goesOn())
	p.heard("before_compaction/second/"+n, goesOn())
	if len(p.compressed()) != 1 || p.call != nil {
		t.Fatal("the conversation is not shortened, or the next call did not wait for the hook behind that")
	}
	if after := p.hooks["after_compaction/tell/"+n].Compaction; after == nil || after.Kept != p.compressed()[0].Kept {
		t.Errorf("the hook behind it is told of %+v", after)
	}
	p.heard("after_compaction/tell/"+n, event.HookResult{Failed: true, Reason: "exit code 1"})
	if p.call == nil {
		t.Error("the run does not go on")
	}
	p.check()
}

// A run that is cancelled while a hook after a compaction is due ends, and records that
// the hook did not run.
func TestACancelBehindACompactionEndsTheRun(t *testing.T) {
	cfg := windowed(compact.Settings{Strategy: compact.RollingWindow})
	cfg.Hooks = []agent.Hook{observer(event.HookAfterCompaction, "tell")}
	p := newPlay(t, cfg)
	p.work(20)
	if len(p.hooks) != 1 {
		t.Fatalf("no hook is due:\n%s", p.log.String())
	}
	p.command(event.CancelRequested{Reason: "enough"})
	if d := p.last(event.TypeHookResult).(event.HookResult); d.Hook != "tell" || d.Decision != event.HookContinue || !d.Failed {
		t.Errorf("%+v", d)
	}
	if o := p.outcome(); o.Reason != event.ReasonCancelled {
		t.Errorf("%+v", o)
	}
	p.check()
}

// After the driver has ended the run, only the hooks after the end run.
func TestHookAfterCompactionIsSkippedOnceRunHasEnded(t *testing.T) {
	cfg := windowed(compact.Settings{Strategy: compact.RollingWindow})
	cfg.Hooks = []agent.Hook{observer(event.HookAfterCompaction, "tell"), observer(event.HookAfterRun, "bye")}
	p := newPlay(t, cfg)
	p.work(20)
	p.hooks = map[string]machine.RunHook{}
	p.command(event.RunTerminatedBy{Reason: event.ReasonInternal})
	p.heard("after_run/bye/"+strconv.Itoa(p.cycle), goesOn())
	if o := p.outcome(); o.Reason != event.ReasonInternal || len(p.compressed()) != 1 {
		t.Errorf("%+v after %d compactions", o, len(p.compressed()))
	}
}

func TestGateThatAlwaysBlocksCompactionEndsRunWithoutRoom(t *testing.T) {
	cfg := windowed(compact.Settings{Strategy: compact.RollingWindow})
	cfg.Targets = []agent.Target{{Model: "m/a", ContextWindow: 1000}}
	cfg.Hooks = []agent.Hook{gate(event.HookBeforeCompaction, "keep")}
	p := newPlay(t, cfg)
	for p.live.State().Outcome == nil && p.cycle < 30 {
		p.work(1)
		for id := range p.hooks {
			p.heard(id, fails("the archive is full"))
		}
	}
	if o := p.outcome(); o.Error == nil || o.Error.Class != string(llm.ClassContextOverflow) || len(p.compressed()) > 0 {
		t.Errorf("ended with %+v after %d compactions", o, len(p.compressed()))
	}
	p.check()
}

func TestARewriteDoesNotHideThatTheModelGoesInCircles(t *testing.T) {
	p := newPlay(t, hooked(gate(event.HookBeforeTool, "stamp")))
	for n := 1; p.live.State().Outcome == nil && n < 12; n++ {
		p.answer(asks("", "put a"))
		for id := range p.hooks {
			p.heard(id, rewrites(fmt.Sprint("stamped ", n)))
		}
		for _, id := range p.running() {
			p.results(id + "=the same")
		}
	}
	if o := p.outcome(); o.Reason != event.ReasonStuck {
		t.Errorf("ended with %+v", o)
	}
	p.check()
}

// A journal of an older version says the same: what waits for no hook is decided
// beside those calls that do, however many may be heard at once.
func TestCallWithoutHooksDoesNotWaitForHooksOfOthers(t *testing.T) {
	cfg := agent.Config{Hooks: []agent.Hook{gate(event.HookBeforeTool, "guard", "put")}}
	cfg.Limits.MaxParallelTools = 1
	p := newPlay(t, cfg)
	p.answer(asks("", "put a", "put b", "get c"))
	if d, ok := p.last(event.TypePolicyDecision).(event.PolicyDecision); !ok || d.CallID != "c1.3" || len(p.hooks) != 1 {
		t.Errorf("decided %+v while %d hooks are heard", d, len(p.hooks))
	}
}
