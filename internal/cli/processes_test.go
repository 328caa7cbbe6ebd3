package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

// waiting is a run whose first call waits until the file "go" is there.
func waiting(t *testing.T) project {
	return newProject(t, map[string]string{
		"agent.yaml": shellAgent,
		"script.yaml": shellTurn("touch started; until [ -e go ]; do sleep 0.01; done; echo released") +
			"- text: the end\n",
	})
}

func (p project) startWaiting(args ...string) *startedProcess {
	p.t.Helper()
	s := p.start(append([]string{"run", "agent.yaml", "work"}, args...)...)
	p.eventually("the call started", p.exists("started"))
	return s
}

func (p project) row(id string) journal.Run {
	p.t.Helper()
	var r journal.Run
	if err := json.Unmarshal([]byte(p.exits(0, "runs", "show", id, "--json").out), &r); err != nil {
		p.t.Fatal(err)
	}
	return r
}

func TestCancelReachesARunOfAnotherProcessAndStopsItsTool(t *testing.T) {
	p := waiting(t)
	s := p.startWaiting("--json")
	id := p.newest()
	if f := p.exits(0, "runs", "cancel", id, "--reason", "wrong branch"); !strings.Contains(f.out, "received by its process") {
		t.Errorf("cancel says %q", f.out)
	}
	f := s.wait()
	if f.code != 130 {
		t.Errorf("exit code %d, want 130: %s", f.code, f.err)
	}
	events := p.events(f.out)
	if o := p.outcome(events); o.Reason != event.ReasonCancelled || o.Status != event.StatusCancelled {
		t.Errorf("outcome %+v", o)
	}
	if r := of[event.ToolResult](events); len(r) != 1 || r[0].ErrorType != event.ErrorCancelled {
		t.Errorf("the call was settled as %+v", r)
	}
	if c := of[event.CancelRequested](events); len(c) != 1 || c[0].Reason != "wrong branch" || c[0].By == "" {
		t.Errorf("cancel requested %+v", c)
	}
}

func TestPauseParksARunOfAnotherProcessAtItsNextBoundary(t *testing.T) {
	p := waiting(t)
	s := p.startWaiting()
	id := p.newest()
	p.exits(0, "runs", "pause", id)
	if f := p.exits(0, "runs"); !strings.HasPrefix(f.out, id+"  running, pausing  ") {
		t.Errorf("it is listed as %q", f.out)
	}
	if f := p.exits(0, "runs", "show", id); !strings.Contains(f.out, "state     running, pausing\n") {
		t.Errorf("it is shown as %s", f.out)
	}
	p.write("go", "")
	if f := s.wait(); f.code != 4 || !strings.Contains(f.err, "parked: paused") {
		t.Errorf("exit code %d: %s", f.code, f.err)
	}
	p.exits(2, "runs", "pause", id)
	if f := p.exits(0, "runs"); !strings.HasPrefix(f.out, id+"  paused  ") {
		t.Errorf("it is listed as %q", f.out)
	}
	if f := p.exits(0, "runs", "resume", id); f.out != "the end\n" {
		t.Errorf("resume prints %q", f.out)
	}
	p.exits(0, "runs", "replay", id, "--live-model")
	if f := p.exits(0, "runs", "diff", id, p.newest()); !strings.Contains(f.out, "are the same") {
		t.Errorf("its replay did %s", f.out)
	}
}

// Nothing is under way while a call waits to be made again, however long that is.
func TestAPauseBeforeACallIsMadeAgainParksTheRun(t *testing.T) {
	asked := make(chan struct{}, 1)
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "30")
		w.WriteHeader(http.StatusServiceUnavailable)
		asked <- struct{}{}
	}))
	defer busy.Close()
	p := newProject(t, map[string]string{
		"agent.yaml": "identity: {name: fetcher}\nmodel_policy: {primary: {model: scripted/script.yaml}}\ntools:\n  allow: [web.fetch]\n" +
			"  permissions: {network: allowlist, hosts: [127.0.0.1], private_hosts: [127.0.0.1]}\n",
		"script.yaml": "- tool_calls: [{name: web.fetch, arguments: {url: '" + busy.URL + "'}}]\n",
	})
	s := p.start("run", "agent.yaml", "go")
	p.eventually("it asks", func() bool { return len(asked) > 0 })
	id := p.newest()
	p.eventually("it waits", func() bool { return p.row(id).State == journal.Waiting })
	p.exits(0, "runs", "pause", id)
	if f := s.wait(); f.code != 4 || p.row(id).State != journal.Paused {
		t.Errorf("exit code %d, the run is %s: %s", f.code, p.row(id).State, f.err)
	}
}

func TestAMessageReachesARunOfAnotherProcess(t *testing.T) {
	p := waiting(t)
	p.write("script.yaml", shellTurn("touch started; until [ -e go ]; do sleep 0.01; done")+"- text: understood\n  expect: {contains: [leave the tests alone]}\n")
	s := p.startWaiting()
	p.exits(0, "runs", "input", p.newest(), "leave the tests alone")
	p.write("go", "")
	if f := s.wait(); f.code != 0 || f.out != "understood\n" {
		t.Errorf("exit code %d, stdout %q, stderr %s", f.code, f.out, f.err)
	}
}

func TestALimitIsRaisedWhileARunGoes(t *testing.T) {
	p := waiting(t)
	s := p.startWaiting("--max-cycles", "1", "--json")
	p.exits(0, "runs", "budget", p.newest(), "max_cycles", "5")
	p.write("go", "")
	f := s.wait()
	if o := p.outcome(p.events(f.out)); f.code != 0 || o.Cycles != 2 {
		t.Errorf("exit code %d, outcome %+v", f.code, o)
	}
}

func TestTheFirstCtrlCParksAndResumeGoesOn(t *testing.T) {
	p := waiting(t)
	s := p.startWaiting()
	if err := s.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if f := s.wait(); f.code != 130 || !strings.Contains(f.err, "parked: interrupted") || f.out != "" {
		t.Errorf("exit code %d, stdout %q, stderr %s", f.code, f.out, f.err)
	}
	p.write("go", "")
	f := p.exits(0, "runs", "resume", p.newest())
	if f.out != "the end\n" || strings.Contains(f.err, "touch started") {
		t.Errorf("resume prints %q and shows again what was seen: %s", f.out, f.err)
	}
}

// timeout(1) sends its signal to the process and to the process's group.
func TestOneInterruptThatArrivesTwiceParks(t *testing.T) {
	p := waiting(t)
	s := p.startWaiting()
	for range 2 {
		if err := s.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	if f := s.wait(); f.code != 130 || !strings.Contains(f.err, "parked: interrupted") {
		t.Errorf("exit code %d, stderr %s", f.code, f.err)
	}
}

func TestTheSecondCtrlCKills(t *testing.T) {
	p := newProject(t, nil)
	cmd := p.command()
	cmd.Args[0], cmd.Path = "stubborn", strings.TrimSuffix(cmd.Path, "pawl")+"stubborn"
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(pipe); lines.Scan(); {
		// It says one line when it is ready, and then that it parks, for long.
		if err := cmd.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
	}
	_ = cmd.Wait()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGINT {
		t.Errorf("it ended with %s", cmd.ProcessState)
	}
}

// The run goes on only once the follower has shown how far it came. How soon that
// is, is for the journal to prove: here it depends on what else the machine does.
func TestFollowStreamsEventsOfAnotherProcessUntilTheEnd(t *testing.T) {
	p := waiting(t)
	s := p.startWaiting()
	id := p.newest()
	follower := p.command("runs", "events", id, "--follow")
	pipe, err := follower.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := follower.Start(); err != nil {
		t.Fatal(err)
	}
	var last event.Event
	seen := int64(0)
	for lines := bufio.NewScanner(pipe); lines.Scan(); seen++ {
		if err := json.Unmarshal(lines.Bytes(), &last); err != nil {
			t.Fatal(err)
		}
		if last.Type() == event.TypeToolStarted {
			p.write("go", "")
		}
	}
	if err := follower.Wait(); err != nil {
		t.Fatal(err)
	}
	if last.Type() != event.TypeRunCompleted || last.Seq != seen {
		t.Errorf("%d events were shown, the last is %s with the number %d", seen, last.Type(), last.Seq)
	}
	if f := s.wait(); f.code != 0 {
		t.Errorf("the run: %d %s", f.code, f.err)
	}
}

func TestADetachedRunOutlivesTheCommandThatStartedIt(t *testing.T) {
	p := waiting(t)
	var d detached
	if err := json.Unmarshal([]byte(p.exits(0, "run", "agent.yaml", "work", "--detach", "--json").out), &d); err != nil {
		t.Fatal(err)
	}
	id := d.Run
	p.eventually("the call started", p.exists("started"))
	// What ends the terminal's session must not end the run.
	if group, err := syscall.Getpgid(d.PID); err != nil || group != d.PID {
		t.Errorf("the process %d is in group %d (%v), not in a session of its own", d.PID, group, err)
	}
	if r := p.row(id); r.State != journal.Running || r.Owner == "" {
		t.Errorf("the run is %s, driven by %q", r.State, r.Owner)
	}
	p.write("go", "")
	events := p.events(p.exits(0, "runs", "events", id, "--follow").out)
	if o := p.outcome(events); o.FinalOutput != "the end" {
		t.Errorf("outcome %+v", o)
	}
	p.eventually("the log has the answer", func() bool { return strings.Contains(p.read(".pawl/"+id+".log"), "the end\n") })
}

func TestDetachPrintsTheRunsID(t *testing.T) {
	p := waiting(t)
	p.write("go", "")
	f := p.exits(0, "run", "agent.yaml", "work", "--detach")
	id := strings.TrimSuffix(f.out, "\n")
	if len(id) != 12 || !strings.Contains(f.err, id+".log") {
		t.Errorf("stdout %q, stderr %q", f.out, f.err)
	}
	p.exits(0, "runs", "events", id, "--follow")
}

func TestWithADetachedRunItsLogIsRemoved(t *testing.T) {
	for _, verb := range [][]string{{"rm"}, {"prune", "--older-than", "0s"}} {
		t.Run(verb[0], func(t *testing.T) {
			p := waiting(t)
			p.write("go", "")
			id := strings.TrimSuffix(p.exits(0, "run", "agent.yaml", "work", "--detach").out, "\n")
			p.eventually("its process has left", func() bool { r := p.row(id); return r.State == journal.Ended && r.Owner == "" })
			p.exits(0, "runs", "prune", "--older-than", "0s", "--dry-run")
			if log := ".pawl/" + id + ".log"; !p.exists(log)() {
				t.Fatalf("there is no %s", log)
			}
			if verb[0] == "rm" {
				verb = append(verb, id)
			}
			p.exits(0, append([]string{"runs"}, verb...)...)
			if p.exists(".pawl/" + id + ".log")() {
				t.Error("its log is still there")
			}
		})
	}
}

func TestTwoProcessesNeverDriveOneRun(t *testing.T) {
	p := waiting(t)
	s := p.startWaiting()
	id := p.newest()
	f := p.exits(1, "runs", "resume", id)
	if !strings.Contains(f.err, "is being driven by process") || !strings.Contains(f.err, "--follow") {
		t.Errorf("stderr %q", f.err)
	}
	if f := p.exits(2, "runs", "rm", id); strings.Contains(f.err, "--force") || !strings.Contains(f.err, "cancel it first") {
		t.Errorf("what is told does not help with a run that is driven: %q", f.err)
	}
	p.exits(1, "runs", "rm", id, "--force")
	p.write("go", "")
	if f := s.wait(); f.code != 0 {
		t.Errorf("the run: %d %s", f.code, f.err)
	}
}

func TestARunWhoseReaderGoesAwayParksQuietly(t *testing.T) {
	p := waiting(t)
	cmd := p.command("run", "agent.yaml", "work", "--json")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	p.eventually("the call started", p.exists("started"))
	r.Close()
	p.write("go", "")
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 && code != 0 || stderr.String() != "" {
		t.Errorf("exit code %d, stderr %q", code, stderr.String())
	}
	if r := p.row(p.newest()); r.State == journal.Running {
		t.Errorf("the run is left %s", r.State)
	}
}

func TestAListWhoseReaderGoesAwayIsQuiet(t *testing.T) {
	p := waiting(t)
	p.write("go", "")
	p.exits(0, "run", "agent.yaml", "work")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	cmd := p.command("runs", "events", p.newest())
	var stderr strings.Builder
	cmd.Stdout, cmd.Stderr = w, &stderr
	err = cmd.Run()
	w.Close()
	if err != nil || stderr.String() != "" {
		t.Errorf("%v, stderr %q", err, stderr.String())
	}
}
