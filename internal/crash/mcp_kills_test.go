package crash

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/mcptest"
	"github.com/pawlrun/pawl/journal"
)

// A run with three servers that is killed again and again makes each call once at most,
// knows of each whether it was made or is in doubt, and leaves no process.
func TestKillsOfARunWithThreeServersLoseNothing(t *testing.T) {
	t.Parallel()
	kills := kills(20, 200)
	turns := kills // of three calls each
	servers := []string{"a", "b", "c"}
	var script, list strings.Builder
	for i := range turns {
		script.WriteString("- tool_calls: [")
		for _, s := range servers {
			fmt.Fprintf(&script, "{name: %s.echo, arguments: {text: \"%d\"}}, ", s, i)
		}
		script.WriteString("]\n")
	}
	w := newWorld(t, script.String()+"- text: done\n")
	server := w.server(t)
	for _, s := range servers {
		fmt.Fprintf(&list, "    - {server: %s, command: [%q], env: {%s: \"1\", %s: ledger}}\n", s, server, asServer, mcptest.LedgerVariable)
	}
	w.write(t, "agent.yaml", `
identity: {name: crash}
model_policy: {primary: {model: scripted/script.yaml}}
max_cycles: none
failure_threshold: none
budgets: {max_tool_calls: none}
tools:
  allow: [a.echo, b.echo, c.echo]
  approvals: {a.echo: never, b.echo: never, c.echo: never}
  may_send: [a.echo, b.echo, c.echo]
  mcp:
`+list.String())
	w.write(t, "ledger", "")
	made := func() int { return strings.Count(w.read(t, "ledger"), "call echo") }
	id := ""
	over := func() bool {
		row, _, ok := w.theRun(t)
		if ok {
			id = row.ID
		}
		return ok && row.State == journal.Ended
	}
	for kill := 0; kill < kills && !over(); kill++ {
		run := w.command("run", "agent.yaml", "go")
		if id != "" {
			run = w.command("runs", "resume", id)
		}
		var said bytes.Buffer
		run.Stderr = &said
		if err := run.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- run.Wait() }()
		// The kills come after one to three more calls, at no moment in particular.
		for before, over := made(), false; !over && made() <= before+kill%3; {
			select {
			case err := <-ended:
				if ended <- err; err != nil {
					t.Fatalf("kill %d: the run ends: %s", kill, said.String())
				}
				over = true
			case <-time.After(time.Duration(kill%5) * time.Millisecond):
			}
		}
		_ = run.Process.Kill()
		<-ended
		for serversOf(t, server) > 0 {
			select {
			case <-t.Context().Done():
				t.Fatal("servers outlive Pawl")
			case <-time.After(time.Millisecond):
			}
		}
	}
	if !over() {
		if out, err := w.command("runs", "resume", id).CombinedOutput(); err != nil {
			t.Fatalf("resume: %v\n%s", err, out)
		}
	}
	w.checkCalls(t, turns*len(servers))
}

// checkCalls holds the ledger to the journal: each call has one result, and was made once
// if the result is the server's.
func (w world) checkCalls(t *testing.T, want int) {
	t.Helper()
	calls := map[string]int{}
	for line := range strings.Lines(w.read(t, "ledger")) {
		if words := strings.Fields(line); len(words) > 2 && words[0] == "call" {
			_, id, _ := strings.Cut(words[2], ":")
			calls[id]++
		}
	}
	_, records, _ := w.theRun(t)
	results, doubts := 0, 0
	for _, e := range decode(t, records) {
		r, is := e.Data.(event.ToolResult)
		if !is {
			continue
		}
		results++
		switch n := calls[r.CallID]; {
		case n > 1:
			t.Errorf("call %s was made %d times", r.CallID, n)
		case r.ErrorType == event.ErrorInDoubt:
			doubts++
		case r.IsError || n != 1:
			t.Errorf("call %s was made %d times and gives %s", r.CallID, n, r.Output)
		}
	}
	if results != want {
		t.Errorf("%d calls have results, want %d", results, want)
	}
	t.Logf("%d calls, %d in doubt", results, doubts)
}
