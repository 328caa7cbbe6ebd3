package cli

import (
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

// callers are agents by their names, of which each calls a command that makes
// NAME.started and waits until there is NAME.go. The agent "asks" asks before it.
func callers(t *testing.T, names ...string) project {
	files := map[string]string{}
	for _, name := range names {
		approvals := "never"
		if name == "asks" {
			approvals = "always"
		}
		files[name+".yaml"] = "identity: {name: " + name + "}\nmodel_policy: {primary: {model: scripted/" + name + ".script}}\n" +
			"tools: {allow: [shell.exec], approvals: {shell.exec: " + approvals + "}}\n"
		files[name+".script"] = shellTurn("touch "+name+".started; until [ -e "+name+".go ]; do sleep 0.01; done") + "- text: the end\n"
	}
	return newProject(t, files)
}

// calls starts a run of an agent and waits until its call is under way.
func (s served) calls(agent string) string {
	s.t.Helper()
	r := asks[journal.Run](s, http.StatusCreated, http.MethodPost, "/v1/runs", `{"agent": "`+agent+`", "input": "go"}`)
	s.eventually("the call of "+agent+" started", s.exists(agent+".started"))
	return r.ID
}

// ends sends the server a signal and waits until it has ended.
func (s served) ends(signal os.Signal) finished {
	s.t.Helper()
	if err := s.process.Process.Signal(signal); err != nil {
		s.t.Fatal(err)
	}
	return s.process.wait()
}

func TestNextServerContinuesOnlyRunsOfTheLastOne(t *testing.T) {
	p := callers(t, "left", "asks", "paused", "stopped", "going")
	first := p.serve()
	left := first.calls("left")
	asking, _ := first.begun()
	paused := first.calls("paused")
	first.post(http.StatusOK, "/v1/runs/"+paused+"/pause", "")
	p.write("paused.go", "")
	first.reaches(paused, journal.Paused)
	byHand := func(agent string) (*startedProcess, string) {
		s := p.start("run", agent+".yaml", "work")
		p.eventually("the call of "+agent+" started", p.exists(agent+".started"))
		return s, p.newest()
	}
	ctrlC, stopped := byHand("stopped")
	if err := ctrlC.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if f := ctrlC.wait(); f.code != 130 {
		t.Errorf("Ctrl-C gives exit code %d: %s", f.code, f.err)
	}
	commandLine, going := byHand("going")

	if f := first.ends(syscall.SIGTERM); f.code != 0 {
		t.Errorf("the server ends with exit code %d: %s", f.code, f.err)
	}
	if row := p.row(left); row.State != journal.Parked || row.Detail != string(event.ParkInterrupted) {
		t.Errorf("the run is %s: %s", row.State, row.Detail)
	}
	before := map[string]journal.Run{}
	for _, id := range []string{asking, paused, stopped, going} {
		before[id] = p.row(id)
	}

	next := p.serve()
	next.reaches(left, journal.Ended) // the oldest, so it is the last that is looked at
	for id, was := range before {
		if is := p.row(id); is.Seq != was.Seq || is.State != was.State || is.Owner != was.Owner {
			t.Errorf("run %s was %s (%s) at event %d, and is %s at %d", id, was.State, was.Detail, was.Seq, is.State, is.Seq)
		}
	}
	next.post(http.StatusOK, "/v1/runs/"+stopped+"/resume", "")
	next.reaches(stopped, journal.Ended)
	p.write("going.go", "")
	if f := commandLine.wait(); f.code != 0 {
		t.Errorf("the command line ends with exit code %d: %s", f.code, f.err)
	}
	next.stop()
}

func TestAnotherServerOfTheJournalTakesOverFromOneThatWasKilled(t *testing.T) {
	p := callers(t, "left", "killed")
	first, second := p.serve(), p.serve()
	commandLine := p.start("run", "killed.yaml", "work")
	p.eventually("the call of the command line started", p.exists("killed.started"))
	killed := p.newest()
	id := first.calls("left")
	_ = commandLine.Process.Kill()
	commandLine.wait()
	first.ends(syscall.SIGKILL)
	second.reaches(id, journal.Ended)
	events := second.journalled(id)
	if r := of[event.RunResumed](events); len(r) != 1 || !r[0].Recovered || !r[0].Served {
		t.Errorf("it was resumed: %+v", r)
	}
	if r := of[event.ToolResult](events); len(r) != 1 || r[0].ErrorType != event.ErrorInDoubt {
		t.Errorf("the call under way was settled as %+v", r)
	}
	if row := p.row(killed); row.State != journal.Running {
		t.Errorf("the run of the command line that was killed is %s", row.State)
	}
	second.stop()
}

// A server that stands still is not dead, so the other one waits for the end of its
// leases.
func TestAnotherServerTakesOverWhenTheLeaseEnds(t *testing.T) {
	if os.Getenv("PAWL_LONG") == "" {
		t.Skip("waits for the end of a lease; PAWL_LONG=1 runs it")
	}
	p := callers(t, "left")
	first, second := p.serve(), p.serve()
	id := first.calls("left")
	if err := first.process.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	second.reaches(id, journal.Ended)
	if err := first.process.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	first.stop()
	if n := len(of[event.RunCompleted](second.journalled(id))); n != 1 {
		t.Errorf("the run ended %d times", n)
	}
	second.stop()
}

// rows: RON-76
func TestAServerThatTearsDownEndsItsRunsAndLoops(t *testing.T) {
	p := callers(t, "left")
	p.write("loop.yaml", strings.ReplaceAll(p.read("left.yaml"), "left", "rounds")+
		"loop: {loopEnabled: true, maxIterations: 3, loopCriteria: {type: max_iterations}}\n")
	p.write("rounds.script", strings.ReplaceAll(p.read("left.script"), "left", "rounds"))
	p.write("team.yaml", "identity: {name: team}\ncomposite: {strategy: sequential, subagents: [{file: member.yaml}]}\n")
	p.write("member.yaml", strings.ReplaceAll(p.read("left.yaml"), "left", "member"))
	p.write("member.script", strings.ReplaceAll(p.read("left.script"), "left", "member"))
	s := p.serveWith([]string{"--on-shutdown", "teardown"})
	s.calls("left")
	asks[journal.Run](s, http.StatusCreated, http.MethodPost, "/v1/runs", `{"agent": "team", "input": "go"}`)
	p.eventually("the member's call started", p.exists("member.started"))
	s.post(http.StatusAccepted, "/api/agents/rounds/loop/start", `{"message": "go"}`)
	p.eventually("the loop's call started", p.exists("rounds.started"))
	var ids []string
	for _, r := range asks[items[journal.Run]](s, http.StatusOK, http.MethodGet, "/v1/runs", "").Items {
		for _, below := range asks[items[journal.Run]](s, http.StatusOK, http.MethodGet, "/v1/runs/"+r.ID+"/tree", "").Items {
			ids = append(ids, below.ID)
		}
	}
	if f := s.ends(syscall.SIGTERM); f.code != 0 {
		t.Errorf("the server ends with exit code %d: %s", f.code, f.err)
	}
	if len(ids) != 5 {
		t.Errorf("there are only the runs %v", ids)
	}
	for _, id := range ids {
		events := p.events(p.exits(0, "runs", "events", id, "--json").out)
		if o := p.outcome(events); o.Reason != event.ReasonCancelled {
			t.Errorf("run %s ended with %+v", id, o)
		}
	}
	if f := p.exits(2, "serve", "--on-shutdown", "leave"); !strings.Contains(f.err, "park or teardown") {
		t.Errorf("another word gets %s", f.err)
	}
}
