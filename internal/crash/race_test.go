package crash

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

func TestOfManyProcessesThatResumeARunOneDrivesIt(t *testing.T) {
	w := newWorld(t, `
- tool_calls:
    - {name: shell.exec, arguments: {command: "touch started; sleep 60"}}
- tool_calls:
    - {name: shell.exec, arguments: {command: "echo ran >> effects; while [ ! -e go ]; do sleep 0.02; done"}}
- text: done
`)
	park(t, w)
	row, _, _ := w.theRun(t)

	type racer struct {
		cmd    *exec.Cmd
		stderr bytes.Buffer
		err    error
	}
	const n = 8
	racers := make([]*racer, n)
	finished := make(chan *racer, n)
	var start sync.WaitGroup
	start.Add(1)
	for i := range racers {
		r := &racer{cmd: w.command("runs", "resume", row.ID)}
		r.cmd.Stderr = &r.stderr
		racers[i] = r
		go func() {
			start.Wait()
			r.err = r.cmd.Run()
			finished <- r
		}()
	}
	start.Done()
	losers := make([]*racer, n-1)
	for i := range losers {
		losers[i] = <-finished
	}
	w.write(t, "go", "")
	winner := <-finished
	if winner.err != nil {
		t.Errorf("the winner: %v\n%s", winner.err, &winner.stderr)
	}
	holder := fmt.Sprintf("driven by process %d ", winner.cmd.Process.Pid)
	for _, r := range losers {
		if said := r.stderr.String(); r.err == nil || !strings.Contains(said, holder) {
			t.Errorf("a loser (%v) says %q and not that the run is %s", r.err, said, holder)
		}
	}
	row, records, _ := w.theRun(t)
	resumed := 0
	for _, e := range decode(t, records) {
		if _, ok := e.Data.(event.RunResumed); ok {
			resumed++
		}
	}
	if row.State != journal.Ended || resumed != 1 || w.read(t, "effects") != "ran\n" {
		t.Errorf("state %s, resumed %d times, effects %q", row.State, resumed, w.read(t, "effects"))
	}
}

// park starts the world's run and interrupts it in its first call.
func park(t *testing.T, w world) {
	t.Helper()
	cmd := w.command("run", "agent.yaml", "go")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.await(t, "started")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if row, _, ok := w.theRun(t); !ok || row.State != journal.Parked {
		t.Fatalf("the run is %s, not parked", row.State)
	}
}
