package main

import (
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
)

// Calls of one answer are done in any order, and one may run with arguments that
// a person gave it.
func TestDiffShowsEachResultUnderItsCall(t *testing.T) {
	var s side
	for _, data := range []event.Data{
		event.CycleStart{Cycle: 1},
		event.ToolCall{CallID: "r-1-1", Tool: "slow"},
		event.ToolCall{CallID: "r-1-2", Tool: "quick"},
		event.ToolResult{CallID: "r-1-2", Output: "of quick"},
		event.ToolCall{CallID: "r-1-1", Tool: "slow", EditedBy: "ada"},
		event.ToolResult{CallID: "r-1-1", Output: "of slow"},
		event.ToolResult{CallID: "r-1-3", Tool: "late", Output: "cut short"},
	} {
		s.add(&event.Event{Data: data})
	}
	var b strings.Builder
	s.cycles[0].print(&b, "r")
	want := "    → slow  (edited by ada)\n      of slow\n    → quick\n      of quick\n    → late\n      cut short\n"
	if _, shown, _ := strings.Cut(b.String(), "\n"); shown != want {
		t.Errorf("shown:\n%s\nwanted:\n%s", shown, want)
	}
}

// No tool of a replay reaches out, so what the run's calls reached is no difference.
func TestDiffOfAReplayLeavesOutWhatTheRunReached(t *testing.T) {
	reached := event.ToolResult{CallID: "r-1-1", Output: "fetched", Reached: []event.Reach{{}}}
	if d, ok := answered(reached).(event.ToolResult); !ok || len(d.Reached) > 0 || d.Output != "fetched" {
		t.Errorf("compared is %+v", d)
	}
}
