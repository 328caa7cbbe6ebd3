package agent_test

import (
	"testing"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/agent"
)

// The time of a run is the time in which it was driven, and never decreases.
func TestOnlyTimeInWhichTheRunWasGoingIsItsOwn(t *testing.T) {
	message := event.InputReceived{Text: "be quick"}
	parked := func(p *play) {
		p.answer(asks("", "read a"))
		p.apply(event.PauseRequested{})
		p.results("c1.1=A")
	}
	for name, tt := range map[string]struct {
		play func(p *play)
		want time.Duration
	}{
		"what passes between two events": {func(p *play) {
			p.now = p.now.Add(2 * time.Second)
			p.apply(message)
		}, 2 * time.Second},
		"not what the machine slept": {func(p *play) {
			p.now, p.skipped = p.now.Add(time.Hour+time.Second), time.Hour
			p.apply(message)
		}, time.Second},
		"not what the clock was set back": {func(p *play) {
			p.now = p.now.Add(3 * time.Second)
			p.apply(message)
			p.now = p.now.Add(-time.Hour)
			p.apply(message)
		}, 3 * time.Second},
		"not that before somebody took it up after a crash": {func(p *play) {
			p.crash()
			p.now = p.now.Add(time.Hour)
			p.resume()
		}, 0},
		"not that of a pause, also where somebody writes meanwhile": {func(p *play) {
			parked(p)
			p.now = p.now.Add(time.Hour)
			p.apply(message)
			p.now = p.now.Add(time.Hour)
			p.resume()
		}, 0},
		"and again what passes after a pause": {func(p *play) {
			parked(p)
			p.now = p.now.Add(time.Hour)
			p.resume()
			p.now = p.now.Add(time.Second)
			p.apply(message)
		}, time.Second},
	} {
		p := newPlay(t, agent.Config{})
		tt.play(p)
		if s := p.live.Spent(); s.Active != tt.want {
			t.Errorf("%s: it is %s, want %s", name, s.Active, tt.want)
		}
	}
}

// When a limit on time is used up is known ahead, unless the run waits for a
// person, or has nothing before it but to tell of its end.
func TestTheDeadlineOfARunIsThatOfItsLimitOnTime(t *testing.T) {
	limits := budget.Limits{MaxWallSeconds: 10}
	left := func(p *play) time.Duration { return p.live.State().Deadline.At.Sub(p.now) }

	p := newPlay(t, agent.Config{Limits: limits})
	if d := p.live.State().Deadline; left(p) != 10*time.Second || d.Setting != "max_wall_time_seconds" || d.Asks {
		t.Errorf("%+v", d)
	}
	p.now = p.now.Add(20 * time.Second)
	p.apply(event.InputReceived{Text: "be quick"})
	if left(p) != 0 {
		t.Errorf("once it has passed, %s are left", left(p))
	}

	p = newPlay(t, agent.Config{Limits: limits, OnBudget: map[string]agent.OnBudget{"max_wall_time_seconds": agent.BudgetAsk}})
	if !p.live.State().Deadline.Asks {
		t.Error("where the owner is asked it does not say so")
	}

	p = newPlay(t, agent.Config{Limits: limits, Dispatch: agent.ParallelAll})
	p.hires()
	p.apply(event.ChildWaiting{CallID: "c1.1", Child: "k1", Waiting: true})
	if left(p) != 10*time.Second {
		t.Errorf("while a child goes, %s are left", left(p))
	}
	p.apply(event.ChildWaiting{CallID: "c1.2", Child: "k2", Waiting: true})
	if d := p.live.State().Deadline; !d.At.IsZero() {
		t.Errorf("while all wait for a person it is %+v", d)
	}

	cfg := hooked(observer(event.HookAfterRun, "tell"))
	cfg.Limits = limits
	p = newPlay(t, cfg)
	p.answer(says("done"))
	if d := p.live.State().Deadline; len(p.hooks) != 1 || !d.At.IsZero() {
		t.Errorf("at the end of the run it is %+v", d)
	}
}
