package crash

import (
	"bytes"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
)

// A program that was killed with Pawl in the middle of its first call is run again
// if its calls are idempotent, under the same key, and never if they are not. The
// next call has another key.
//
// rows: HAR-60
func TestKilledCommandToolKeepsItsKey(t *testing.T) {
	for effect, attempts := range map[string]int{"idempotent": 2, "at_most_once": 1} {
		t.Run(effect, func(t *testing.T) {
			w := newWorld(t, "- tool_calls: [{name: count, arguments: {n: 1}}]\n- tool_calls: [{name: count, arguments: {n: 2}}]\n- text: done\n")
			w.write(t, "agent.yaml", `
identity: {name: crash}
model_policy: {primary: {model: scripted/script.yaml}}
tools:
  allow: []
  approvals: {count: never}
  commands:
    - name: count
      description: Count.
      args: {type: object, properties: {n: {type: integer}}}
      command: [sh, ./count.sh]
      effect: `+effect+"\n")
			w.write(t, "count.sh", `echo "$(cat) $PAWL_CALL_ID $PAWL_IDEMPOTENCY_KEY" >> effects
if [ ! -e started ]; then touch started; sleep 600; fi
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
			row, _, _ := w.theRun(t)
			var stderr bytes.Buffer
			resume := w.command("runs", "resume", row.ID)
			resume.Stderr = &stderr
			if err := resume.Run(); err != nil {
				t.Fatalf("resume: %v\n%s", err, &stderr)
			}
			lines := strings.Split(strings.TrimSpace(w.read(t, "effects")), "\n")
			if len(lines) != attempts+1 {
				t.Fatalf("the program ran %d times for two calls, want %d: %q", len(lines), attempts+1, lines)
			}
			first, second := lines[0], lines[len(lines)-1]
			if want := `{"n":1} ID-1-1 ID:ID-1-1`; spaced(first, row.ID) != want || attempts == 2 && lines[1] != first {
				t.Errorf("attempts at the first call: %q, want %q", lines[:attempts], want)
			}
			if want := `{"n":2} ID-2-1 ID:ID-2-1`; spaced(second, row.ID) != want {
				t.Errorf("the second call: %q, want %q", second, want)
			}
			inDoubt := 0
			_, records, _ := w.theRun(t)
			for _, e := range decode(t, records) {
				if r, ok := e.Data.(event.ToolResult); ok && r.ErrorType == event.ErrorInDoubt {
					inDoubt++
				}
			}
			if want := 2 - attempts; inDoubt != want {
				t.Errorf("%d calls in doubt, want %d", inDoubt, want)
			}
		})
	}
}

// spaced is a line with the run's id as ID, and its JSON without spaces.
func spaced(line, id string) string {
	return strings.ReplaceAll(strings.ReplaceAll(line, id, "ID"), `": `, `":`)
}
