package crash

import (
	"bytes"
	"testing"

	"github.com/pawlrun/pawl/event"
)

// rows: HAR-3, HAR-60, ALDO-63
func TestKilledBetweenIntentAndSettlementTheCallIsNotRunAgain(t *testing.T) {
	w := newWorld(t, `
- tool_calls:
    - {name: shell.exec, arguments: {command: "echo ran >> effects; touch started; sleep 60"}}
- text: I see that it is in doubt.
  expect: {last: [in_doubt]}
`)
	cmd := w.command("run", "agent.yaml", "go")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.await(t, "started")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()

	row, _, ok := w.theRun(t)
	if !ok {
		t.Fatal("there is no run")
	}
	var stderr bytes.Buffer
	resume := w.command("runs", "resume", row.ID)
	resume.Stderr = &stderr
	if err := resume.Run(); err != nil {
		t.Fatalf("resume: %v\n%s", err, &stderr)
	}
	_, records, _ := w.theRun(t)
	var starts, results, ends int
	for _, e := range decode(t, records) {
		switch data := e.Data.(type) {
		case event.ToolStarted:
			starts++
		case event.ToolResult:
			results++
			if data.ErrorType != event.ErrorInDoubt {
				t.Errorf("the result is of type %q, not in_doubt", data.ErrorType)
			}
		case event.RunCompleted:
			ends++
		}
	}
	if starts != 1 || results != 1 || ends != 1 {
		t.Errorf("%d starts, %d results, %d ends; want one of each", starts, results, ends)
	}
	if effects := w.read(t, "effects"); effects != "ran\n" {
		t.Errorf("effects %q: the call ran more than once", effects)
	}
}
