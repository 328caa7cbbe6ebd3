package flow_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

func exits(code int, output string) event.CommandFinished {
	return event.CommandFinished{ExitCode: &code, Output: output}
}

func TestACommandIsAStep(t *testing.T) {
	for name, c := range map[string]struct {
		ends event.CommandFinished
		ok   bool
		want string
	}{
		"that succeeds":  {exits(0, "all pass"), true, "all pass"},
		"that fails":     {exits(2, "one fails"), false, "exit_code: it exited with 2"},
		"that is denied": {event.CommandFinished{ErrorType: event.ErrorDenied, Error: "not permitted"}, false, "permission_denied: not permitted"},
	} {
		t.Run(name, func(t *testing.T) {
			s := plan.Step{ID: "test", Timeout: time.Minute, Command: &plan.Command{Argv: []string{"go", "test"}, Timeout: time.Hour}}
			p := newPlayer(t, plan.Plan{Steps: []plan.Step{s, step("after", "test")}})
			p.says = named(nil)
			p.exec = func(a machine.RunCommand) event.CommandFinished {
				if a.WallLimit != time.Minute || strings.Join(a.Argv, " ") != "go test" {
					t.Errorf("%+v", a)
				}
				return c.ends
			}
			o := p.play()
			if o.OK != c.ok || c.ok && !strings.Contains(p.told("after"), c.want) || !c.ok && !strings.Contains(p.story(), "failed test: "+c.want) {
				t.Errorf("%+v\n%s", o, p.story())
			}
		})
	}
}

// The command that ends a loop runs after each iteration. The next iteration and the
// judge get its output.
func TestACommandEndsALoopThatExitsWithZero(t *testing.T) {
	p := newPlayer(t, single(plan.Loop{Max: 5, StopWhen: []plan.Stop{{Command: &plan.Command{Argv: []string{"make", "test"}}}, {Judge: "judge"}}}))
	p.says = named(map[string]event.Outcome{"check.0/judge": gave("No.", `{"done":false}`)})
	codes := []int{1, 0}
	p.exec = func(machine.RunCommand) event.CommandFinished {
		code := codes[0]
		codes = codes[1:]
		return exits(code, "3 tests fail")
	}
	if o := p.play(); !o.OK {
		t.Errorf("%+v", o)
	}
	same(t, p.ids(), []string{"check.0", "check.0/0", "check.0/judge", "check.1", "check.1/0"})
	for _, id := range []string{"check.0/judge", "check.1"} {
		if told := p.told(id); !strings.Contains(told, "## Command make test\nReason:") || !strings.Contains(told, "3 tests fail") {
			t.Errorf("%s is told\n%s", id, told)
		}
	}
}

func TestACommandThatMayNotRunFailsTheLoop(t *testing.T) {
	p := newPlayer(t, single(plan.Loop{Max: 5, StopWhen: []plan.Stop{{Command: &plan.Command{Argv: []string{"make"}}}}}))
	p.says = named(nil)
	p.exec = func(machine.RunCommand) event.CommandFinished {
		return event.CommandFinished{ErrorType: event.ErrorDenied, Error: "not permitted"}
	}
	if o := p.play(); o.OK || o.Error.Message != "not permitted" || len(p.begun) != 2 {
		t.Errorf("%+v", o)
	}
}

// A command that policy asks about waits for the answer. Its question is withdrawn when
// its step is stopped.
func TestACommandWaitsForAnAnswer(t *testing.T) {
	p := newPlayer(t, plan.Plan{Steps: []plan.Step{
		{ID: "make", Timeout: time.Minute, Command: &plan.Command{Argv: []string{"make"}}},
		{ID: "late", Timeout: time.Minute, Command: &plan.Command{Argv: []string{"late"}}},
	}})
	p.asks = true
	p.exec = func(a machine.RunCommand) event.CommandFinished { return exits(0, a.Argv[0]) }
	p.decide()
	pending := p.m.State().Pending
	if len(pending) != 2 || len(p.begun) > 0 || !slices.ContainsFunc(p.m.Next(), func(a machine.Action) bool { _, asks := a.(machine.Ask); return asks }) {
		t.Fatalf("pending %+v, begun %v, next %+v", pending, p.ids(), p.m.Next())
	}
	p.apply(pending[0].Resolve(event.Resolution{Kind: event.ApprovalApproved, Approver: "ann", At: p.now}))
	if o := p.play(); o.OK || len(p.m.State().Pending) > 0 {
		t.Errorf("%+v, pending %+v", o, p.m.State().Pending)
	}
	same(t, p.ids(), []string{"make"})
	p.holds("started make 1\nstarted late 1\ncompleted make\nfailed late: timeout: it was not done after 1m0s\n")
}
