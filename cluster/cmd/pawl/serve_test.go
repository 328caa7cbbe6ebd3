package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawlrun/pawl/cluster/internal/pgtest"
	"github.com/pawlrun/pawl/cluster/internal/place"
	"github.com/pawlrun/pawl/cluster/journal/postgres"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/cli"
	"github.com/pawlrun/pawl/internal/host/sandbox"
	"github.com/pawlrun/pawl/journal"
)

var (
	server   *pgtest.Server
	noServer error
)

// asProgram makes the test binary act as the program, with leases as long as it says.
const asProgram = "PAWL_TEST_AS_PROGRAM"

// workerName is the variable with the name of a worker, for [lacksByFile].
const workerName = "PAWL_TEST_WORKER"

// lease is how long the leases of the processes that the tests start are: long enough
// for a busy machine to renew them.
const lease = 4 * time.Second

// leaseOf has another lease for the processes that a test starts.
const leaseOf = "PAWL_TEST_LEASE"

func TestMain(m *testing.M) {
	sandbox.Main()
	if lasts := os.Getenv(asProgram); lasts != "" {
		b := build()
		b.Commands[1] = workerCommand(lacksByFile)
		var err error
		if b.Lease, err = time.ParseDuration(lasts); err != nil {
			panic(err)
		}
		os.Exit(cli.Main(b))
	}
	pgtest.Main(m, func(s *pgtest.Server, err error) { server, noServer = s, err })
}

// lacksByFile lets a worker of the tests lack what the file NAME.lacks in its directory
// says, NAME being that of the worker.
func lacksByFile(dir string) string {
	lack, err := os.ReadFile(filepath.Join(dir, os.Getenv(workerName)+".lacks"))
	if err != nil {
		return place.MachineLacks(dir)
	}
	return string(lack)
}

// password is the password for the database, which accepts any.
const password = "0123456789abcdef-of-the-database"

const agent = `
identity: {name: marks}
model_policy: {primary: {model: scripted/script.yaml}}
tools:
  allow: []
  approvals: {mark: never}
  commands:
    - name: mark
      description: Write a line into the ledger.
      args: {type: object, properties: {n: {type: integer}}}
      command: [sh, ./mark.sh]
`

const (
	runs = 6
	// calls is the number of calls of each run.
	calls = 5
)

// project is a directory with an agent, its tool's ledger, and a schema.
type project struct {
	dir, journal, schema string
}

// newProject returns a project whose journal is a schema of its own, with a name that begins
// with the given one.
func newProject(t testing.TB, schema string) project {
	t.Helper()
	pgtest.Skip(t, noServer)
	p := project{dir: t.TempDir(), schema: schema + "_" + strings.ToLower(rand.Text())}
	p.journal = server.URL() + "?schema=" + p.schema
	for name, text := range map[string]string{
		"marks.yaml": agent, "script.yaml": script(calls, 300*time.Millisecond),
		"mark.sh": "echo \"$PAWL_CALL_ID\" >> ledger\nread -r _ _ _ above _ < /proc/$PPID/stat; echo \"$above $(date +%s%N)\" >> times\nenv >> environment\necho marked\n",
	} {
		p.write(t, name, text)
	}
	return p
}

func (p project) write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// script is a model that makes n calls, one after the other.
func script(n int, delay time.Duration) string {
	var s strings.Builder
	for i := range n {
		fmt.Fprintf(&s, "- {tool_calls: [{name: mark, arguments: {n: %d}}], delay: %s}\n", i, delay)
	}
	return s.String() + "- text: done\n"
}

// effects returns when the calls of a process took effect.
func (p project) effects(t testing.TB, process int) (at []time.Time) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, "times"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var pid int
		var ns int64
		if _, err := fmt.Sscan(line, &pid, &ns); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if pid == process {
			at = append(at, time.Unix(0, ns))
		}
	}
	return at
}

// begin starts runs at a server.
func begin(t testing.TB, url string, n int) {
	t.Helper()
	for range n {
		answer, err := http.Post(url+"/v1/runs", "application/json", strings.NewReader(`{"agent": "marks", "input": "go"}`))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode != http.StatusCreated {
			t.Fatalf("status %d: %s", answer.StatusCode, text)
		}
	}
}

// allEnded waits until all runs have ended, and returns them.
func allEnded(t testing.TB, s journal.Store) (rows []journal.Run) {
	t.Helper()
	await(t, s, "the end of all runs", func() bool {
		all, err := s.Runs(t.Context(), journal.Filter{})
		rows = all
		return err == nil && !slices.ContainsFunc(all, func(r journal.Run) bool { return r.State != journal.Ended })
	})
	return rows
}

func (p project) command(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], append([]string{"--journal", p.journal}, args...)...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), asProgram+"="+cmp.Or(os.Getenv(leaseOf), lease.String()), "PAWL_SANDBOX=none", "PGPASSWORD="+password, "XDG_STATE_HOME="+filepath.Join(p.dir, "state"), "XDG_DATA_HOME="+filepath.Join(p.dir, "data"))
	return cmd
}

// serve starts a server and returns its address and process.
func (p project) serve(t testing.TB, env ...string) (url string, process *exec.Cmd, log *output) {
	t.Helper()
	cmd := p.command("serve", "--addr", "127.0.0.1:0", "--no-auth")
	cmd.Env = append(cmd.Env, env...)
	url, log = listens(t, cmd)
	return url, cmd, log
}

// output is what a process writes while the test reads it.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// listens starts a server and returns its address.
func listens(t testing.TB, cmd *exec.Cmd) (url string, log *output) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	log = &output{}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGCONT)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the server says no address: %v: %s", err, log)
	}
	go io.Copy(io.Discard, out)
	return strings.TrimRight(strings.TrimSpace(line), "/"), log
}

func (p project) ledger(t testing.TB) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, "ledger"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Fields(string(text))
}

// await waits for a condition that depends on other processes.
func await(t testing.TB, s journal.Store, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	watch := s.Watch(ctx)
	for !holds() {
		select {
		case <-watch:
		case <-time.After(time.Second): // not every condition depends on a commit
		case <-ctx.Done():
			t.Fatalf("%s: not within 5 minutes", what)
		}
	}
}

// A server is killed, or stopped until its leases have expired. The other takes over
// its runs and completes them, and no call takes effect twice.
func TestAServerTakesOverTheRunsOfAnother(t *testing.T) {
	for name, signal := range map[string]os.Signal{"killed": syscall.SIGKILL, "stopped": syscall.SIGSTOP} {
		t.Run(name, func(t *testing.T) { takeOver(t, name, signal) })
	}
}

func takeOver(t *testing.T, schema string, signal os.Signal) {
	p := newProject(t, schema)
	each, stopped, usual := calls, time.Duration(0), asProgram+"="+lease.String()
	if full() && signal == syscall.SIGSTOP {
		// The usual lease, and the server wakes while the other drives its runs.
		each, stopped, usual = 45, 40*time.Second, asProgram+"=15s"
		p.write(t, "script.yaml", script(each, time.Second))
	}
	url, first, firstLog := p.serve(t, usual)
	_, second, log := p.serve(t, usual)
	begin(t, url, runs)
	s, err := postgres.Open(t.Context(), p.journal, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	await(t, s, "the first calls", func() bool { return len(p.ledger(t)) >= runs })
	if err := first.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	before := len(p.ledger(t))
	if before == runs*each {
		t.Fatal("all calls were over before the signal")
	}
	if stopped == 0 {
		allEnded(t, s)
	}
	<-time.After(stopped)
	woken := time.Now()
	// The stopped server continues, finds its leases expired and does nothing more.
	_ = first.Process.Signal(syscall.SIGCONT)
	rows := allEnded(t, s)
	if err := second.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = second.Wait()
	if signal == syscall.SIGSTOP {
		await(t, s, "the first server to find its leases gone", func() bool {
			return strings.Count(firstLog.String(), "run left") == runs
		})
		own := p.effects(t, first.Process.Pid)
		if len(own) == 0 {
			t.Error("no effect is known to be of the first server")
		}
		for _, at := range own {
			if at.After(woken) {
				t.Error("an effect began after the server woke")
			}
		}
		t.Logf("%d effects of the server before it was stopped, none after it woke", len(own))
	}
	count(t, p, s, rows, runs*each, before, log.String())
}

// count compares the ledger with the journal.
func count(t *testing.T, p project, s journal.Store, rows []journal.Run, want, before int, log string) {
	t.Helper()
	inDoubt, taken := 0, 0
	for _, r := range rows {
		if v, err := journal.Verify(t.Context(), s, r.ID, r.Head); err != nil {
			t.Errorf("run %s, %+v: %v", r.ID, v, err)
		}
		var o event.Outcome
		err := json.Unmarshal(r.Outcome, &o)
		if err != nil || !o.OK || o.Reason != event.ReasonFinalAnswer {
			t.Errorf("run %s ended as %s (%v)", r.ID, r.Outcome, err)
		}
		records, err := s.Records(t.Context(), r.ID, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, record := range records {
			e, err := event.Decode(record.Body)
			if err != nil {
				t.Fatal(err)
			}
			if result, ok := e.Data.(event.ToolResult); ok && result.ErrorType == event.ErrorInDoubt {
				inDoubt++
			}
		}
	}
	times := map[string]int{}
	for _, key := range p.ledger(t) {
		if times[key]++; times[key] > 1 {
			t.Errorf("call %s had its effect %d times", key, times[key])
		}
	}
	if n := len(times); n > want || n < want-inDoubt {
		t.Errorf("%d calls had their effect, want %d, but %d in doubt", n, want, inDoubt)
	}
	taken = strings.Count(log, "took over a run that a server left")
	if taken == 0 {
		t.Errorf("no run was taken over: %s", log)
	}
	t.Logf("%d runs, %d of them taken over; %d effects before the signal, %d after; %d calls in doubt; none twice", len(rows), taken, before, len(times)-before, inDoubt)
	environment, err := os.ReadFile(filepath.Join(p.dir, "environment"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(environment), password) || strings.Contains(log, password) {
		t.Error("a command or the log has the password of the database")
	}
}
