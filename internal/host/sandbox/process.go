package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pawlrun/pawl/internal/host/egress"
)

// Command is a command for a box to run.
type Command struct {
	// Args are the path of the program and its arguments.
	Args []string
	Dir  string
	Env  []string
	// Input is the command's stdin, nil for none. Output receives its stdout, Errors
	// its stderr; nil Errors means Output.
	Input, Output, Errors *os.File
	// Lasting reports that the command runs beside others, for as long as a run.
	// Changes by others are not undone at its end; if the tier does not otherwise
	// enforce protected paths, the workspace is read-only for it.
	Lasting bool
	// Grants are additional paths that it may write.
	Grants []Grant
}

// End describes how a command ended.
type End struct {
	Code int
	// Signal is the signal that killed it; if it is 0, Code is the exit code.
	Signal syscall.Signal
	// Limit is the limit for which it was killed: memory or processes.
	Limit string
	// Reached are the machines that it requested, if a list limits them.
	Reached []Reach
	// Changed are the protected paths that it changed.
	Changed []Change
}

// Process is a running command in a box, with all that it started.
type Process struct {
	supervisor *exec.Cmd
	control    *os.File
	ended      chan struct{}
	trouble    *trouble
	// proxy is nil if nothing may be reached, or everything.
	proxy *proxy
	// before holds the snapshots of what the tier does not protect.
	before []*snapshot
	call   *call

	end    End
	lost   error
	kill   sync.Once
	waited sync.Once
	// adopts reports that this process adopts orphans of the supervisor.
	adopts   bool
	statuses *json.Decoder
	status   *os.File
}

const (
	// startTimeout bounds the start of a command.
	startTimeout = 20 * time.Second
	// killGrace is how long a supervisor has to kill its processes.
	killGrace = 5 * time.Second
)

// Start starts a command and returns when it runs. An error of the command itself (no
// such program, too long arguments) wraps the system's error.
func (b *Box) Start(c Command) (*Process, error) {
	p := &Process{ended: make(chan struct{}), trouble: &trouble{}, adopts: b.shim.adopts, call: b.calls.begin(b.granted(c.Grants))}
	if err := p.prepare(b, c); err != nil {
		p.call.end()
		return nil, err
	}
	return p, nil
}

// prepare takes the snapshots and starts the command.
func (p *Process) prepare(b *Box, c Command) error {
	if b.tier == None {
		return p.start(b, view{}, c)
	}
	v, err := b.view(c.Grants)
	if err != nil {
		return err
	}
	switch {
	case !c.Lasting:
		if p.before, err = b.snapshots(v, b.granted(c.Grants), p.call); err != nil {
			return err
		}
	case b.tier == Landlock && b.policy.Protected != nil:
		v.full, v.write = false, nil
	}
	return p.start(b, v, c)
}

func (p *Process) start(b *Box, v view, c Command) error {
	controlOut, control, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	defer controlOut.Close()
	status, statusIn, err := os.Pipe()
	if err != nil {
		control.Close()
		return fmt.Errorf("sandbox: %w", err)
	}
	defer statusIn.Close()
	p.control, p.status, p.statuses = control, status, json.NewDecoder(status)
	todo := b.plan(v, c)
	p.supervisor = b.command(v)
	p.supervisor.Stderr = p.trouble
	if todo.Input = c.Input != nil; todo.Input {
		p.supervisor.Stdin = c.Input
	}
	p.supervisor.ExtraFiles = []*os.File{controlOut, statusIn, c.Output, b.shim.exe}
	var listener *os.File
	if len(todo.Listen) > 0 {
		ours, theirs, err := channel()
		if err != nil {
			control.Close()
			status.Close()
			return err
		}
		defer theirs.Close()
		defer ours.Close()
		p.supervisor.ExtraFiles, listener = append(p.supervisor.ExtraFiles, theirs), ours
	}
	if c.Errors != nil {
		todo.Errors = firstExtra + len(p.supervisor.ExtraFiles)
		p.supervisor.ExtraFiles = append(p.supervisor.ExtraFiles, c.Errors)
	}
	line, err := json.Marshal(todo)
	if err != nil {
		control.Close()
		status.Close()
		return err
	}
	line = append(line, '\n')
	// The plan is in the pipe before the supervisor starts. Otherwise a Pawl that is
	// stopped (SIGSTOP) in between would start the command when it continues.
	line, err = fill(control, line)
	if err == nil {
		err = p.supervisor.Start()
	}
	if err != nil {
		control.Close()
		status.Close()
		return b.refused(err)
	}
	statusIn.Close()
	controlOut.Close()
	err = p.begin(line)
	if err == nil && listener != nil {
		err = p.connect(listener, b.policy.Egress, todo.Listen[1:])
	}
	if err != nil {
		p.Kill()
		p.await()
		status.Close()
		return p.explain(err)
	}
	go p.listen()
	return nil
}

// command returns the supervisor's command.
func (b *Box) command(v view) *exec.Cmd {
	cmd := &exec.Cmd{Path: programPath, Args: []string{"pawl", supervisorArg}, Dir: "/", Env: []string{}, SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	switch b.tier {
	case Bubblewrap:
		cmd.Path, _ = findBubblewrap()
		cmd.Args = append([]string{"bwrap"}, v.wrap(b.policy.Egress.Network, b.policy.Limits.MemoryBytes, b.temp, b.home)...)
	case Namespaces:
		unshare(cmd.SysProcAttr, b.policy.Egress.Network)
	}
	return cmd
}

// refused adds what the system denied to the error of a supervisor that does not start.
func (b *Box) refused(err error) error {
	if refusal, ok := errors.AsType[*fs.PathError](err); ok && b.tier == Namespaces {
		return fmt.Errorf("sandbox: new namespaces are refused: %w", refusal.Err)
	}
	return fmt.Errorf("sandbox: start: %w", err)
}

// plan returns the supervisor's instructions.
func (b *Box) plan(v view, c Command) plan {
	if b.tier == None {
		return barePlan(c)
	}
	todo := plan{Args: c.Args, Env: c.Env, Dir: c.Dir, Limits: b.policy.Limits, Families: ownNetwork}
	// A link to the directory may be in a place that is hidden from the command.
	if dir, err := filepath.EvalSymlinks(c.Dir); err == nil {
		todo.Dir = dir
	}
	if b.tier.mounts() {
		todo.Namespace = true
		if b.tier == Namespaces {
			todo.Unshared, todo.Landlock = b.unshared(v), v.within()
		} else {
			todo.OwnSockets = b.policy.Egress.Network == egress.NetworkHost
		}
		if !v.full {
			todo.Env = with(cached(todo.Env, v), "TMPDIR=/tmp")
		}
		if b.policy.Egress.Network == egress.NetworkAllowlist {
			todo.Listen = append([]uint16{proxyPort}, lentPorts(b.policy.Egress)...)
			todo.Env = with(todo.Env, proxyVariables(b.policy.Egress)...)
		}
		return todo
	}
	if b.policy.Egress.Network == egress.NetworkNone {
		todo.Families = []int{}
	}
	todo.Landlock = v.rules(b.temp, b.home)
	todo.Env = lookingOnly(todo.Env)
	if !v.full {
		todo.Env = moved(cached(todo.Env, v), v, b.temp, b.home)
	}
	return todo
}

// fill writes to a pipe without a reader, and returns what the pipe does not hold.
func fill(pipe *os.File, text []byte) (rest []byte, err error) {
	raw, err := pipe.SyscallConn()
	if err != nil {
		return text, err
	}
	n := 0
	err = raw.Write(func(fd uintptr) bool {
		n, _ = syscall.Write(int(fd), text) // begin writes the rest and reports errors
		return true
	})
	return text[max(n, 0):], err
}

// begin sends the rest of the plan to the supervisor and waits until the command runs.
func (p *Process) begin(rest []byte) error {
	if err := p.status.SetReadDeadline(time.Now().Add(startTimeout)); err != nil {
		return err
	}
	// A supervisor that is gone reads nothing; its report, or bwrap's, contains the
	// reason.
	if _, err := p.control.Write(rest); err != nil && !errors.Is(err, syscall.EPIPE) {
		return err
	}
	var r report
	if err := p.statuses.Decode(&r); err != nil {
		return err
	}
	switch {
	case r.Started:
		return p.status.SetReadDeadline(time.Time{})
	case r.Errno != 0:
		return fmt.Errorf("%s: %w", strings.TrimSuffix(r.Error, ": "+r.Errno.Error()), r.Errno)
	}
	return errors.New(r.Error)
}

// connect serves the command's proxy, and the machine's own ports, on the sockets that
// the supervisor created.
func (p *Process) connect(from *os.File, rules egress.Rules, ports []uint16) error {
	l, err := takeListener(from)
	if err != nil {
		return fmt.Errorf("take the socket of the proxy: %w", err)
	}
	serving := newProxy(rules)
	serving.serve(l)
	for _, port := range ports {
		l, err := takeListener(from)
		if err != nil {
			serving.close()
			return fmt.Errorf("take the socket of port %d: %w", port, err)
		}
		serving.lend(l, port)
	}
	p.proxy = serving
	return nil
}

// explain adds bwrap's message to the error of a failed start.
func (p *Process) explain(err error) error {
	if said := p.trouble.String(); said != "" && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)) {
		return fmt.Errorf("sandbox: start: %s", said)
	}
	return fmt.Errorf("sandbox: start: %w", err)
}

// listen waits for the end of the command.
func (p *Process) listen() {
	defer p.status.Close()
	defer close(p.ended)
	var r report
	if err := p.statuses.Decode(&r); err != nil {
		p.lost = fmt.Errorf("sandbox: the supervisor of the command is gone: %w", err)
		p.end = End{Signal: syscall.SIGKILL}
		return
	}
	p.end = End{Code: r.Exit, Signal: r.Signal, Limit: r.Limit}
}

// Terminate asks the command and its process group to end.
func (p *Process) Terminate() { _, _ = p.control.Write([]byte{orderTerminate}) }

// Kill ends the command and all that it started.
func (p *Process) Kill() { p.kill.Do(func() { p.control.Close() }) }

// Ended returns a channel that is closed when the command has ended. Background
// processes run until [Process.Wait] or [Process.Kill].
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Wait kills what still runs, and returns when all processes have ended.
func (p *Process) Wait() (End, error) {
	p.Kill()
	p.await()
	<-p.ended
	for _, s := range p.before {
		p.end.Changed = append(p.end.Changed, s.settle()...)
	}
	p.before = nil
	p.call.end()
	if p.proxy != nil {
		p.proxy.close()
		p.end.Reached = p.proxy.reaches()
	}
	return p.end, p.lost
}

// await waits for the supervisor, and kills it if it does not end.
func (p *Process) await() {
	p.waited.Do(func() {
		late := time.AfterFunc(killGrace, func() { _ = syscall.Kill(-p.supervisor.Process.Pid, syscall.SIGKILL) })
		defer late.Stop()
		// The supervisor's exit status says nothing about the command, but a supervisor
		// that was killed has not ended its processes.
		if err := p.supervisor.Wait(); err != nil && p.adopts {
			killOrphans()
		}
	})
}

// trouble keeps the first error messages of a supervisor or bwrap.
type trouble struct {
	mu   sync.Mutex
	text []byte
}

const maxTrouble = 4 << 10

// Write never fails.
func (t *trouble) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p[:min(len(p), maxTrouble-len(t.text))]...)
	return len(p), nil
}

func (t *trouble) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}

// with sets variables in an environment and removes earlier values: if a variable
// occurs twice, some programs use the first value and others the last.
func with(env []string, set ...string) []string {
	var out []string
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		if !slices.ContainsFunc(set, func(other string) bool { return strings.HasPrefix(other, name+"=") }) {
			out = append(out, kv)
		}
	}
	return append(out, set...)
}

// cached sets the variable of the build cache if the cache would not be writable,
// because it is outside the home directory and the workspace. Without the variable, the
// cache is in the home directory.
func cached(env []string, v view) []string {
	dir := lookup(env, "GOCACHE")
	if dir == "" || v.home != "" && inside(dir, v.home) || inside(dir, v.workspace) {
		return env
	}
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool { return strings.HasPrefix(kv, "GOCACHE=") })
}
