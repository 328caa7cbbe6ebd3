package cli

import (
	"encoding/json"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/view"
)

// stepAfter finds the next step after these events of a run.
func stepAfter(data ...event.Data) *nextStep {
	n := &nextStep{pawl: "pawl", view: new(view.View)}
	for i, d := range data {
		n.view.Add(&event.Event{Seq: int64(i + 1), Data: d})
		n.origin.add(d)
	}
	return n
}

func TestTheNextStepOfARunThatStopped(t *testing.T) {
	limits := json.RawMessage(`{"limits": {"max_tool_calls": 3, "usd_per_run": 0.25, "max_wall_time_seconds": 90}}`)
	ended := func(o event.Outcome) event.Data { return event.RunCompleted{Outcome: o} }
	for _, tt := range []struct {
		name string
		data event.Data
		want string
	}{
		{"a call waits", event.RunParked{Reason: event.ParkApproval, CallIDs: []string{"k7x2-3-1", "k7x2-3-2"}}, "runs approve k7x2 3-1 --resume"},
		{"a call of a child waits", event.RunParked{Reason: event.ParkApproval, CallIDs: []string{"m4n5-1-1"}}, "runs approve k7x2 m4n5-1-1 --resume"},
		{"a message is missing", event.RunParked{Reason: event.ParkInput}, "runs input k7x2 - --resume"},
		{"a limit is to be raised", event.RunParked{Reason: event.ParkInput, Limit: "max_tool_calls", AtLeast: 4}, "runs budget k7x2 max_tool_calls 6 --resume"},
		{"much more is asked for", event.RunParked{Reason: event.ParkInput, Limit: "usd_per_run", AtLeast: 1.2301}, "runs budget k7x2 usd_per_run 1.24 --resume"},
		{"interrupted", event.RunParked{Reason: event.ParkInterrupted}, "runs resume k7x2"},
		{"paused", event.RunParked{Reason: event.ParkPaused}, "runs resume k7x2"},
		{"at a limit", ended(event.Outcome{Limit: "max_wall_time_seconds"}), `run --continue k7x2 --limit max_wall_time_seconds=180 "Go on."`},
		{"at a limit of no budget", ended(event.Outcome{Limit: "max_nudges"}), `run --continue k7x2 "Go on."`},
		{"failed", ended(event.Outcome{Status: event.StatusFailed}), `run --continue k7x2 "Go on."`},
		{"done", ended(event.Outcome{Completed: true}), ""},
		{"done, with a message left", ended(event.Outcome{Completed: true, NextSafeAction: "One message came too late."}), `run --continue k7x2 "Go on."`},
	} {
		next := stepAfter(event.RunStarted{Spec: "{}", Config: limits})
		var got string
		switch d := tt.data.(type) {
		case event.RunParked:
			got = next.parked("k7x2", d)
		case event.RunCompleted:
			got = next.ended("k7x2", d.Outcome)
		}
		if want := "continue with: pawl " + tt.want; got != want && !(tt.want == "" && got == "") {
			t.Errorf("%s: %q, want %q", tt.name, got, want)
		}
	}
}

func TestTheNextStepOfARunWhoseChildWaitsIsAboutTheChild(t *testing.T) {
	events := []event.Data{event.RunStarted{Spec: "{}"}}
	for _, child := range []string{"idle", "m4n5", "p8q9"} {
		events = append(events, event.ChildStarted{Child: child})
	}
	parked := event.RunParked{Reason: event.ParkApproval}
	for _, tt := range []struct {
		data event.Data
		want string
	}{
		{event.ChildParked{Child: "idle", Reason: event.ParkPaused}, "runs resume k7x2"},
		{event.ChildParked{Child: "m4n5", Reason: event.ParkApproval, CallIDs: []string{"m4n5-1-1"}}, "runs approve k7x2 m4n5-1-1 --resume"},
		{event.ChildParked{Child: "p8q9", Reason: event.ParkApproval, CallIDs: []string{"p8q9-1-1"}}, "runs approve k7x2 m4n5-1-1 --resume"},
		{event.ChildFinished{Child: "m4n5"}, "runs approve k7x2 p8q9-1-1 --resume"},
		{event.RunResumed{}, "runs resume k7x2"},
		{event.ChildParked{Child: "m4n5", Reason: event.ParkApproval, Limit: "max_tool_calls", AtLeast: 3}, "runs budget m4n5 max_tool_calls 3 --resume"},
	} {
		events = append(events, tt.data)
		if got := stepAfter(events...).parked("k7x2", parked); got != "continue with: pawl "+tt.want {
			t.Errorf("after %+v: %s, want %s", tt.data, got, tt.want)
		}
	}
}

func TestTheNextStepFollowsARaisedLimit(t *testing.T) {
	next := stepAfter(event.RunStarted{Spec: "{}", Config: json.RawMessage(`{"limits": {"max_tool_calls": 3}}`)}, event.BudgetRaised{Setting: "max_tool_calls", Value: 10})
	if got := next.parked("k7x2", event.RunParked{Reason: event.ParkInput, Limit: "max_tool_calls"}); got != "continue with: pawl runs budget k7x2 max_tool_calls 20 --resume" {
		t.Error(got)
	}
}
