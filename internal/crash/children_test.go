package crash

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/sqlite"
	"github.com/pawlrun/pawl/llm"
)

// rows: HAR-3, HAR-60
func TestKillWithChildrenInFlightLosesAndRepeatsNothing(t *testing.T) {
	kills := kills(4, 40)
	random := rand.New(rand.NewPCG(seed(t), 1))
	for killed := 0; killed < kills && !t.Failed(); {
		dir := t.TempDir()
		killed += max(killFamilyUntilDone(t, familyDir, dir, random, min(kills-killed, 10)), 1)
		checkFamily(t, dir)
	}
}

// killFamilyUntilDone plays a program and kills it, up to budget times, until
// its run has ended. It returns how often it killed.
func killFamilyUntilDone(t *testing.T, program, dir string, random *rand.Rand, budget int) (killed int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for {
		var stderr bytes.Buffer
		cmd := exec.Command(self)
		cmd.Env, cmd.Stderr = append(os.Environ(), program+"="+dir), &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
		if killed < budget {
			timer.Reset(20*time.Millisecond + time.Duration(random.Int64N(int64(150*time.Millisecond))))
		}
		err := cmd.Wait()
		timer.Stop()
		switch {
		case err == nil:
			return killed
		case killed == budget || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL:
			t.Fatalf("%v\n%s", err, &stderr)
		}
		killed++
	}
}

// childCalls is what the journal of one run of the tree says.
type childCalls struct {
	answers, attempts int
	started, results  map[string]int
	doubts            int
	reserved          map[string]bool
	// own is what the run's own calls used.
	own llm.Usage
	// used is what was committed, by reservation, of the run's own calls and, in
	// a parent's, of its children's.
	used    map[string]llm.Usage
	outcome event.Outcome
}

func tell(t *testing.T, store journal.Store, run journal.Run) childCalls {
	t.Helper()
	records, err := store.Records(t.Context(), run.ID, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := journal.Verify(t.Context(), store, run.ID, run.Head); err != nil || v.Events != int64(len(records)) {
		t.Fatalf("verify: %+v of %d events, %v", v, len(records), err)
	}
	s := childCalls{started: map[string]int{}, results: map[string]int{}, reserved: map[string]bool{}, used: map[string]llm.Usage{}}
	for _, e := range decode(t, records) {
		switch d := e.Data.(type) {
		case event.ModelResponse:
			s.answers, s.attempts, s.own = s.answers+1, s.attempts+1, s.own.Add(d.Usage)
		case event.ModelAttemptFailed:
			s.attempts, s.own = s.attempts+1, s.own.Add(d.Usage)
		case event.ToolStarted:
			s.started[d.CallID]++
		case event.ToolResult:
			s.results[d.CallID]++
			switch {
			case d.ErrorType == event.ErrorInDoubt:
				s.doubts++
			case d.IsError:
				t.Errorf("call %s gave %s: %s", d.CallID, d.ErrorType, d.Output)
			}
		case event.BudgetReserved:
			s.reserved[d.Run+"/"+d.ID] = true
		case event.BudgetCommitted:
			delete(s.reserved, d.Run+"/"+d.ID)
			if d.Usage != nil {
				s.used[d.Run+"/"+d.ID] = *d.Usage
			}
		case event.RunCompleted:
			s.outcome = d.Outcome
		}
	}
	return s
}

// checkFamily looks at a tree that has ended.
func checkFamily(t *testing.T, dir string) {
	t.Helper()
	store, err := sqlite.Open(t.Context(), filepath.Join(dir, "journal.db"), sqlite.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	rows, err := store.Runs(t.Context(), journal.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 1+rounds*siblings {
		t.Errorf("%d runs, want one and %d children of it", len(rows), rounds*siblings)
	}
	var parent childCalls
	usage, attempts, doubts, made := llm.Usage{}, 0, 0, 0
	inChildren := map[string]llm.Usage{}
	for _, row := range rows {
		s := tell(t, store, row)
		want := lines
		if row.Parent == "" {
			parent, want = s, rounds
		} else {
			usage, doubts, made = usage.Add(s.own), doubts+s.doubts, made+len(s.results)
			for id, u := range s.used {
				inChildren[row.ID+id] = u
			}
		}
		attempts += s.attempts
		if row.State != journal.Ended || s.outcome.Reason != event.ReasonFinalAnswer || s.answers != want+1 || len(s.reserved) > 0 {
			t.Errorf("run %s is %s as %s with %d answers; still set aside: %v", row.ID, row.State, s.outcome.Reason, s.answers, s.reserved)
		}
		for call, n := range s.results {
			if n != 1 || s.started[call] != 1 {
				t.Errorf("call %s was started %d times and has %d results", call, s.started[call], n)
			}
		}
	}
	if parent.doubts > 0 || made != rounds*siblings*lines {
		t.Errorf("%d children in doubt, %d calls in them", parent.doubts, made)
	}
	// The tree's account is that of its runs, to the token.
	for id, u := range inChildren {
		if parent.used[id] != u {
			t.Errorf("call %s used %+v, and %+v by its parent's account", id, u, parent.used[id])
		}
	}
	if len(parent.used) != len(inChildren) {
		t.Errorf("%d calls in the parent's account, %d in the children's", len(parent.used), len(inChildren))
	}
	if sum := usage.Add(parent.own); parent.outcome.Usage != sum {
		t.Errorf("the tree used %+v, its runs %+v", parent.outcome.Usage, sum)
	}
	if paid := strings.Count(world{dir}.read(t, "paid"), "\n"); paid > attempts {
		t.Errorf("%d calls were paid for, %d are accounted for", paid, attempts)
	}
	effects := map[string]bool{}
	for _, line := range strings.Fields(world{dir}.read(t, "effects")) {
		if effects[line] {
			t.Errorf("the call that leaves %s ran twice", line)
		}
		effects[line] = true
	}
	if len(effects)+doubts < made {
		t.Errorf("%d effects of %d calls, %d of them in doubt", len(effects), made, doubts)
	}
	t.Logf("%d attempts, %d calls in children, %d in doubt", attempts, made, doubts)
}
