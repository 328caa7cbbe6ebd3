package agent_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/stop"
)

// stuckActions are what was done about repetition, in order.
func (p *play) stuckActions() []event.StuckAction {
	p.t.Helper()
	var actions []event.StuckAction
	for _, body := range p.journal {
		e, err := event.Decode(body)
		if err != nil {
			p.t.Fatal(err)
		}
		if d, ok := e.Data.(event.Stuck); ok {
			actions = append(actions, d.Action)
		}
	}
	return actions
}

// cycles plays n cycles, or as many as the run has: what each asks for, and
// what every call that runs gives.
func (p *play) cycles(n int, ask func(cycle int) []string, output func(cycle int, tool string) event.ToolResult) {
	p.t.Helper()
	for range n {
		if p.live.State().Outcome != nil {
			return
		}
		p.answer(asks("", ask(p.cycle)...))
		for cycle := p.cycle; len(p.runs) > 0 && p.cycle == cycle; {
			id := p.running()[0]
			p.result(id, output(cycle, p.runs[id].Tool))
		}
	}
}

func always(calls ...string) func(int) []string { return func(int) []string { return calls } }

func ok(int, string) event.ToolResult { return event.ToolResult{Output: "ok"} }

func TestRepetitionIsNudgedThenBlockedThenEndsTheRun(t *testing.T) {
	golden(t, "stuck", []scenario{
		{"one call, one result", agent.Config{}, func(p *play) { p.cycles(9, always("read a"), ok) }},
		{"one call, any error", agent.Config{}, func(p *play) {
			p.cycles(9, always("read a"), func(cycle int, _ string) event.ToolResult {
				return event.ToolResult{Output: fmt.Sprint("trouble ", cycle), IsError: true, ErrorType: event.ErrorTool}
			})
		}},
		{"the block tells the model, which takes another way", agent.Config{}, func(p *play) {
			p.cycles(4, always("read a"), ok)
			p.cycles(1, always("read b"), ok)
			p.cycles(1, always("read a"), ok)
			p.answer(says("done"))
		}},
		{"failures of one kind: the tool is blocked once, then the run ends", agent.Config{}, func(p *play) {
			p.cycles(20, func(cycle int) []string { return []string{fmt.Sprint("read ", cycle)} }, func(int, string) event.ToolResult {
				return event.ToolResult{Output: "no such file", IsError: true, ErrorType: event.ErrorNotFound}
			})
		}},
		{"edits to no effect: edits and commands are blocked once, looks at files go on", agent.Config{}, func(p *play) {
			p.cycles(20, func(cycle int) []string { return []string{fmt.Sprint("get ", cycle), fmt.Sprint("edit ", cycle)} }, func(cycle int, tool string) event.ToolResult {
				if tool == "get" {
					return event.ToolResult{Output: fmt.Sprint(cycle)}
				}
				return event.ToolResult{Output: fmt.Sprint("wrote ", cycle), Tree: "t"}
			})
		}},
		{"what a blocked call would have asked is not asked", agent.Config{}, func(p *play) {
			p.cycles(9, always("read a", "read a", "read a"), ok)
		}},
	})
}

// Two calls in turn are a circle, too; so are errors of one kind, and words
// without a deed. Each takes as long as its ladder says.
func TestEachCircleEndsWhereItsLadderSays(t *testing.T) {
	nudging := agent.Config{OnNoToolCall: agent.NoToolCallNudge, MaxNudges: budget.None}
	nudging.Limits.MaxCycles = 40
	failing := func(_ int, _ string) event.ToolResult {
		return event.ToolResult{Output: "no such file", IsError: true, ErrorType: event.ErrorNotFound}
	}
	for name, c := range map[string]struct {
		cfg     agent.Config
		play    func(p *play)
		pattern stop.Pattern
		cycles  int
	}{
		"two calls in turn": {play: func(p *play) {
			p.cycles(40, func(cycle int) []string { return []string{[]string{"read a", "read b"}[cycle%2]} }, ok)
		}, pattern: stop.AlternatingCalls, cycles: 10},
		"the same two calls in every answer": {play: func(p *play) {
			p.cycles(40, always("read a", "read b"), ok)
		}, pattern: stop.AlternatingCalls, cycles: 5},
		"errors of one kind": {play: func(p *play) {
			p.cycles(40, func(cycle int) []string { return []string{fmt.Sprint("read ", cycle)} }, failing)
		}, pattern: stop.SameError, cycles: 11},
		"words without a deed": {cfg: nudging, play: func(p *play) {
			for range 40 {
				if p.live.State().Outcome == nil {
					p.answer(says("I am  thinking."))
				}
			}
		}, pattern: stop.Monologue, cycles: 12},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, c.cfg)
			c.play(p)
			p.check()
			o := p.outcome()
			if o.Reason != event.ReasonStuck || o.Kind != string(c.pattern) || o.Cycles != c.cycles {
				t.Errorf("ended with %s %s after %d cycles, want %s after %d", o.Reason, o.Kind, o.Cycles, c.pattern, c.cycles)
			}
			if actions := p.stuckActions(); actions[0] != event.StuckNudge || actions[len(actions)-1] != event.StuckStop {
				t.Errorf("actions %v", actions)
			}
		})
	}
}

func TestHonestWorkIsNotTakenForACircle(t *testing.T) {
	for name, c := range map[string]struct {
		ask    func(cycle int) []string
		output func(cycle int, tool string) event.ToolResult
	}{
		"a call whose result changes": {always("read a"), func(cycle int, _ string) event.ToolResult {
			return event.ToolResult{Output: fmt.Sprint(cycle)}
		}},
		"edits between equal test runs": {func(cycle int) []string {
			return []string{fmt.Sprint("put v", cycle), "shell test"}
		}, ok},
		"a poll": {always("poll it"), ok},
		"an error now and then": {always("read a"), func(cycle int, _ string) event.ToolResult {
			return event.ToolResult{Output: fmt.Sprint("same, ", cycle/2), IsError: cycle%2 == 0, ErrorType: event.ErrorTool}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, agent.Config{})
			p.cycles(25, c.ask, c.output)
			if actions := p.stuckActions(); len(actions) > 0 {
				t.Errorf("was taken for a circle: %v\n%s", actions, p.log.String())
			}
		})
	}
}

// What was repeated before a crash counts after it.
func TestRepetitionIsRememberedAcrossACrash(t *testing.T) {
	p := newPlay(t, agent.Config{})
	p.cycles(4, always("read a"), ok)
	p.crash()
	p.resume()
	p.cycles(3, always("read a"), ok)
	if want := []event.StuckAction{event.StuckNudge, event.StuckBlock, event.StuckBlock, event.StuckStop}; !slices.Equal(p.stuckActions(), want) {
		t.Errorf("actions %v, want %v\n%s", p.stuckActions(), want, p.log.String())
	}
}

// To poll is no way out of a circle, and none into one.
func TestAPollRunsWhileTheModelIsWarned(t *testing.T) {
	p := newPlay(t, agent.Config{})
	p.cycles(3, always("read a"), ok)
	p.answer(asks("", "poll it"))
	p.results("c4.1=not yet")
	p.answer(asks("", "poll it", "read a"))
	p.results("c5.1=not yet")
	if want := []event.StuckAction{event.StuckNudge, event.StuckBlock}; !slices.Equal(p.stuckActions(), want) {
		t.Errorf("actions %v, want %v\n%s", p.stuckActions(), want, p.log.String())
	}
	p.check()
}
