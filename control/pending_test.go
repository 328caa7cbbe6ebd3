package control_test

import (
	"fmt"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal/journaltest"
)

// A list asks this of every run that goes on, and they may be long.
func TestARunThatAskedNobodyInItsLastCycleIsNotReadWholeForWhatWaits(t *testing.T) {
	store, desk := shelf()
	d := journaltest.Start(t, store, "long")
	for i := range 300 {
		happens(t, d, event.CycleStart{Cycle: i + 1},
			event.ToolPendingApproval{CallID: fmt.Sprint("c", i)}, event.ToolApprovalResolved{CallID: fmt.Sprint("c", i)})
	}
	happens(t, d, event.CycleStart{Cycle: 301}, event.ToolCall{CallID: "free"})
	store.records = 0
	calls, err := desk.PendingIn(t.Context(), "long")
	if err != nil || len(calls) > 0 {
		t.Errorf("these wait: %+v, %v", calls, err)
	}
	if store.records > 20 {
		t.Errorf("%d records were read", store.records)
	}
}
