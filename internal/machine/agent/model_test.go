package agent_test

import (
	"testing"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/llm"
)

func chain(models ...string) []agent.Target {
	var targets []agent.Target
	for _, m := range models {
		targets = append(targets, agent.Target{Model: m, Price: &llm.Price{}})
	}
	return targets
}

// rows: ALF-6, ALF-20, ALF-35, ALF-36, ALF-39..44, HAR-49, HAR-52
func TestRetryAndFallback(t *testing.T) {
	golden(t, "retry", []scenario{
		{"five calls in total, then the run ends", agent.Config{}, func(p *play) {
			for range 4 {
				p.breaks(llm.ClassOverloaded)
				p.after(2 * time.Second)
			}
			p.breaks(llm.ClassOverloaded)
		}},
		{"the owner's bound on retries counts those after the first call", agent.Config{Limits: budget.Limits{MaxModelRetries: new(1)}}, func(p *play) {
			p.breaks(llm.ClassNetwork)
			p.after(time.Second)
			p.breaks(llm.ClassNetwork)
		}},
		{"each failure advances the chain, the end is reused, and the fallback stays", agent.Config{Targets: chain("m/a", "m/b", "m/c")}, func(p *play) {
			p.breaks(llm.ClassOverloaded)
			p.after(time.Second)
			p.breaks(llm.ClassNetwork)
			p.after(time.Second)
			p.breaks(llm.ClassThrottled)
			p.after(time.Second)
			p.answer(asks("", "read a"))
			p.results("c1.1=A")
			p.answer(says("done"))
		}},
		{"a short retry-after waits on the same model, verbatim", agent.Config{Targets: chain("m/a", "m/b")}, func(p *play) {
			p.breaks(llm.ClassThrottled, retryAfter(60*time.Second))
			p.after(59 * time.Second)
			p.after(time.Second)
			p.answer(says("done"))
		}},
		{"a retry-after that is shorter than the backoff is waited verbatim", agent.Config{}, func(p *play) {
			p.breaks(llm.ClassOverloaded)
			p.after(time.Second)
			p.breaks(llm.ClassThrottled, retryAfter(20*time.Millisecond))
			p.after(20 * time.Millisecond)
			p.breaks(llm.ClassThrottled, retryAfter(0))
			p.answer(says("done"))
		}},
		{"a long retry-after advances", agent.Config{Targets: chain("m/a", "m/b")}, func(p *play) {
			p.breaks(llm.ClassThrottled, retryAfter(61*time.Second))
			p.after(time.Second)
			p.answer(says("done"))
		}},
		{"a long retry-after at the end of the chain parks, and a resumed run tries again", agent.Config{}, func(p *play) {
			p.breaks(llm.ClassThrottled, retryAfter(16*24*time.Hour))
			p.now = p.now.Add(16 * 24 * time.Hour)
			p.resume()
			p.answer(says("done"))
		}},
		{"the last model of a chain that is overloaded is waited for as long as it says", agent.Config{}, func(p *play) {
			p.breaks(llm.ClassOverloaded, retryAfter(30*time.Second))
			p.after(30 * time.Second)
			p.answer(says("done"))
		}},
		{"a model that is overloaded is left for the next, whatever it says of later", agent.Config{Targets: chain("m/a", "m/b")}, func(p *play) {
			p.breaks(llm.ClassOverloaded, retryAfter(5*time.Second))
			p.after(time.Second)
			p.answer(says("done"))
		}},
		{"a failure that the run was parked for counts after the resume", agent.Config{Limits: budget.Limits{MaxModelRetries: new(1)}}, func(p *play) {
			p.breaks(llm.ClassThrottled, retryAfter(time.Hour))
			p.now = p.now.Add(time.Hour)
			p.resume()
			p.breaks(llm.ClassNetwork)
		}},
		{"a call that was stopped to park the run is forgiven once, however often the run is resumed", agent.Config{Limits: budget.Limits{MaxModelRetries: new(0)}}, func(p *play) {
			p.breakAndPark()
			p.apply(event.RunResumed{Owner: "other"})
			p.crash()
			p.resume()
			p.breaks(llm.ClassNetwork)
		}},
		{"a call whose process died is made again, also when the next one dies before that", agent.Config{Limits: budget.Limits{MaxModelRetries: new(0)}}, func(p *play) {
			p.crash()
			p.apply(event.RunResumed{Owner: "other"})
			p.step()
			p.resume()
			p.breaks(llm.ClassNetwork)
		}},
		{"a chain that names a model twice goes through it in order", agent.Config{Targets: chain("m/a", "m/b", "m/a", "m/c")}, func(p *play) {
			for range 4 {
				p.breaks(llm.ClassOverloaded)
				p.after(2 * time.Second)
			}
			p.answer(says("done"))
		}},
		{"the fallback stays when its call is lost, stopped or broken off", agent.Config{Targets: chain("m/a", "m/b")}, func(p *play) {
			p.breaks(llm.ClassOverloaded)
			p.after(time.Second)
			p.crash()
			p.resume()
			p.breakAndPark()
			p.resume()
			p.breaks(llm.ClassInterrupted)
			p.after(time.Second)
			p.answer(says("done"))
		}},
		{"a fallback at the end of the chain is waited for, and not left for the first", agent.Config{Targets: chain("m/a", "m/b")}, func(p *play) {
			p.breaks(llm.ClassOverloaded)
			p.after(time.Second)
			p.breaks(llm.ClassThrottled, retryAfter(10*time.Second))
			p.after(10 * time.Second)
			p.breaks(llm.ClassThrottled, retryAfter(time.Hour))
			p.now = p.now.Add(time.Hour)
			p.resume()
			p.answer(says("done"))
		}},
		{"authentication is not retried", agent.Config{Targets: chain("m/a", "m/b")}, func(p *play) {
			p.breaks(llm.ClassAuth, func(f *event.ModelAttemptFailed) { f.Status, f.RequestID = 401, "req_1" })
		}},
		{"a quota is not retried, whatever it says of later", agent.Config{}, func(p *play) {
			p.breaks(llm.ClassQuota, retryAfter(time.Second))
		}},
		{"an invalid request is not sent again", agent.Config{Targets: chain("m/a", "m/b")}, func(p *play) { p.breaks(llm.ClassInvalid) }},
		{"an overflowing request is not sent again", agent.Config{Targets: chain("m/a", "m/b")}, func(p *play) { p.breaks(llm.ClassContextOverflow) }},
		{"a refusal is not retried", agent.Config{}, func(p *play) { p.breaks(llm.ClassRefused) }},
		{"cancelled during the wait", agent.Config{}, func(p *play) {
			p.breaks(llm.ClassOverloaded)
			p.cancel()
		}},
		{"cancelled during the call", agent.Config{}, func(p *play) { p.cancel() }},
		{"an answer that was faster than the cancel does not undo it", agent.Config{}, func(p *play) {
			p.command(event.CancelRequested{})
			p.answer(asks("", "read a"))
		}},
		{"paused during the wait, the run goes on with the wait", agent.Config{}, func(p *play) {
			p.breaks(llm.ClassOverloaded)
			p.command(event.PauseRequested{})
			p.resume()
			p.after(time.Second)
			p.answer(says("done"))
		}},
		{"a wait survives the process", agent.Config{}, func(p *play) {
			p.breaks(llm.ClassThrottled, retryAfter(30*time.Second))
			p.after(10 * time.Second)
			p.crash()
			p.resume()
			p.after(20 * time.Second)
			p.answer(says("done"))
		}},
		{"a call whose process died is made again and costs no retry", agent.Config{Limits: budget.Limits{MaxModelRetries: new(1)}}, func(p *play) {
			p.crash()
			p.resume()
			p.breaks(llm.ClassNetwork)
			p.after(time.Second)
			p.crash()
			p.resume()
			p.breaks(llm.ClassNetwork)
		}},
		{"a call that was stopped to park the run does not count", agent.Config{Limits: budget.Limits{MaxModelRetries: new(0)}}, func(p *play) {
			for range 3 {
				p.breakAndPark()
				p.resume()
			}
			p.answer(says("done"))
		}},
		{"an interruption that nobody asked for counts like any failure", agent.Config{Limits: budget.Limits{MaxModelRetries: new(2)}}, func(p *play) {
			for range 2 {
				p.breaks(llm.ClassInterrupted)
				p.after(time.Second)
			}
			p.breaks(llm.ClassInterrupted)
		}},
	})
}

// rows: ALF-31
func TestARetryStreamsWhereTheFirstAttemptDid(t *testing.T) {
	for _, whole := range []bool{false, true} {
		p := newPlay(t, agent.Config{NoStream: whole, Targets: chain("m/a", "m/b")})
		for attempt := 1; attempt <= 3; attempt++ {
			if p.call.Streamed == whole {
				t.Errorf("attempt %d streams: %t, where whole answers are wanted: %t", attempt, p.call.Streamed, whole)
			}
			p.breaks(llm.ClassOverloaded)
			p.after(2 * time.Second)
		}
	}
}

// breakAndPark does what a driver does that is stopped.
func (p *play) breakAndPark() {
	p.t.Helper()
	c := p.call
	p.call = nil
	p.apply(event.ModelAttemptFailed{Attempt: c.Attempt, Model: c.Target, Class: llm.ClassInterrupted, Message: "stopped"})
	p.command(event.RunParked{Reason: event.ParkInterrupted})
}

// rows: ALF-12
func TestEveryAnswerJoinsTheConversationHoweverItEnded(t *testing.T) {
	settled := func(p *play) { p.results("c1.1=A") }
	none := func(*play) {}
	for _, tt := range []struct {
		name   string
		answer llm.Response
		then   func(*play)
	}{
		{"with a call", asks("looking", "read a"), settled},
		{"with a call, and called an end", finish(llm.FinishEnd, asks("looking", "read a")), settled},
		{"without a call", says("looking"), none},
		{"cut by length", finish(llm.FinishLength, says("looking")), none},
		{"cut by length within its calls", finish(llm.FinishLength, asks("looking", "read a", "read !{")), none},
		{"paused", finish(llm.FinishPause, says("looking")), none},
		{"announcing a call that does not come", finish(llm.FinishTool, says("looking")), none},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlay(t, agent.Config{OnNoToolCall: agent.NoToolCallNudge})
			p.answer(tt.answer)
			tt.then(p)
			if p.call == nil {
				t.Fatalf("no second request:\n%s", p.log.String())
			}
			said := p.call.Request.Messages
			if len(said) < 2 || said[1].Role != llm.RoleAssistant || said[1].Text() != "looking" || len(said[1].Parts) != len(tt.answer.Parts) {
				t.Errorf("the next request does not hold the answer: %+v", said)
			}
		})
	}
}

// rows: ALF-13, HAR-27
func TestOddAnswers(t *testing.T) {
	thought := llm.Response{Finish: llm.FinishEnd, Parts: llm.Parts{llm.Reasoning{Text: "hm"}, llm.Text{Text: " \n"}}}
	golden(t, "answers", []scenario{
		{"an empty answer is nudged once, then ends the run honestly", agent.Config{}, func(p *play) {
			p.answer(thought)
			p.answer(llm.Response{Finish: llm.FinishEnd})
		}},
		{"an empty answer that recovers is forgotten", agent.Config{}, func(p *play) {
			p.answer(thought)
			p.answer(asks("", "read a"))
			p.results("c2.1=A")
			p.answer(thought)
			p.answer(says("done"))
		}},
		{"a paused turn goes on without a word, and its text is one", agent.Config{}, func(p *play) {
			p.answer(finish(llm.FinishPause, says("one, ")))
			p.answer(says("two"))
		}},
		{"pauses are bounded", agent.Config{}, func(p *play) {
			for range 6 {
				p.answer(finish(llm.FinishPause, says(".")))
			}
		}},
		{"a text that was cut goes on where it stopped, and its text is one", agent.Config{}, func(p *play) {
			p.answer(finish(llm.FinishLength, says("one, ")))
			p.answer(says("two"))
		}},
		{"a refusal is told apart, even with the words of a condition", conditionOn("sorry"), func(p *play) {
			p.answer(finish(llm.FinishRefusal, says("sorry")))
		}},
		{"a refusal is explained in the provider's words", agent.Config{}, func(p *play) {
			p.answer(llm.Response{Finish: llm.FinishRefusal, FinishDetail: "It was blocked under the usage policy."})
		}},
		{"a window that is full is told apart", agent.Config{}, func(p *play) { p.answer(finish(llm.FinishContext, says("so far"))) }},
		{"a failed answer is told apart", agent.Config{}, func(p *play) { p.answer(finish(llm.FinishFailed, says("so far"))) }},
		{"a finish that there is not is a failed answer", agent.Config{}, func(p *play) {
			r := finish("stopped_for_tea", asks("", "send a"))
			r.RawFinish = "tea"
			p.answer(r)
		}},
		{"a finish that announces a call and brings none is no final answer", agent.Config{}, func(p *play) {
			p.answer(finish(llm.FinishTool, says("now I call")))
			p.answer(says("done"))
		}},
		{"a malformed answer is asked for once more", agent.Config{}, func(p *play) {
			p.answer(finish(llm.FinishMalformed, llm.Response{}))
			p.answer(finish(llm.FinishMalformed, llm.Response{}))
		}},
		{"an answer without text is not an older one's text", agent.Config{}, func(p *play) {
			p.answer(asks("older", "read a"))
			p.results("c1.1=A")
			p.answer(llm.Response{Finish: llm.FinishEnd, Parts: llm.Parts{llm.Media{MediaType: "image/png", URL: "x"}}})
		}},
	})
}
