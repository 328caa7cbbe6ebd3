package view_test

import (
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/view"
)

func TestTimelineHasABarForEachAttemptAndWait(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var line view.Timeline
	for i, at := range []struct {
		second int
		data   event.Data
	}{
		{0, event.CycleStart{Cycle: 1}},
		{0, event.ModelRequested{Attempt: 1, Model: "m"}}, {2, event.ModelAttemptFailed{Attempt: 1}},
		{3, event.ModelRequested{Attempt: 2, Model: "m"}}, {5, event.ModelResponse{}},
		{5, event.ToolCall{CallID: "a", Tool: "fs.read"}}, {5, event.ToolCall{CallID: "b", Tool: "fs.write"}},
		{5, event.ToolStarted{CallID: "a", Attempt: 1}}, {6, event.ToolResult{CallID: "a"}},
		{5, event.ToolPendingApproval{CallID: "b", Tool: "fs.write"}}, {65, event.ToolApprovalResolved{CallID: "b"}},
		{65, event.ToolStarted{CallID: "b", Attempt: 1}}, {66, event.ToolResult{CallID: "b", IsError: true}},
		{66, event.ChildStarted{Child: "c", Step: "s"}}, {67, event.ChildParked{Child: "c"}}, {70, event.ChildFinished{Child: "c"}},
		{70, event.CycleStart{Cycle: 2}}, {70, event.ModelRequested{Attempt: 1, Model: "m"}},
	} {
		e := event.Event{Seq: int64(i + 1), Time: began.Add(time.Duration(at.second) * time.Second), Data: at.data, Cycle: 1}
		line.Add(&e)
	}
	line.MarkCritical()
	type bar struct {
		lane             view.Lane
		entry            string
		attempt          int
		from, to         float64
		failed, critical bool
	}
	want := []bar{
		{view.ModelLane, "1", 0, 0, 2, true, true}, {view.ModelLane, "1", 2, 3, 5, false, true},
		{view.ToolLane, "6", 0, 5, 6, false, false},
		{view.PersonLane, "10", 0, 5, 65, false, true}, {view.ToolLane, "7", 0, 65, 66, true, true},
		{view.ChildLane, "14", 0, 66, 70, false, true}, {view.PersonLane, "", 0, 67, 70, false, false},
		{view.ModelLane, "17", 0, 70, -1, false, true},
	}
	if len(line.Bars) != len(want) {
		t.Fatalf("%d bars: %+v", len(line.Bars), line.Bars)
	}
	for i, b := range line.Bars {
		got := bar{b.Lane, b.Entry, b.Attempt, b.Start.Sub(began).Seconds(), -1, b.Failed, b.Critical}
		if b.End != nil {
			got.to = b.End.Sub(began).Seconds()
		}
		if got != want[i] {
			t.Errorf("bar %d: %+v, want %+v", i, got, want[i])
		}
	}
	// The end of the run ends what goes on.
	line.Add(&event.Event{Seq: 99, Time: began.Add(80 * time.Second), Data: event.RunCompleted{}})
	if last := line.Bars[len(line.Bars)-1]; last.End == nil || last.End.Sub(began) != 80*time.Second {
		t.Errorf("%+v", last)
	}
}

func TestTimelineTypesAreThoseThatItReads(t *testing.T) {
	reads := map[event.Type]bool{}
	for _, kind := range view.TimelineTypes() {
		reads[kind] = true
	}
	for _, d := range []event.Data{event.ToolPendingApproval{}, event.ToolApprovalResolved{}, event.ReviewRequested{}, event.GoalBlocked{}, event.ChildWaiting{}, event.ToolInputRequired{}} {
		if !reads[d.EventType()] {
			t.Errorf("%s is not read", d.EventType())
		}
	}
	if reads["budget.reserved"] || reads["hook.result"] {
		t.Error("too much is read")
	}
}
