package agent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/llm"
)

// die lets n processes in a row die, each with what is under way.
func (p *play) die(n int) {
	p.t.Helper()
	for range n {
		p.crash()
		p.resume()
	}
}

// Processes that die during a model call cost none of its retries. So many in a row that
// the call may be the cause end the run.
func TestDeathsDuringAModelCall(t *testing.T) {
	const most = machine.MaxDeaths
	for name, tt := range map[string]struct {
		retries int
		play    func(*play)
		reason  event.Reason
		error   string
		calls   int
	}{
		"as many as are allowed": {0, func(p *play) {
			p.die(most - 1)
			p.answer(says("done"))
		}, event.ReasonFinalAnswer, "", most},
		"one more": {9, func(p *play) {
			p.die(most)
		}, event.ReasonModelError, fmt.Sprintf("the process stopped while the call was in flight, %d times in a row", most), most},
		"an answer between": {0, func(p *play) {
			p.die(most - 1)
			p.answer(asks("", "read a"))
			p.results("c1.1=A")
			p.die(most - 1)
			p.answer(says("done"))
		}, event.ReasonFinalAnswer, "", 2 * most},
		"a failure of the provider between": {1, func(p *play) {
			p.die(most - 1)
			p.breaks(llm.ClassOverloaded)
			p.after(time.Second)
			p.die(most - 1)
			p.answer(says("done"))
		}, event.ReasonFinalAnswer, "", 2 * most},
		"a failure of the provider after its retries": {0, func(p *play) {
			p.die(most - 1)
			p.breaks(llm.ClassOverloaded)
		}, event.ReasonModelError, "it broke", most},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, agent.Config{Limits: budget.Limits{MaxModelRetries: &tt.retries}})
			tt.play(p)
			o := p.live.State().Outcome
			if o == nil || o.Reason != tt.reason || (o.Error == nil) != (tt.error == "") || o.Error != nil && o.Error.Message != tt.error {
				t.Fatalf("the run ended as %+v", o)
			}
			if n := p.live.Spent().ModelCalls; n != tt.calls {
				t.Errorf("%d calls, want %d", n, tt.calls)
			}
		})
	}
}

// A call that may be repeated is in doubt after so many deaths in a row that it may be
// their cause, and the run goes on.
func TestDeathsDuringAToolCall(t *testing.T) {
	const most = machine.MaxDeaths
	keeps := func(p *play, until *time.Time) {
		p.apply(event.ToolTask{CallID: "c1.1", Attempt: p.runs["c1.1"].Attempt, Task: []byte(`"t"`), Until: until})
	}
	for name, tt := range map[string]struct {
		play     func(*play)
		attempts int
		doubt    bool
	}{
		"as many as are allowed": {func(p *play) {
			p.die(most - 1)
			p.results("c1.1=A")
		}, most, false},
		"one more": {func(p *play) { p.die(most) }, most, true},
		"a failure between": {func(p *play) {
			p.die(most - 1)
			p.flops("c1.1")
			p.after(time.Second)
			p.die(most - 1)
			p.results("c1.1=A")
		}, 2 * most, false},
		"one more with a task": {func(p *play) {
			keeps(p, nil)
			p.die(most)
		}, most, true},
		"a task that was asked about between": {func(p *play) {
			keeps(p, nil)
			p.die(most - 1)
			at := p.now.Add(time.Second)
			keeps(p, &at)
			delete(p.runs, "c1.1")
			p.after(time.Second)
			p.die(most - 1)
			p.results("c1.1=A")
		}, 2 * most, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, agent.Config{})
			p.answer(asks("", "read a"))
			tt.play(p)
			result := p.last(event.TypeToolResult).(event.ToolResult)
			if doubt := result.ErrorType == event.ErrorInDoubt; doubt != tt.doubt || doubt && !strings.Contains(result.Output, fmt.Sprintf("that happened %d times in a row", most)) {
				t.Errorf("the result is %+v", result)
			}
			if last := p.last(event.TypeToolStarted).(event.ToolStarted); last.Attempt != tt.attempts {
				t.Errorf("%d attempts, want %d", last.Attempt, tt.attempts)
			}
			p.answer(says("done"))
			if o := p.live.State().Outcome; o == nil || o.Reason != event.ReasonFinalAnswer {
				t.Errorf("the run ended as %+v", o)
			}
		})
	}
}
