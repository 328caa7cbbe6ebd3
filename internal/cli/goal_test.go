package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

// port is a goal whose reviewer asks a person for a port after the first iteration.
func port(t *testing.T, more string) project {
	return newProject(t, map[string]string{
		"goal.yaml": "kind: Goal\nidentity: {name: serve}\nobjective: Serve the page.\n" +
			"done: {when: [{cel: 'iteration == 1'}]}\nvalidation: [{cel: 'content == \"served\"'}]\n" +
			"model_policy: {primary: {model: scripted/worker.yaml}, roles: {architect: scripted/reviewer.yaml}}\n" +
			"prompt: {system: You serve pages.}\ncheckpoints: {every: 1}\n" + more,
		"worker.yaml": "- text: served\n",
		"reviewer.yaml": "- tool_calls:\n    - name: submit_result\n      arguments: {verdict: blocked_on_human, objective: 'yes', human: 'Which port?'}\n" +
			"- text: done\n",
	})
}

// A goal that cannot go on without a person asks a question as any other run does: it is
// listed, it is neither approved nor rejected, and a message answers it.
//
// rows: HAR-69, HAR-80
func TestABlockedGoalIsAQuestionThatAMessageAnswers(t *testing.T) {
	p := port(t, "")
	f := p.exits(4, "run", "goal.yaml")
	id := p.newestRoot()
	if !strings.Contains(f.err, "goal-1 after iteration 1 needs an answer") || !strings.Contains(f.err, "runs input "+id+" - --resume") {
		t.Errorf("it says %s", f.err)
	}
	if row := p.row(id); row.State != journal.Parked || row.Detail != string(event.ParkInput) {
		t.Errorf("the row is %+v", row)
	}
	type asked struct {
		ID, Kind, Run, Reason, Digest string
		Path                          []string
		What                          struct {
			Iteration int
			Question  string
		}
	}
	waiting := func() (all []asked) {
		t.Helper()
		var page struct{ Waiting []asked }
		if err := json.Unmarshal([]byte(p.exits(0, "runs", "show", id, "--json").out), &page); err != nil {
			t.Fatal(err)
		}
		return page.Waiting
	}
	all := waiting()
	if len(all) != 1 {
		t.Fatalf("%+v", all)
	}
	if q := all[0]; q.ID != "goal-1" || q.Kind != "goal" || q.Run != id || len(q.Path) != 1 || q.Path[0] != id || q.What.Question != "Which port?" || q.What.Iteration != 1 || q.Digest == "" {
		t.Errorf("%+v", q)
	}
	if shown := p.exits(0, "runs", "show", id).out; !strings.Contains(shown, "Which port?") || !strings.Contains(shown, "runs input "+id) || strings.Contains(shown, "runs approve") {
		t.Errorf("runs show says %s", shown)
	}
	for _, verb := range []string{"approve", "reject"} {
		if f := p.exits(2, "runs", verb, id, "goal-1", "--reason", "no"); !strings.Contains(f.err, "runs input "+id) {
			t.Errorf("%s says %s", verb, f.err)
		}
	}
	p.exits(0, "runs", "input", id, "Port 8080.")
	if all := waiting(); len(all) != 1 || all[0].Kind != "input" { // which its next iteration reads
		t.Errorf("it still waits for %+v", all)
	}
	p.exits(0, "runs", "resume", id)
	if o := p.outcome(p.events(p.exits(0, "runs", "events", id).out)); o.Reason != event.ReasonConditionMet || o.Iterations != 2 {
		t.Errorf("%+v", o)
	}
	p.exits(0, "runs", "verify", id)
}

// An expired question ends the goal.
func TestBlockedGoalEndsWhenItsQuestionExpires(t *testing.T) {
	p := port(t, "review_timeout: 0.001\n")
	// The time may be up before the run has parked.
	first := p.pawl("run", "goal.yaml")
	id := p.newestRoot()
	if first.code == 4 {
		p.exits(1, "runs", "resume", id)
	}
	events := p.events(p.exits(0, "runs", "events", id).out)
	if o := p.outcome(events); o.Reason != event.ReasonRejected {
		t.Errorf("%+v", o)
	}
	if u := of[event.GoalUnanswered](events); len(u) != 1 || u[0].Kind != event.ApprovalExpired {
		t.Errorf("%+v", u)
	}
	p.exits(0, "runs", "verify", id)
}

func TestACancelledGoalTakesItsQuestionBack(t *testing.T) {
	p := port(t, "")
	p.exits(4, "run", "goal.yaml")
	id := p.newestRoot()
	p.exits(0, "runs", "cancel", id)
	events := p.events(p.exits(0, "runs", "events", id).out)
	if u := of[event.GoalUnanswered](events); len(u) != 1 || u[0].Kind != event.ApprovalCancelled {
		t.Errorf("%+v", u)
	}
	p.exits(0, "runs", "verify", id)
}
