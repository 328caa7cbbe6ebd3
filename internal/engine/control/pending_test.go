package control_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal/journaltest"
)

// A list asks this of every run that goes on, and they may be long.
func TestWhatWaitsInARunIsReadFromItsLastCycleAlone(t *testing.T) {
	for name, waits := range map[string]bool{"asked nobody": false, "asked": true} {
		t.Run(name, func(t *testing.T) {
			store, controller := shelf()
			d := journaltest.Start(t, store, "long")
			for i := range 300 {
				happens(t, d, event.CycleStart{Cycle: i + 1},
					event.ToolPendingApproval{CallID: fmt.Sprint("c", i)}, event.ToolApprovalResolved{CallID: fmt.Sprint("c", i)})
			}
			happens(t, d, event.CycleStart{Cycle: 301}, event.ToolCall{CallID: "free"})
			if waits {
				happens(t, d, asks("free"), forApproval)
			}
			store.records = 0
			calls, err := controller.PendingIn(t.Context(), "long")
			if err != nil || (len(calls) == 1) != waits {
				t.Errorf("these wait: %+v, %v", calls, err)
			}
			if store.records > 20 {
				t.Errorf("%d records were read", store.records)
			}
		})
	}
}

// The simulator holds the same against the machine, in whole runs.
func TestACallWaitsFromTheQuestionUntilWhatAnswersIt(t *testing.T) {
	soon := time.Unix(1000, 0)
	asked := event.ToolPendingApproval{CallID: "a", Digest: "d1", Policy: "p2/rules", ExpiresAt: &soon}
	decided := event.ToolApprovalResolved{CallID: "a", Kind: event.ApprovalApproved, Digest: "d1", Policy: "p2/rules", At: soon.Add(-1)}
	with := func(change func(*event.ToolApprovalResolved)) event.Data {
		d := decided
		change(&d)
		return d
	}
	blocked := event.GoalBlocked{ID: "goal-1", Digest: "g1", Asks: "Which port?"}
	other := asked
	other.Digest = "d2"
	for name, tt := range map[string]struct {
		events []event.Data
		want   []string
	}{
		"nothing was asked":                  {[]event.Data{event.ToolCall{CallID: "a"}}, nil},
		"asked":                              {[]event.Data{asked, forApproval}, []string{"a d1"}},
		"decided":                            {[]event.Data{asked, forApproval, decided}, nil},
		"decided too late":                   {[]event.Data{asked, with(func(d *event.ToolApprovalResolved) { d.At = soon })}, []string{"a d1"}},
		"expired":                            {[]event.Data{asked, with(func(d *event.ToolApprovalResolved) { d.Kind, d.At = event.ApprovalExpired, soon })}, nil},
		"decided about other arguments":      {[]event.Data{asked, with(func(d *event.ToolApprovalResolved) { d.Digest = "d2" })}, []string{"a d1"}},
		"decided under another policy":       {[]event.Data{asked, with(func(d *event.ToolApprovalResolved) { d.Policy = "p1/rules" })}, []string{"a d1"}},
		"asked anew":                         {[]event.Data{asked, decided, event.PolicyDecision{CallID: "a"}, other}, []string{"a d2"}},
		"judged anew":                        {[]event.Data{asked, event.PolicyDecision{CallID: "a"}}, nil},
		"begun":                              {[]event.Data{asked, event.ToolStarted{CallID: "a"}}, nil},
		"settled":                            {[]event.Data{asked, event.ToolResult{CallID: "a"}}, nil},
		"gone on with":                       {[]event.Data{asked, forApproval, event.RunResumed{Policy: "p2"}}, []string{"a d1"}},
		"gone on with under another reading": {[]event.Data{asked, forApproval, event.RunResumed{Policy: "p3"}, event.RunResumed{}}, nil},
		"asked again under another reading": {
			[]event.Data{asked, forApproval, event.RunResumed{Policy: "p3"}, event.ToolPendingApproval{CallID: "a", Digest: "d1", Policy: "p3/rules"}}, []string{"a d1"},
		},
		"another call decided": {[]event.Data{asks("b"), asked, decides("b")}, []string{"a d1"}},
		"in the answer's order": {
			[]event.Data{asks("c"), asked, asks("b"), forApproval}, []string{"a d1", "b ", "c "},
		},
		"a goal asks":               {[]event.Data{event.InputReceived{}, blocked, forInput}, []string{"goal-1 g1"}},
		"a goal was answered":       {[]event.Data{blocked, forInput, event.InputReceived{}}, nil},
		"a goal expired":            {[]event.Data{blocked, forInput, event.GoalUnanswered{ID: "goal-1", Digest: "g1", Kind: event.ApprovalExpired}}, nil},
		"a message decides no call": {[]event.Data{asked, event.InputReceived{}}, []string{"a d1"}},
		"the run ends":              {[]event.Data{asked, event.RunTerminatedBy{}}, nil},
		"asked in the cycle before": {[]event.Data{asked, event.CycleStart{Cycle: 2}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			store, controller := shelf()
			d := journaltest.Start(t, store, "run")
			happens(t, d, event.CycleStart{Cycle: 1}, event.ModelResponse{ToolCalls: []event.CallRef{{CallID: "a"}, {CallID: "b"}, {CallID: "c"}}})
			happens(t, d, tt.events...)
			calls, err := controller.PendingIn(t.Context(), "run")
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range calls {
				got = append(got, c.ID+" "+c.Digest)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("these wait: %q, want %q", got, tt.want)
			}
		})
	}
}
