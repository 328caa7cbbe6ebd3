package agent_test

import (
	"slices"
	"testing"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/llm"
)

func gated(tools ...string) policy.Rules { return policy.Rules{Gates: tools} }

// rows: ALDO-43, ALDO-44, ALDO-54, ALF-14, ALF-56..60, HAR-28, HAR-62
func TestDispatch(t *testing.T) {
	mode := func(d agent.Dispatch) agent.Config { return agent.Config{Dispatch: d} }
	mixed := []string{"read a", "read b", "send c", "read d"}
	files := []string{"put src/a", "put src/b", "get src/a", "put src", "read x"}
	golden(t, "dispatch", []scenario{
		{"ordered-groups: no read overtakes a write", mode(agent.OrderedGroups), func(p *play) {
			p.answer(asks("", mixed...))
			p.results("c1.2=B", "c1.1=A", "c1.3=C", "c1.4=D")
		}},
		{"parallel-first: the reads first, then the rest one by one", mode(agent.ParallelFirst), func(p *play) {
			p.answer(asks("", "send c", "read a", "send d", "read b"))
			p.results("c1.2=A", "c1.4=B", "c1.1=C", "c1.3=D")
		}},
		{"by-resource: what does not overlap runs together", mode(agent.ByResource), func(p *play) {
			p.answer(asks("", files...))
			p.results("c1.1=1", "c1.2=2", "c1.3=3", "c1.4=4", "c1.5=5")
		}},
		{"parallel-all: only overlapping keys and exclusive tools take turns", mode(agent.ParallelAll), func(p *play) {
			p.answer(asks("", files...))
			p.results("c1.2=2", "c1.1=1", "c1.3=3", "c1.4=4", "c1.5=5")
		}},
		{"parallel-all: what only reads one key need not take turns", mode(agent.ParallelAll), func(p *play) {
			p.answer(asks("", "peek a", "peek a", "put a"))
			p.results("c1.2=2", "c1.1=1", "c1.3=3")
		}},
		{"by-resource: a failing call leaves those beside it alone", mode(agent.ByResource), func(p *play) {
			p.answer(asks("", "peek a", "peek a", "peek b"))
			p.fails("c1.2", event.ErrorTool)
			p.results("c1.3=3", "c1.1=1")
		}},
		{"a failing call does not hold up those behind it", mode(agent.OrderedGroups), func(p *play) {
			p.answer(asks("", "send a", "read b", "send c"))
			p.fails("c1.1", event.ErrorTool)
			p.results("c1.2=B", "c1.3=C")
		}},
		{"parallel-all: an exclusive tool is alone", mode(agent.ParallelAll), func(p *play) {
			p.answer(asks("", "read a", "shell b", "put c", "send d"))
			p.results("c1.1=A", "c1.2=B", "c1.3=C", "c1.4=D")
		}},
		{"serial: one at a time", mode(agent.Serial), func(p *play) {
			p.answer(asks("", "read a", "read b"))
			p.results("c1.1=A", "c1.2=B")
		}},
		{"no more run at once than the limit says", agent.Config{Limits: budget.Limits{MaxParallelTools: 2}}, func(p *play) {
			p.answer(asks("", "read a", "read b", "read c"))
			p.results("c1.2=B", "c1.1=A", "c1.3=C")
		}},
		{"siblings finish before a person is asked", agent.Config{Policy: gated("get"), Dispatch: agent.ParallelAll}, func(p *play) {
			p.answer(asks("", "read a", "get b", "get c", "read d"))
			p.results("c1.1=A", "c1.4=D")
			p.decide("c1.3", event.ApprovalApproved, "")
			p.results("c1.3=C")
			p.decide("c1.2", event.ApprovalApproved, "")
			p.results("c1.2=B")
		}},
		{"a write waits for the gated write before it", agent.Config{Policy: gated("send")}, func(p *play) {
			p.answer(asks("", "send a", "put b"))
			p.decide("c1.1", event.ApprovalRejected, "not now")
			p.results("c1.2=B")
		}},
	})
}

// What two calls touch decides whether they run together. A directory is all that
// is in it, and not what only begins like it.
//
// rows: ALDO-54, HAR-28
func TestCallsTakeTurnsWhereWhatTheyTouchOverlaps(t *testing.T) {
	for name, tt := range map[string]struct {
		first, second string
		together      bool
	}{
		"a directory, then a file in it":         {"put src", "put src/a", false},
		"a file, then the directory around it":   {"put src/a", "put src", false},
		"all files, then one of them":            {"put /", "put /a", false},
		"a name that begins like another":        {"put src", "put src2", true},
		"a name as long as another's parent":     {"put lib", "put src/a", true},
		"who knows what is read, then a file":    {"read x", "put a", false},
		"what only reads, but not beside others": {"scan a", "read b", false},
	} {
		p := newPlay(t, agent.Config{Dispatch: agent.ByResource})
		p.answer(asks("", tt.first, tt.second))
		if together := len(p.runs) == 2; together != tt.together {
			t.Errorf("%s: %v run at first", name, p.running())
		}
	}
}

func TestAnOwnerMayLetAnyNumberOfCallsRunAtOnce(t *testing.T) {
	p := newPlay(t, agent.Config{Limits: budget.Limits{MaxParallelTools: budget.None}})
	p.answer(asks("", slices.Repeat([]string{"read a"}, 50)...))
	if n := len(p.runs); n != 50 {
		t.Errorf("%d of 50 reads run at once", n)
	}
}

// rows: ALDO-51..53, ALDO-55, ALF-61, ALF-62, ALF-71, HAR-3, HAR-4, HAR-7, HAR-15..18, HAR-29, HAR-31, HAR-32, HAR-34
func TestEveryCallGetsOneResult(t *testing.T) {
	capped := agent.Config{MaxTokens: 100}
	spent := func(r llm.Response, output int64) llm.Response { r.Usage.Output = output; return r }
	golden(t, "results", []scenario{
		{"unknown tool, bad arguments, no JSON at all, and a good call beside them", agent.Config{}, func(p *play) {
			p.answer(asks("", "nosuch a", "read bad", `read !{"path":]`, "read d"))
			p.results("c1.4=D")
		}},
		{"tool error, panic, timeout and cancelled are told to the model", agent.Config{Dispatch: agent.ParallelAll}, func(p *play) {
			p.answer(asks("", "read a", "read b", "read c", "read d"))
			for i, kind := range []event.ErrorType{event.ErrorTool, event.ErrorPanic, event.ErrorTimeout, event.ErrorCancelled} {
				p.result([]string{"c1.1", "c1.2", "c1.3", "c1.4"}[i], event.ToolResult{
					IsError: true, ErrorType: kind, Output: agent.ErrorOutput(kind, "it <failed>"),
				})
			}
			sent := p.call.Request.Messages
			for i, kind := range []event.ErrorType{event.ErrorTool, event.ErrorPanic, event.ErrorTimeout, event.ErrorCancelled} {
				got := sent[len(sent)-1].Parts[i].(llm.ToolResult)
				if !got.IsError || got.Output != agent.ErrorOutput(kind, "it <failed>") {
					p.t.Errorf("the model is told of %s with %+v", kind, got)
				}
			}
			p.answer(says("I see"))
		}},
		{"a response cut by length runs none of its calls", agent.Config{}, func(p *play) {
			p.answer(finish(llm.FinishLength, asks("", "read a", `send !{"path":"b`)))
			p.answer(says("smaller"))
		}},
		{"output tokens at the cap are a cut, whatever the finish says", capped, func(p *play) {
			p.answer(spent(asks("", "send a"), 100))
			p.answer(spent(asks("", "send a"), 99))
			p.results("c2.1=sent")
		}},
		{"an estimate at the cap is no cut", capped, func(p *play) {
			r := spent(asks("", "send a"), 100)
			r.Usage.Estimated = true
			p.answer(r)
			p.results("c1.1=sent")
		}},
		{"a whole call beside one that breaks off runs", capped, func(p *play) {
			p.answer(spent(asks("", "send a", `send !{"path":"b`), 7))
			p.results("c1.1=sent")
			p.answer(says("sorry"))
		}},
		{"four cut answers in a row end the run", agent.Config{}, func(p *play) {
			for range 2 {
				p.answer(finish(llm.FinishLength, asks("", "read a")))
			}
			p.answer(finish(llm.FinishLength, asks("", `read !{"path":"b`)))
			p.answer(finish(llm.FinishLength, says("and")))
		}},
		{"a refused answer runs none of its calls and ends the run", agent.Config{}, func(p *play) {
			p.answer(finish(llm.FinishRefusal, asks("I will not", "send a")))
		}},
		{"a failed answer runs none of its calls and ends the run", agent.Config{}, func(p *play) {
			p.answer(finish(llm.FinishFailed, asks("", "send a")))
		}},
		{"an answer without room runs none of its calls and ends the run", agent.Config{}, func(p *play) {
			p.answer(finish(llm.FinishContext, asks("", "send a")))
		}},
		{"an answer with an unreadable call runs none and is asked for once more", agent.Config{}, func(p *play) {
			p.answer(finish(llm.FinishMalformed, asks("", "send a")))
			p.answer(finish(llm.FinishMalformed, says("hm")))
		}},
		{"calls are there to be run even where the finish says end", agent.Config{}, func(p *play) {
			p.answer(finish(llm.FinishEnd, asks("", "read a")))
			p.results("c1.1=A")
		}},
		{"cancelled with one call running and one not started", agent.Config{}, func(p *play) {
			p.answer(asks("", "send a", "send b"))
			p.cancel()
		}},
		{"calls that were running when the process died, by effect class", agent.Config{Dispatch: agent.ParallelAll}, func(p *play) {
			p.answer(asks("", "read a", "put b", "put c"))
			p.crash()
			p.resume()
			p.results("c1.1=A", "c1.2=B", "c1.3=C")
			p.answer(asks("", "send d", "send e"))
			p.crash()
			p.resume()
			p.results("c2.2=E")
		}},
		{"a call that is repeated after a crash counts once", agent.Config{Limits: budget.Limits{MaxToolCalls: 2}}, func(p *play) {
			p.answer(asks("", "read a"))
			p.crash()
			p.resume()
			p.results("c1.1=A")
			p.answer(asks("", "read b"))
			p.results("c2.1=B")
			p.answer(says("two calls"))
		}},
		{"cancelled after a crash, nothing is repeated", agent.Config{Dispatch: agent.ParallelAll}, func(p *play) {
			p.answer(asks("", "read a", "put b", "get c"))
			p.results("c1.3=C")
			p.crash()
			p.command(event.CancelRequested{Reason: "give up"})
			p.resume()
		}},
		{"a call that its owner rejects beforehand says so", agent.Config{Policy: gated("send"), Approve: agent.ApproveDeny}, func(p *play) {
			p.answer(asks("", "send a"))
		}},
		{"a call that a rule denies is not run and says why", agent.Config{Policy: policy.Rules{Rules: []policy.Rule{
			{Decision: event.DecisionDeny, Tool: "send", Reason: `no "mail" today`},
		}}}, func(p *play) {
			p.answer(asks("", "send a", "read b"))
			p.results("c1.2=B")
		}},
	})
}

// A process may die between two decisions about the calls of one answer.
func TestACallThatWasLetThroughCountsBeforeItStarts(t *testing.T) {
	p := newPlay(t, agent.Config{Limits: budget.Limits{MaxToolCalls: 1}})
	p.respond(asks("", "read a", "read b"))
	p.step() // commits what the answer cost
	p.step() // resolves both
	first := p.live.Next()[0].(machine.Record)
	p.apply(first.Data) // lets the first one through
	p.crash()
	p.resume()
	if got := p.running(); len(got) != 1 || got[0] != "c1.1" {
		t.Errorf("running %v", got)
	}
	p.results("c1.1=A")
	if o := p.outcome(); o.Reason != event.BudgetReason("max_tool_calls") {
		t.Errorf("outcome %+v", o)
	}
	p.check()
}

// A call that was tried and is then judged anew, because its facts changed after a
// crash, is not another call of the budget.
func TestACallThatIsJudgedAgainAfterAnAttemptCountsOnce(t *testing.T) {
	p := newPlay(t, agent.Config{Policy: gated("put"), Limits: budget.Limits{MaxToolCalls: 1}})
	p.answer(asks("", "put a"))
	p.decide("c1.1", event.ApprovalApproved, "")
	p.crash()
	p.resume()
	p.edit("c1.1", "put", `{"path":"b"}`, "")
	p.results("c1.1=B")
	p.concludes()
}

func TestACallThatRunsTakesItsPartOfTheLimitOnce(t *testing.T) {
	p := newPlay(t, agent.Config{Policy: gated("send"), Dispatch: agent.ParallelAll, Limits: budget.Limits{MaxToolCalls: 2}})
	p.answer(asks("", "read a", "send b"))
	p.edit("c1.2", "send", `{"path":"c"}`, "") // is judged while c1.1 runs
	p.results("c1.1=A", "c1.2=C")
	p.concludes()
}

// What a tool does is held against what its call was judged by.
func TestAToolIsGivenTheFactsThatItsCallWasJudgedBy(t *testing.T) {
	p := newPlay(t, agent.Config{})
	p.answer(asks("", "edit a"))
	if f := p.runs["c1.1"].Facts; f == nil || len(f.Paths) != 1 || f.Paths[0].Path != "a" {
		t.Errorf("%+v", f)
	}
}
