package cli

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/golden"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
)

// talk is a run with a decided call, a long result and a condition that ends it.
func talk(t *testing.T) project {
	return newProject(t, map[string]string{
		"agent.yaml": "identity: {name: reader}\nmodel_policy: {primary: {model: scripted/script.yaml}}\n" +
			"tools: {allow: [fs.read], approvals: {fs.read: always}}\n" +
			"iteration: {max_cycles: 5, termination_conditions: [{kind: tool-result, tool: fs.read, match: {contains: never}}, {kind: text-includes, text: that is all}]}\n",
		"script.yaml": "- text: |\n    I read the **poem** first.\n\n    - then I say how long it is\n" +
			"  tool_calls: [{name: fs.read, arguments: {path: poem.txt}}, {name: fs.read, arguments: {path: nowhere.txt}}]\n" +
			"- text: It has 40 lines, that is all.\n",
		"poem.txt": strings.Repeat("a line of it\n", 40),
	})
}

// rows: ALDO-65
func TestTheLogOfARunIsItsConversation(t *testing.T) {
	p := talk(t)
	p.exits(4, "run", "agent.yaml", "How long is\nthe poem?")
	id := p.newest()
	p.exits(4, "runs", "approve", id, "1-1", "--reason", "read it", "--resume")
	p.exits(0, "runs", "reject", id, "1-2", "--reason", "not that one", "--resume")
	f := p.exits(0, "runs", "log", id)
	golden.File(t, filepath.Join("testdata", "log.golden"), steady(f.out, id), *update)
	if strings.Contains(f.out, "\x1b") {
		t.Error("there is colour where no terminal is")
	}
	y, s := p.atTerminal(nil, "runs", "log", id)
	s.wait()
	<-y.done
	if !strings.Contains(y.seen(), "\x1b[32m  ✓ read poem.txt\x1b[0m") {
		t.Errorf("there is no colour on a terminal: %q", y.seen())
	}
	if strings.Contains(y.seen(), "**poem**") {
		t.Errorf("Markdown is not laid out on a terminal: %q", y.seen())
	}
	lines := p.events(p.exits(0, "runs", "log", id, "--json").out)
	if want := p.events(p.exits(0, "runs", "events", id).out); len(lines) != len(want) {
		t.Errorf("--json has %d events, want %d", len(lines), len(want))
	}
}

// steady takes out what differs from run to run.
func steady(log string, ids ...string) string {
	for _, id := range ids {
		log = strings.ReplaceAll(log, id, "RUN")
	}
	for _, changing := range []struct{ of, by string }{
		{`(?m)^( *journal checksum:) [0-9a-f]+`, "${1} HASH"},
		{`approved by .+`, "approved by SOMEBODY"},
		{`rejected by .+`, "rejected by SOMEBODY"},
		{`(?m)^sandbox: .*\n`, ""},
	} {
		log = regexp.MustCompile(changing.of).ReplaceAllString(log, changing.by)
	}
	return log
}

// rows: ALDO-65
func TestTheLogShowsAChildBelowItsCall(t *testing.T) {
	p := newProject(t, nil)
	parent, child := p.parksInChild()
	parked := p.exits(0, "runs", "log", parent).out
	p.exits(0, "runs", "approve", parent, child+"-1-1")
	store := p.journal()
	run, err := household().Resume(t.Context(), parent, pawl.Options{Journal: store})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.Wait(); err != nil {
		t.Fatal(err)
	}
	store.Close()
	ended := p.exits(0, "runs", "log", parent).out
	both := "--- parked\n" + parked + "--- ended\n" + ended
	golden.File(t, filepath.Join("testdata", "log_child.golden"), steady(strings.ReplaceAll(both, child, "CHILD"), parent), *update)
	seen := map[string]int{}
	for _, e := range p.events(p.exits(0, "runs", "log", parent, "--json").out) {
		seen[e.Run]++
	}
	if len(seen) != 2 || seen[child] == 0 {
		t.Errorf("--json has events of %v", seen)
	}
}

// A follower stays while the run is parked, and hears what comes of it.
func TestALogIsFollowedThroughAParkedRunToItsEnd(t *testing.T) {
	p := talk(t)
	p.exits(4, "run", "agent.yaml", "go")
	id := p.newest()
	follower := p.start("runs", "log", id, "--follow")
	step := "continue with: pawl runs approve " + id + " 1-1 --resume\n"
	p.eventually("the follower names the next step", func() bool { return strings.HasSuffix(follower.out.String(), step) })
	p.exits(4, "runs", "approve", id, "1-1", "--resume")
	p.exits(0, "runs", "approve", id, "1-2", "--resume")
	f := follower.wait()
	if f.code != 0 || strings.Count(f.out, "continue with: ") > 2 || !strings.Contains(f.out, "\ncompleted: condition_met") {
		t.Errorf("exit code %d: %s%s", f.code, f.out, f.err)
	}
}

// Where a run is interrupted, so is who follows it.
func TestALogIsFollowedUntilItsRunIsInterrupted(t *testing.T) {
	ended := func(s journal.State, d event.ParkReason) bool {
		return isOver(journal.Run{Progress: journal.Progress{State: s, Detail: string(d)}})
	}
	for _, tt := range []struct {
		state  journal.State
		detail event.ParkReason
		want   bool
	}{
		{journal.Running, "", false},
		{journal.Parked, event.ParkApproval, false},
		{journal.Paused, event.ParkPaused, false},
		{journal.Parked, event.ParkInterrupted, true},
		{journal.Ended, "", true},
	} {
		if got := ended(tt.state, tt.detail); got != tt.want {
			t.Errorf("%s %s: %t", tt.state, tt.detail, got)
		}
	}
}

func TestTheLogTellsWhatWasDecidedAndCompressed(t *testing.T) {
	call := event.ToolCall{CallID: "r-1-1", Tool: "shell.exec", Describe: "run rm -r /"}
	for _, tt := range []struct {
		data event.Data
		want string
	}{
		{event.PolicyDecision{CallID: "r-1-1", Decision: event.DecisionDeny, Rule: "deny-rm", Reason: "it deletes"}, "  denied: run rm -r /, by deny-rm: it deletes\n"},
		{event.PolicyDecision{CallID: "r-1-1", Decision: event.DecisionAllow, Rule: "allow"}, ""},
		{event.ToolApprovalResolved{CallID: "r-1-1", Kind: event.ApprovalRejected, Approver: "eve", Reason: "not today"}, "  r-1-1 rejected by eve\n    not today\n"},
		{event.HistoryCompressed{Dropped: 2, Removed: []event.MessageRange{{From: 1, To: 3}}, Kept: 4}, "  history compressed: 2 messages left (2 to 3), 4 kept\n"},
		{event.Nudge{Text: "Go on,\nplease."}, "  nudge:\n  Go on,\n  please.\n"},
		{event.InputReceived{Text: "Use\nport 80", By: "eve"}, "  input by eve:\n  Use\n  port 80\n"},
		{event.ToolResult{CallID: "r-1-1", IsError: true, Output: `{"error": "a\nb"}`}, "  ✗ run rm -r /\n    a\n    b\n"},
		{event.ToolResult{CallID: "other", Tool: "mine", Output: "\x1b[2Jx"}, "  ✓ mine\n    ⟨U+001B⟩[2Jx\n"},
		{event.ModelResponse{Purpose: "summary", Parts: []llm.Part{llm.Text{Text: "x"}}}, ""},
		{event.RunTerminatedBy{Reason: event.BudgetReason("max_tool_calls"), Limit: "max_tool_calls"}, "\nends by budget:max_tool_calls (max_tool_calls)\n"},
	} {
		var out strings.Builder
		c := newConversation(&out, screen{}, "pawl")
		c.view.Add(&event.Event{Seq: 1, Data: call})
		if err := c.show(event.Event{Seq: 2, Data: tt.data}); err != nil {
			t.Fatal(err)
		}
		if out.String() != tt.want {
			t.Errorf("%+v reads %q, want %q", tt.data, out.String(), tt.want)
		}
	}
}

func TestOnlyTheLastStopOfARunNamesItsNextStep(t *testing.T) {
	var out strings.Builder
	c := newConversation(&out, screen{}, "pawl")
	for _, d := range []event.Data{
		event.RunStarted{Spec: "{}", Config: json.RawMessage(`{}`)},
		event.RunParked{Reason: event.ParkPaused}, event.RunResumed{},
		event.RunParked{Reason: event.ParkInterrupted},
	} {
		if err := c.show(event.Event{Run: "r", Data: d}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.end(); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "continue with: pawl runs resume r\n"); n != 1 {
		t.Errorf("%d next steps: %s", n, out.String())
	}
}
