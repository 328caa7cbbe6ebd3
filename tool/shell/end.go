package shell

import (
	"fmt"
	"os"
	"slices"
	"syscall"

	"github.com/pawlrun/pawl/event"
)

// ended describes how a command ended: with a code, or by a signal.
type ended struct {
	code   int
	signal syscall.Signal
	// stopped reports that it was ordered to end.
	stopped bool
	// out is its output, errs its stderr; they are the same unless stderr is separate.
	out, errs *headTail
	// note is an extra text for the model.
	note string
	// reached are the machines that it requested.
	reached []event.Reach
	// changed are the protected paths that it changed.
	changed []event.Change
}

// fetched reports whether the command received data from another machine.
func (e ended) fetched() bool {
	return slices.ContainsFunc(e.reached, func(r event.Reach) bool { return r.Denied == "" })
}

func endOf(s *os.ProcessState) ended {
	if s == nil {
		return ended{}
	}
	if st, ok := s.Sys().(syscall.WaitStatus); ok && st.Signaled() {
		return ended{signal: st.Signal()}
	}
	return ended{code: s.ExitCode()}
}

// exitCode returns the code that a shell would report: 128 plus the signal for a
// process that a signal ended.
func (e ended) exitCode() int {
	if e.signal != 0 {
		return 128 + int(e.signal)
	}
	return e.code
}

func (e ended) header() string {
	if e.signal != 0 {
		return fmt.Sprintf("exit code: %d (signal: %s)\n%s", e.exitCode(), e.signal, e.note)
	}
	return fmt.Sprintf("exit code: %d\n%s", e.code, e.note)
}
