package compare

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/view"
)

// Calls of one answer are done in any order, and one may run with arguments that
// a person gave it.
func TestDiffShowsEachResultUnderItsCall(t *testing.T) {
	var d view.Digest
	for _, data := range []event.Data{
		event.CycleStart{Cycle: 1},
		event.ToolCall{CallID: "r-1-1", Tool: "slow"},
		event.ToolCall{CallID: "r-1-2", Tool: "quick"},
		event.ToolResult{CallID: "r-1-2", Output: "of quick"},
		event.ToolCall{CallID: "r-1-1", Tool: "slow", EditedBy: "ada"},
		event.ToolResult{CallID: "r-1-1", Output: "of slow"},
		event.ToolResult{CallID: "r-1-3", Tool: "late", Output: "cut short"},
	} {
		d.Add(&event.Event{Data: data})
	}
	shown := sidesOf(d.Cycles(), time.Time{})[0]
	if diff := cmp.Diff([]string{"slow  (edited by ada)", "quick ", "late "}, shown.Calls); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"of slow", "of quick", "cut short"}, shown.Results); diff != "" {
		t.Error(diff)
	}
}

// Which call is done first, and when a message comes in the cycle, is luck.
func TestDiffComparesWhatWasDoneNotWhen(t *testing.T) {
	order := func(events ...event.Data) []string {
		var s side
		for _, d := range events {
			s.pass(d)
			s.add(plainEvent{event: &event.Event{Data: d}})
		}
		s.settle()
		var names []string
		for _, of := range s.events {
			names = append(names, string(of.event.Type())+" "+event.CallOf(of.event.Data))
		}
		return names
	}
	one, two := event.ToolCall{CallID: "r-1-1"}, event.ToolCall{CallID: "r-1-2"}
	oneDone, twoDone := event.ToolResult{CallID: "r-1-1"}, event.ToolResult{CallID: "r-1-2"}
	want := order(event.CycleStart{}, one, two, oneDone, twoDone, event.ToolResults{}, event.InputReceived{}, event.CycleStart{})
	if diff := cmp.Diff(want, order(event.CycleStart{}, event.InputReceived{}, one, two, twoDone, oneDone, event.ToolResults{}, event.CycleStart{})); diff != "" {
		t.Error(diff)
	}
	if later := order(event.CycleStart{}, one, two, oneDone, twoDone, event.ToolResults{}, event.CycleStart{}, event.InputReceived{}, event.RunTerminatedBy{}); slices.Equal(want, later) {
		t.Error("a message of the next cycle stands where one of this cycle does")
	}
}

// What two runs never share is not compared, and nothing is made up in its place.
func TestDiffShowsNoAttemptAndNoTimeThatThereWasNot(t *testing.T) {
	for want, d := range map[string]event.Data{
		`{"cycle":1,"textLength":4,`:                                     event.ModelResponse{Cycle: 1, Attempt: 2, TextLength: 4},
		`{"callId":"r-1-1","kind":"","digest":"","approver":"","policy"`: event.ToolApprovalResolved{CallID: "r-1-1", At: time.Unix(1, 0), Policy: "p"},
	} {
		body, err := encoded(1, event.Decided(d))
		if shown := string(plainEvent{plain: body}.data()); err != nil || !strings.HasPrefix(shown, want) || !json.Valid([]byte(shown)) {
			t.Errorf("%s: %s, %v", d.EventType(), shown, err)
		}
	}
}

// Which of the steps under way is done first is luck, and the end of the run stays last.
func TestDiffComparesWhatStepsDidNotWhichWasFirst(t *testing.T) {
	ranks := map[string]int{}
	order := func(events ...event.Data) (names []string) {
		s := side{}
		for _, d := range events {
			s.add(plainEvent{event: &event.Event{Data: d}})
		}
		s.bySteps(ranks)
		for _, of := range s.events {
			name := string(of.event.Type())
			if about, is := of.event.Data.(event.Stepped); is {
				name += " " + about.OfStep()
			}
			names = append(names, name)
		}
		return names
	}
	item := func(step string, index int) []event.Data {
		return []event.Data{event.StepFinished{Step: fmt.Sprintf("%s[%d].do", step, index)}, event.Iteration{Step: step, Index: index}}
	}
	one, two := item("each", 0), item("each", 1)
	first, last := event.RunStarted{}, event.RunTerminatedBy{}
	want := order(first, one[0], two[0], one[1], two[1], event.StepFinished{Step: "each"}, last)
	if got := order(first, two[0], two[1], one[0], one[1], event.StepFinished{Step: "each"}, last); !slices.Equal(got, want) || got[0] != "run.started" || got[6] != "run.terminated_by" {
		t.Errorf("%q is compared with %q", got, want)
	}
}
