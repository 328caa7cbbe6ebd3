package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/journal"
)

func TestEveryWayARunStandsHasItsExitCode(t *testing.T) {
	ended := func(status event.Status, ok bool) machine.State {
		return machine.State{Outcome: &event.Outcome{Status: status, OK: ok}}
	}
	parked := func(r event.ParkReason) machine.State { return machine.State{Parked: &event.RunParked{Reason: r}} }
	tests := []struct {
		name  string
		state machine.State
		code  int
	}{
		{"completed", ended(event.StatusCompleted, true), 0},
		{"a limit that is ok", ended(event.StatusStopped, true), 0},
		{"a limit", ended(event.StatusStopped, false), 3},
		{"failed", ended(event.StatusFailed, false), 1},
		{"cancelled", ended(event.StatusCancelled, false), 130},
		{"waits for a decision", parked(event.ParkApproval), 4},
		{"waits for an input", parked(event.ParkInput), 4},
		{"paused", parked(event.ParkPaused), 4},
		{"interrupted", parked(event.ParkInterrupted), 130},
	}
	for _, tt := range tests {
		if got := exitOfState(tt.state); got != tt.code {
			t.Errorf("%s: exit code %d, want %d", tt.name, got, tt.code)
		}
	}
}

func TestErrorsNameTheThingAndTheNextStep(t *testing.T) {
	here := &app{journalPath: "j.db"}
	held := &journal.HeldError{Run: "abc", Owner: "host:boot:ns/42/1/x", Expiry: time.Now()}
	tests := []struct {
		err   error
		words []string
	}{
		{fmt.Errorf("x: %w", held), []string{"abc", "process 42 on host", "'pawl --journal j.db runs log abc --follow'"}},
		{journal.ErrNewer, []string{"j.db", "newer version", "--journal"}},
		{journal.ErrReadOnly, []string{"j.db", "cannot be written", "--journal"}},
		{journal.ErrLocked, []string{"j.db", "locked by another process", "runs resume"}},
		{journal.ErrFull, []string{"j.db", "no space", "resume"}},
		{journal.ErrStale, []string{"another process", "j.db", "'pawl --journal j.db runs'"}},
		{journal.ErrForeign, []string{"j.db", "not a journal"}},
		{errors.New("panic: oh no\ngoroutine 7 [running]:\nmain.main()"), []string{"oh no"}},
	}
	for _, tt := range tests {
		got := here.describe(fmt.Errorf("engine: %w", tt.err))
		for _, w := range tt.words {
			if !strings.Contains(got, w) {
				t.Errorf("%q does not say %q", got, w)
			}
		}
		if strings.Contains(got, "goroutine") {
			t.Errorf("%q shows a stack", got)
		}
	}
}
