package control_test

import (
	"fmt"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal/journaltest"
)

// A list computes this for every open run, and runs may be long.
func TestWhatWaitsInARunIsReadByItsQuestions(t *testing.T) {
	for asked := range 3 {
		store, controller := shelf()
		d := journaltest.Start(t, store, "long")
		for i := range 10 {
			happens(t, d, event.CycleStart{Cycle: i + 1},
				event.ToolPendingApproval{CallID: fmt.Sprint("c", i)}, event.ToolApprovalResolved{CallID: fmt.Sprint("c", i)})
		}
		happens(t, d, event.CycleStart{Cycle: 11}, event.ToolCall{CallID: "free"})
		for i := range asked {
			happens(t, d, asks(fmt.Sprint("q", i)))
		}
		happens(t, d, forApproval)
		store.records = 0
		calls, err := controller.PendingIn(t.Context(), "long")
		if err != nil || len(calls) != asked || store.records != asked {
			t.Errorf("%d questions: %d records were read, and these wait: %+v, %v", asked, store.records, calls, err)
		}
		for i, c := range calls {
			if c.ID != fmt.Sprint("q", i) || c.Run != "long" {
				t.Errorf("question %d is %+v", i, c)
			}
		}
	}
}
