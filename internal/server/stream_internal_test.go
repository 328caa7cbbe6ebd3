package server

import (
	"encoding/json"
	"testing"

	"github.com/pawlrun/pawl/journal"
)

// Two hundred readers that come at once would each hold a long answer until their
// stream begins.
func TestAStreamThatHasNotBegunHoldsNoOutcome(t *testing.T) {
	row := journal.Run{ID: "r"}
	row.Outcome = json.RawMessage(`{"finalOutput":"a long answer"}`)
	for _, format := range []string{formatPawl, formatAGUI} {
		if held := (&Server{}).streamOf(row, 0, watching{Format: format}); held.row.Outcome != nil || held.row.ID != "r" {
			t.Errorf("%s: %+v", format, held.row)
		}
	}
}
