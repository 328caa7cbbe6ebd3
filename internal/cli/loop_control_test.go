package cli

import (
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

// held is a loop of which each iteration has one call that goes on until the file "go"
// is there, and says with files that it began and that it ended.
func held(t *testing.T, loop string) project {
	return newProject(t, map[string]string{
		"agent.yaml": shellAgent + "loop: {loopEnabled: true, " + loop + "}\n",
		"script.yaml": shellTurn("echo x >> began; touch started; until [ -e go ]; do sleep 0.01; done; touch ended") +
			"- text: I have tried.\n",
	})
}

// rows: RON-43, RON-44
func TestAPausedLoopGoesOnWithItsNextIteration(t *testing.T) {
	p := held(t, "maxIterations: 2")
	s := p.startWaiting()
	id := p.newestRoot()
	p.exits(0, "runs", "pause", id)
	p.write("go", "")
	if f := s.wait(); f.code != 4 || !strings.Contains(f.err, "parked: paused") || p.row(id).State != journal.Paused {
		t.Errorf("exit code %d: %s", f.code, f.err)
	}
	if n := strings.Count(p.read("began"), "x"); n != 1 {
		t.Errorf("%d iterations began before the pause", n)
	}
	if f := p.exits(0, "runs", "resume", id); f.out != "I have tried.\n" || !strings.Contains(f.err, "maxIterations after 2 iterations") {
		t.Errorf("resume prints %q and says %s", f.out, f.err)
	}
	if n := strings.Count(p.read("began"), "x"); n != 2 {
		t.Errorf("%d iterations began in all", n)
	}
	p.exits(0, "runs", "verify", id)
}

// rows: RON-45
func TestACancelledLoopKillsWhatItsIterationRuns(t *testing.T) {
	p := held(t, "maxIterations: 2")
	s := p.startWaiting()
	id := p.newestRoot()
	p.exits(0, "runs", "cancel", id)
	f := s.wait()
	p.write("go", "") // a call that is still there would end now
	if o := p.outcome(p.events(p.exits(0, "runs", "events", id).out)); f.code != 130 || o.Status != event.StatusCancelled || o.Reason != event.ReasonCancelled {
		t.Errorf("exit code %d, outcome %+v", f.code, o)
	}
	if n := strings.Count(p.read("began"), "x"); n != 1 || p.exists("ended")() {
		t.Errorf("%d iterations began, and the call ended by itself: %t", n, p.exists("ended")())
	}
}

// rows: RON-46
func TestACancelledLoopClosesTheReviewThatItWaitsFor(t *testing.T) {
	p := rondoLoop(t, "loopCriteria: {type: manual}", "- text: a\n")
	p.exits(4, "run", "agent.yaml", "Try.")
	id := p.newestRoot()
	p.exits(0, "runs", "cancel", id)
	events := p.events(p.exits(0, "runs", "events", id).out)
	if o := p.outcome(events); o.Status != event.StatusCancelled || o.Error != nil {
		t.Errorf("outcome %+v", o)
	}
	if r := of[event.ReviewResolved](events); len(r) != 1 || r[0].Kind != event.ApprovalCancelled {
		t.Errorf("the review was closed as %+v", r)
	}
	if f := p.exits(2, "runs", "approve", id, "review-1"); !strings.Contains(f.err, "review-1") && !strings.Contains(f.err, "ended") {
		t.Errorf("a decision that comes too late is told %q", f.err)
	}
}

// What is proposed in the place of going on with a loop that has ended is not refused.
func TestALoopThatHasEndedIsNotContinued(t *testing.T) {
	p := rondoLoop(t, "maxIterations: 1", "- text: a\n")
	p.exits(0, "run", "agent.yaml", "Try.")
	id := p.newestRoot()
	f := p.exits(2, "runs", "resume", id)
	if strings.Contains(f.err, "--continue") || !strings.Contains(f.err, "runs fork "+id) {
		t.Errorf("it says %s", f.err)
	}
	p.exits(2, "run", "--continue", id, "Go on.")
	p.exits(0, "runs", "fork", id, "--seq", "2")
}

// rows: RON-32
func TestATerminalShowsALoopInOneLine(t *testing.T) {
	p := held(t, "maxIterations: 3")
	y, s := p.atTerminal([]string{"NO_COLOR=1"}, "run", "agent.yaml", "work")
	p.eventually("the first iteration shows", func() bool { return strings.Contains(y.seen(), "○ 0/3") })
	p.write("go", "")
	f := s.wait()
	<-y.done
	for _, want := range []string{"● 3/3  USD 0.0000", "  I have tried.", "maxIterations after 3 iterations"} {
		if !strings.Contains(y.seen(), want) {
			t.Errorf("no %q on the terminal: %q", want, y.seen())
		}
	}
	if strings.Contains(y.seen(), "\x1b[3") || strings.Contains(y.seen(), "loop.0") || f.code != 0 {
		t.Errorf("exit code %d: %q", f.code, y.seen())
	}
}
