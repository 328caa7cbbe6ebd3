package crash

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

// passes is how many iterations the loop has.
const passes = 12

// looping is a refinement loop whose iterations another program does. Each leaves a
// line with its own task's words behind, and for a while a process that has left its
// group.
func looping(t *testing.T) world {
	t.Helper()
	w := world{dir: t.TempDir()}
	w.write(t, "agent.yaml", fmt.Sprintf(`
identity: {name: crash}
loop: {loopEnabled: true, maxIterations: %d, on_iteration_error: continue, runner: {command: [sh, program.sh], events: none}}
`, passes))
	w.write(t, "program.sh", `
setsid sh -c 'echo $$ >> pids; exec sleep 300' &
echo $$ >> pids
sleep 0.02
echo $$ >> effects
sleep 0.02
echo $$
`)
	return w
}

// rows: HAR-3, HAR-60
func TestKilledInALoopOverAProgramNoLineIsDoubledOrLostUnsaid(t *testing.T) {
	left := kills(10, 100)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	random := rand.New(rand.NewPCG(seed(t), 3))
	for left > 0 && !t.Failed() {
		w := looping(t)
		left -= max(killLoopUntilDone(t, w, random, min(left, 10)), 1)
		checkLoop(t, w)
	}
}

// killLoopUntilDone starts the loop, kills it up to budget times and resumes it each
// time, until it has ended. It returns how often it killed.
func killLoopUntilDone(t *testing.T, w world, random *rand.Rand, budget int) (killed int) {
	t.Helper()
	for {
		args := []string{"run", "agent.yaml", "go"}
		if root, _ := w.runs(t); root.State == journal.Ended {
			return killed
		} else if root.ID != "" {
			args = []string{"runs", "resume", root.ID}
		}
		var stderr bytes.Buffer
		cmd := w.command(args...)
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
		if killed < budget {
			timer.Reset(50*time.Millisecond + time.Duration(random.Int64N(int64(400*time.Millisecond))))
		}
		err := cmd.Wait()
		timer.Stop()
		switch {
		case err == nil:
		case killed == budget || !cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled():
			t.Fatalf("%v: %v\n%s", args, err, &stderr)
		default:
			killed++
		}
	}
}

// runs are the loop's run, empty where there is none yet, and those of its iterations
// by their ids, each with its events.
func (w world) runs(t *testing.T) (root journal.Run, events map[string][]*event.Event) {
	t.Helper()
	events = map[string][]*event.Event{}
	w.look(t, func(s journal.Store) {
		rows, err := s.Runs(t.Context(), journal.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			if row.Parent == "" {
				root = row
			}
			records, err := s.Records(t.Context(), row.ID, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := journal.Verify(t.Context(), s, row.ID, row.Head); err != nil {
				t.Fatal(err)
			}
			events[row.ID] = decode(t, records)
		}
	})
	return root, events
}

// checkLoop looks at a loop that has ended.
func checkLoop(t *testing.T, w world) {
	t.Helper()
	root, events := w.runs(t)
	written, doubts := map[string]int{}, 0
	for _, line := range strings.Fields(w.read(t, "effects")) {
		if written[line]++; written[line] > 1 {
			t.Errorf("the line %s is there twice", line)
		}
	}
	iterations, lines := 0, len(written)
	for _, e := range events[root.ID] {
		switch d := e.Data.(type) {
		case event.Iteration:
			if iterations++; d.Number != iterations {
				t.Errorf("iteration %d comes as number %d", d.Number, iterations)
			}
			switch starts, settled := settledBy(events[d.Child]); {
			case starts > 1:
				t.Errorf("the program of iteration %d was started %d times", d.Number, starts)
			case settled == nil:
				t.Errorf("nothing says how the program of iteration %d ended", d.Number)
			case settled.ErrorType == event.ErrorInDoubt:
				doubts++
			case written[strings.TrimSpace(settled.Output)] != 1:
				t.Errorf("iteration %d printed %q, which is no line of its", d.Number, settled.Output)
			}
		case event.RunCompleted:
			if d.Outcome.Iterations != passes || d.Outcome.Reason != event.ReasonMaxIterations {
				t.Errorf("it ended as %+v", d.Outcome)
			}
		}
	}
	if iterations != passes || lines > passes || lines+doubts < passes {
		t.Errorf("%d iterations of %d, %d lines, %d in doubt", iterations, passes, lines, doubts)
	}
	for _, pid := range strings.Fields(w.read(t, "pids")) {
		if dir, err := os.Readlink(filepath.Join("/proc", pid, "cwd")); err == nil && dir == w.dir {
			t.Errorf("the process %s is left over", pid)
		}
	}
	t.Logf("%d lines, %d in doubt", lines, doubts)
}

// settledBy is how often a run's program was started, and how it ended.
func settledBy(events []*event.Event) (starts int, end *event.CommandFinished) {
	for _, e := range events {
		switch d := e.Data.(type) {
		case event.CommandStarted:
			starts++
		case event.CommandFinished:
			end = &d
		}
	}
	return starts, end
}
