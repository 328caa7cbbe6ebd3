package crash

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

// turns is how many answers with calls the script has before its last word.
const turns = 12

// countingScript makes calls that each leave a line of their own, and one that
// only reads, so that a line twice is a call that ran twice.
func countingScript() string {
	var s strings.Builder
	for turn := range turns {
		fmt.Fprintf(&s, "- delay: 4ms\n  text: turn %d\n  tool_calls:\n", turn)
		for call := range 1 + turn%3 {
			fmt.Fprintf(&s, "    - {name: shell.exec, arguments: {command: \"sleep 0.01; echo %d-%d >> effects; sleep 0.01\"}}\n", turn, call)
		}
		fmt.Fprintf(&s, "    - {name: fs.read, arguments: {path: agent.yaml}}\n")
	}
	return s.String() + "- text: done\n"
}

// kills returns the number of kills of a test: all of them with PAWL_KILLS, which
// make kills sets, at least a tenth of them with PAWL_LONG, and few otherwise.
func kills(few, all int) int {
	switch {
	case os.Getenv("PAWL_KILLS") != "":
		return all
	case os.Getenv("PAWL_LONG") != "":
		return max(few, all/10)
	}
	return few
}

// seed repeats the moments of an earlier run.
func seed(t *testing.T) uint64 {
	n, err := strconv.ParseUint(os.Getenv("PAWL_CRASH_SEED"), 10, 64)
	if err != nil {
		n = uint64(time.Now().UnixNano())
	}
	t.Logf("PAWL_CRASH_SEED=%d", n)
	return n
}

// rows: HAR-3, HAR-60, ALDO-63
func TestKilledAtRandomMomentsNothingSettledIsLostOrDoneTwice(t *testing.T) {
	random := rand.New(rand.NewPCG(seed(t), 0))
	total := 0
	for left, round := kills(10, 200), 1; left > 0; round++ {
		t.Run(fmt.Sprintf("run %d", round), func(t *testing.T) {
			w := newWorld(t, countingScript())
			budget := min(left, 10)
			killed := killUntilDone(t, w, random, budget)
			total += killed
			left -= max(killed, 1) // a run that ended before a kill counts too
			check(t, w)
		})
		if t.Failed() {
			return
		}
	}
	fmt.Printf("    gate kills: %d passed, 0 failed, 0 skipped\n", total)
}

// killUntilDone starts or resumes the run and kills it, up to budget times,
// until it has ended; then it lets it end. It returns how often it killed.
func killUntilDone(t *testing.T, w world, random *rand.Rand, budget int) int {
	t.Helper()
	killed := 0
	var before []journal.Record
	for {
		args := []string{"run", "agent.yaml", "go", "--json"}
		row, _, ok := w.theRun(t)
		if ok && row.State == journal.Ended {
			return killed
		}
		if ok {
			args = []string{"runs", "resume", row.ID, "--json"}
		}
		var stdout, stderr bytes.Buffer
		cmd := w.command(args...)
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if killed < budget {
			moment := time.Duration(random.Int64N(int64(250 * time.Millisecond)))
			timer := time.AfterFunc(moment, func() { _ = cmd.Process.Signal(syscall.SIGKILL) })
			err := cmd.Wait()
			timer.Stop()
			if err != nil && !cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled() {
				t.Fatalf("%v: %v\n%s", args, err, &stderr)
			}
			if err != nil {
				killed++
			}
		} else if err := cmd.Wait(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, &stderr)
		}
		before = keeps(t, w, before, stdout.Bytes())
	}
}

// keeps fails unless the journal still begins with what it held before and has
// everything that the process had published. It returns what it holds now.
func keeps(t *testing.T, w world, before []journal.Record, out []byte) []journal.Record {
	t.Helper()
	_, now, _ := w.theRun(t)
	if len(now) < len(before) {
		t.Fatalf("%d events, and there were %d", len(now), len(before))
	}
	for i, r := range before {
		if !bytes.Equal(r.Body, now[i].Body) || r.Pos != now[i].Pos {
			t.Fatalf("event %d was\n%s\nand is\n%s", r.Seq, r.Body, now[i].Body)
		}
	}
	for seq, e := range published(t, out) {
		if seq > int64(len(now)) {
			t.Fatalf("event %d (%s) was published and is not in the journal", seq, e.Type())
		}
		if stored, err := event.Encode(e); err != nil || !bytes.Equal(stored, now[seq-1].Body) {
			t.Fatalf("event %d was published as\n%s\nand stored as\n%s (%v)", seq, stored, now[seq-1].Body, err)
		}
	}
	return now
}

// call is what the journal says of one tool call.
type call struct {
	tool    string
	args    string
	starts  int
	results []event.ToolResult
}

// check looks at a run that has ended.
func check(t *testing.T, w world) {
	t.Helper()
	_, records, _ := w.theRun(t)
	calls := map[string]*call{}
	answers, ends := 0, 0
	for i, e := range decode(t, records) {
		switch data := e.Data.(type) {
		case event.ModelResponse:
			answers++
		case event.ToolCall:
			if calls[data.CallID] != nil {
				t.Errorf("call %s was made twice", data.CallID)
			}
			calls[data.CallID] = &call{tool: data.Tool, args: string(data.Args)}
		case event.ToolStarted:
			calls[data.CallID].starts++
		case event.ToolResult:
			calls[data.CallID].results = append(calls[data.CallID].results, data)
		case event.RunCompleted:
			ends++
			if i != len(records)-1 || data.Outcome.Reason != event.ReasonFinalAnswer {
				t.Errorf("event %d of %d ends the run as %s", i+1, len(records), data.Outcome.Reason)
			}
		}
	}
	if answers != turns+1 || ends != 1 {
		t.Errorf("%d answers and %d ends, want %d and 1", answers, ends, turns+1)
	}
	checkCalls(t, calls, strings.Fields(w.read(t, "effects")))
}

func checkCalls(t *testing.T, calls map[string]*call, effects []string) {
	t.Helper()
	ran, shells, doubts := map[string]int{}, 0, 0
	for _, line := range effects {
		ran[line]++
		if ran[line] > 1 {
			t.Errorf("the call that writes %s ran %d times", line, ran[line])
		}
	}
	for id, c := range calls {
		if len(c.results) != 1 {
			t.Errorf("call %s has %d results", id, len(c.results))
			continue
		}
		result := c.results[0]
		if c.tool != "shell.exec" {
			if result.IsError {
				t.Errorf("call %s only reads, and gave %s %s", id, result.ErrorType, result.Output)
			}
			continue
		}
		shells++
		if c.starts != 1 {
			t.Errorf("call %s was started %d times", id, c.starts)
		}
		_, line, _ := strings.Cut(c.args, "echo ")
		line, _, _ = strings.Cut(line, " ")
		switch {
		case result.ErrorType == event.ErrorInDoubt:
			doubts++
		case result.IsError:
			t.Errorf("call %s gave %s: %s", id, result.ErrorType, result.Output)
		case ran[line] != 1:
			t.Errorf("call %s succeeded and its effect %s is there %d times", id, line, ran[line])
		}
	}
	if want := turns * 2; shells != want {
		t.Errorf("%d calls of the shell, want %d", shells, want)
	}
	t.Logf("%d calls, %d of them in doubt, %d effects", len(calls), doubts, len(effects))
}
