package agent_test

import (
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/machine/agent"
)

// The time of a run is that in which somebody drove it, and never less than it was.
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
