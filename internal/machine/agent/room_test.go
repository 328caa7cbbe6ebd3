package agent_test

import (
	"testing"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/compact"
	"github.com/pawlrun/pawl/llm"
)

func told(room llm.Room) func(*event.ModelAttemptFailed) {
	return func(d *event.ModelAttemptFailed) { d.Room = &room }
}

func inWindow(window int) agent.Config {
	return agent.Config{MaxTokens: 8192, Targets: []agent.Target{{Model: "m/a", ContextWindow: window}}}
}

func TestTheCapLeavesRoomForTheInput(t *testing.T) {
	p := newPlay(t, inWindow(4096))
	if cap := p.call.Request.MaxTokens; cap >= 4096 || cap < 3000 {
		t.Errorf("the first cap is %d", cap)
	}
	p.answer(used(2000, 100, asks("", "read a")))
	p.result("c1.1", event.ToolResult{Output: "text"})
	if cap := p.call.Request.MaxTokens; cap > 4096-2100-64 || cap < 1500 {
		t.Errorf("the cap beside 2,100 tokens is %d", cap)
	}
	p.answer(says("done"))
	p.check()
	wide := newPlay(t, inWindow(200_000))
	if cap := wide.call.Request.MaxTokens; cap != 8192 {
		t.Errorf("in a wide window the cap is %d", cap)
	}
}

func TestAnOverflowWhoseInputFitsLowersTheCapFirst(t *testing.T) {
	const overflow = llm.ClassContextOverflow
	for name, c := range map[string]struct {
		class llm.Class
		room  llm.Room
		// most is the largest cap of the call that is made again.
		most int
	}{
		"the input is told":          {overflow, llm.Room{Window: 4096, Input: 808}, 4096 - 808},
		"input and cap are told":     {overflow, llm.Room{Window: 6000, Requested: 9000}, 6000 - 808},
		"only the window is told":    {overflow, llm.Room{Window: 32_000}, 4096},
		"the largest cap is told":    {llm.ClassInvalid, llm.Room{Output: 4096}, 4096},
		"what can be paid is told":   {llm.ClassQuota, llm.Room{Output: 2000}, 2000},
		"the window is the smallest": {overflow, llm.Room{Window: 2048, Input: 1500}, 548},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, inWindow(0))
			p.breaks(c.class, told(c.room))
			if p.call == nil || p.call.Attempt != 2 || len(p.compressed()) > 0 {
				t.Fatalf("it is not made again as it is:\n%s", p.log.String())
			}
			if cap := p.call.Request.MaxTokens; cap > c.most || cap < min(c.most/2, 256) {
				t.Errorf("the cap is %d, and at most %d fit", cap, c.most)
			}
			p.crash()
			p.resume()
			again := p.call.Request.MaxTokens
			if again > c.most {
				t.Errorf("after a resume the cap is %d", again)
			}
			p.answer(asks("", "read a"))
			p.result("c1.1", event.ToolResult{Output: "text"})
			if cap := p.call.Request.MaxTokens; c.room.Window > 0 && cap >= int(c.room.Window) || c.room.Output > 0 && cap > int(c.room.Output) {
				t.Errorf("the next cycle asks for %d", cap)
			}
			p.answer(says("done"))
			p.check()
		})
	}
}

func TestAnOverflowWhoseInputIsTooLongCompacts(t *testing.T) {
	p := newPlay(t, agent.Config{MaxTokens: 8192, Compact: compact.Settings{Strategy: compact.RollingWindow}})
	p.work(12)
	p.breaks(llm.ClassContextOverflow, told(llm.Room{Window: 4096, Input: 5000}))
	if d := p.compressed(); len(d) != 1 || p.call == nil || p.call.Request.MaxTokens >= 4096 {
		t.Fatalf("%d compactions:\n%s", len(d), p.log.String())
	}
	p.answer(says("done"))
	p.check()
}

// A call that was refused is never made again with the same bytes.
func TestARefusedCapIsNotSentAgain(t *testing.T) {
	for name, c := range map[string]struct {
		class llm.Class
		room  llm.Room
	}{
		"nothing smaller fits":   {llm.ClassContextOverflow, llm.Room{Window: 4096, Input: 4090}},
		"the cap is not the one": {llm.ClassInvalid, llm.Room{Output: 9000}},
		"nothing is told":        {llm.ClassInvalid, llm.Room{}},
	} {
		p := newPlay(t, inWindow(0))
		p.breaks(c.class, told(c.room))
		if o := p.outcome(); o.Reason != event.ReasonModelError || o.Error.Class != string(c.class) {
			t.Errorf("%s: %+v", name, o)
		}
	}
	p := newPlay(t, inWindow(0))
	caps := []int{p.call.Request.MaxTokens}
	for p.call != nil {
		p.breaks(llm.ClassContextOverflow, told(llm.Room{Window: 16_000}))
		if p.call != nil {
			caps = append(caps, p.call.Request.MaxTokens)
		}
	}
	for i := range caps[1:] {
		if caps[i+1] >= caps[i] {
			t.Errorf("the caps are %v", caps)
		}
	}
	if o := p.outcome(); o.Reason != event.ReasonModelError || len(caps) < 2 || len(caps) > budget.DefaultModelCalls {
		t.Errorf("%d calls, %+v", len(caps), o)
	}
}

func TestASummaryWhoseCapIsTooLargeIsAskedForAgain(t *testing.T) {
	p := newPlay(t, agent.Config{MaxTokens: 8192, Compact: compact.Settings{Strategy: compact.SummarizeOlder}})
	p.work(40)
	p.breaks(llm.ClassContextOverflow)
	if p.call == nil || p.call.Purpose != event.PurposeSummary {
		t.Fatalf("no summary:\n%s", p.log.String())
	}
	p.breaks(llm.ClassContextOverflow, told(llm.Room{Window: 20_000, Input: 15_000}))
	if p.call == nil || p.call.Purpose != event.PurposeSummary || p.call.Attempt != 2 || p.call.Request.MaxTokens > 5000 {
		t.Fatalf("the summary is not asked for again:\n%s", p.log.String())
	}
	p.answer(says("what happened"))
	if len(p.compressed()) != 1 {
		t.Error("the summary is not used")
	}
	p.answer(says("done"))
	p.check()
}

func TestAnAdaptedRequestIsMadeAgain(t *testing.T) {
	adapted := func(d *event.ModelAttemptFailed) { d.Adapted = true }
	p := newPlay(t, agent.Config{Targets: chain("m/a", "m/b")})
	p.breaks(llm.ClassInvalid, adapted)
	if p.call == nil || p.call.Target != "m/a" || p.call.Attempt != 2 {
		t.Fatalf("it is not made again:\n%s", p.log.String())
	}
	p.breaks(llm.ClassInvalid)
	if o := p.outcome(); o.Reason != event.ReasonModelError {
		t.Errorf("%+v", o)
	}
}
