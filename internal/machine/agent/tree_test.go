package agent_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/compact"
	"github.com/pawlrun/pawl/stop"
)

// futile edits one file after the other, and nothing comes of it.
func futile(cycle int) []string {
	return []string{fmt.Sprint("edit f", cycle), fmt.Sprint("test ", cycle)}
}

func unchanged(cycle int, tool string) event.ToolResult {
	if tool == "edit" {
		return event.ToolResult{Output: fmt.Sprint("wrote f", cycle), Tree: "t"}
	}
	return event.ToolResult{Output: fmt.Sprint("FAIL after ", cycle), Tree: "t"}
}

func TestARunWhoseEditsChangeNothingIsNudgedAndThenStuck(t *testing.T) {
	p := newPlay(t, agent.Config{})
	p.cycles(40, futile, unchanged)
	p.check()
	o := p.outcome()
	if o.Reason != event.ReasonStuck || o.Kind != string(stop.UnchangedTree) || o.Cycles != 18 || o.OK || o.NextSafeAction == "" {
		t.Errorf("%+v", o)
	}
	if want := []event.StuckAction{event.StuckNudge, event.StuckBlock, event.StuckBlock, event.StuckStop}; !slices.Equal(p.stuckActions(), want) {
		t.Errorf("actions %v", p.stuckActions())
	}
}

func TestARunWhoseTreeGetsOnIsNotStuck(t *testing.T) {
	p := newPlay(t, agent.Config{})
	p.cycles(40, futile, func(cycle int, tool string) event.ToolResult {
		d := unchanged(cycle, tool)
		if cycle%8 == 0 {
			d.Tree = fmt.Sprint(cycle)
		}
		return d
	})
	if actions := p.stuckActions(); len(actions) > 0 {
		t.Errorf("actions %v\n%s", actions, p.log.String())
	}
}

// What is counted survives whatever makes the run or its history begin anew.
func TestTheWatchOverRepetitionSurvivesCompactionAndResume(t *testing.T) {
	failing := func(int, string) event.ToolResult {
		return event.ToolResult{Output: strings.Repeat("no such file ", 10), IsError: true, ErrorType: event.ErrorNotFound}
	}
	pair := func(cycle int) []string { return []string{[]string{"read a", "read b"}[cycle%2]} }
	for pattern, c := range map[stop.Pattern]struct {
		ask    func(int) []string
		output func(int, string) event.ToolResult
		cycles int
	}{
		stop.SameCall:         {always("read a"), ok, 5},
		stop.AlternatingCalls: {pair, ok, 10},
		stop.SameError:        {func(cycle int) []string { return []string{fmt.Sprint("read ", cycle)} }, failing, 11},
		stop.UnchangedTree:    {futile, unchanged, 18},
	} {
		t.Run(string(pattern), func(t *testing.T) {
			cfg := windowed(compact.Settings{Strategy: compact.RollingWindow, KeepTurns: 1})
			cfg.Compact.Window = 280
			p := newPlay(t, cfg)
			for p.live.State().Outcome == nil && p.cycle < 40 {
				p.cycles(1, c.ask, c.output)
				if p.live.State().Outcome == nil {
					p.crash()
					p.resume()
				}
			}
			if o := p.outcome(); o.Reason != event.ReasonStuck || o.Kind != string(pattern) || o.Cycles != c.cycles {
				t.Errorf("ended with %s %s after %d cycles\n%s", o.Reason, o.Kind, o.Cycles, p.log.String())
			}
			if pattern != stop.SameCall && len(p.compressed()) == 0 {
				t.Error("nothing was compacted")
			}
		})
	}
}
