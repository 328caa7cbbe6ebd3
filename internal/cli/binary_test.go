package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/sqlite"
)

// project is a directory with an agent file, a script and a journal.
type project struct {
	t   *testing.T
	dir string
	// state is what a user's state directory is for it.
	state string
}

// newProject writes files, by name. Tests with processes mostly wait, so they
// run beside each other.
func newProject(t *testing.T, files map[string]string) project {
	t.Helper()
	t.Parallel()
	p := project{t: t, dir: t.TempDir(), state: t.TempDir()}
	for name, content := range files {
		p.write(name, content)
	}
	return p
}

func (p project) write(name, content string) {
	p.t.Helper()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(p.dir, name)), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(content), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p project) read(name string) string {
	p.t.Helper()
	b, err := os.ReadFile(filepath.Join(p.dir, name))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(b)
}

// finished is a process that has ended.
type finished struct {
	code     int
	out, err string
}

// startedProcess is a process that goes on.
type startedProcess struct {
	*exec.Cmd
	t        *testing.T
	out, err *transcript
	// screen ends when all that the process wrote on a terminal was seen.
	screen <-chan struct{}
}

// transcript is what a process has printed so far.
type transcript struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write keeps what is printed.
func (tr *transcript) Write(b []byte) (int, error) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.text.Write(b)
}

// String is all of it.
func (tr *transcript) String() string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.text.String()
}

// patience is how long a test waits for what takes milliseconds on a machine
// that has nothing else to do.
const patience = 2 * time.Minute

func (p project) command(args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	p.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "pawl", args...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "PAWL_JOURNAL=", "XDG_STATE_HOME="+p.state)
	return cmd
}

// pawl runs one command line to its end.
func (p project) pawl(args ...string) finished {
	p.t.Helper()
	return p.start(args...).wait()
}

func (p project) start(args ...string) *startedProcess {
	p.t.Helper()
	return p.startWith(nil, args...)
}

// startWith starts a process with more in its environment.
func (p project) startWith(env []string, args ...string) *startedProcess {
	p.t.Helper()
	cmd := p.command(args...)
	cmd.Env = append(cmd.Env, env...)
	return p.begin(cmd)
}

// begin starts a command and keeps what it prints.
func (p project) begin(cmd *exec.Cmd) *startedProcess {
	p.t.Helper()
	s := &startedProcess{Cmd: cmd, t: p.t, out: new(transcript), err: new(transcript)}
	s.Stdout, s.Stderr = s.out, s.err
	if err := s.Start(); err != nil {
		p.t.Fatal(err)
	}
	return s
}

func (s *startedProcess) wait() finished {
	s.t.Helper()
	f := finished{}
	if err := s.Wait(); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			s.t.Fatal(err)
		}
		f.code = exit.ExitCode()
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			f.code = -int(status.Signal())
		}
	}
	if s.screen != nil {
		<-s.screen
	}
	f.out, f.err = s.out.String(), s.err.String()
	return f
}

// exits runs a command line that must end with a code.
func (p project) exits(code int, args ...string) finished {
	p.t.Helper()
	f := p.pawl(args...)
	if f.code != code {
		p.t.Fatalf("pawl %s: exit code %d, want %d\nstdout: %s\nstderr: %s", strings.Join(args, " "), f.code, code, f.out, f.err)
	}
	return f
}

// eventually waits until a condition holds that another process brings about.
func (p project) eventually(what string, holds func() bool) {
	p.t.Helper()
	pause := 2 * time.Millisecond
	for deadline := time.Now().Add(patience); !holds(); pause = min(pause*3/2, 50*time.Millisecond) {
		if time.Now().After(deadline) {
			p.t.Fatalf("it never came about that %s", what)
		}
		time.Sleep(pause)
	}
}

func (p project) exists(name string) func() bool {
	return func() bool {
		_, err := os.Stat(filepath.Join(p.dir, name))
		return err == nil
	}
}

// newest is the newest run of the journal.
func (p project) newest() string {
	p.t.Helper()
	r, err := newestOf(p.t.Context(), filepath.Join(p.dir, ".pawl", "journal.db"))
	if err != nil {
		p.t.Fatal(err)
	}
	return r.ID
}

// newestOf is the newest run of a journal. It is asked for so often that a
// process of its own would cost too much each time.
func newestOf(ctx context.Context, path string) (journal.Run, error) {
	s, err := sqlite.Open(ctx, path, sqlite.Options{ReadOnly: true})
	if err != nil {
		return journal.Run{}, err
	}
	defer s.Close()
	runs, err := s.Runs(ctx, journal.Filter{Limit: 1})
	if err == nil && len(runs) == 0 {
		err = errors.New("the journal has no run")
	}
	if err != nil {
		return journal.Run{}, err
	}
	return runs[0], nil
}

// events decodes lines of --json.
func (p project) events(out string) []event.Event {
	p.t.Helper()
	var events []event.Event
	for line := range strings.Lines(out) {
		var e event.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			p.t.Fatalf("not an event: %s: %v", line, err)
		}
		events = append(events, e)
	}
	return events
}

// of returns the payloads of one type.
func of[T event.Data](events []event.Event) []T {
	var out []T
	for _, e := range events {
		if d, ok := e.Data.(T); ok {
			out = append(out, d)
		}
	}
	return out
}

// last is the run's outcome, which is the last event.
func (p project) outcome(events []event.Event) event.Outcome {
	p.t.Helper()
	ends := of[event.RunCompleted](events)
	if len(ends) != 1 || events[len(events)-1].Type() != event.TypeRunCompleted {
		p.t.Fatalf("%d terminal events, want one, as the last", len(ends))
	}
	return ends[0].Outcome
}
