package shell

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// group is a running command with everything that it starts in its process group. Its
// first process leads a separate session, so it has no terminal to ask for a password
// on.
type group struct {
	leader *exec.Cmd
	guard  *guard

	exited chan struct{} // closed when the leader has ended

	mu      sync.Mutex
	stopped bool
	reaped  bool
}

// The scripts wait for a line before they execute the program, whose input follows that
// line; a shell reads no further than the line. The line is written when the guard
// knows the group, so nothing of the program runs unguarded.
const (
	gateScript  = `read -r go && exec "$@" </dev/null`
	inputScript = `read -r go && exec "$@"`
)

// startGated starts a program in a new group. cmd sets its directory and its outputs;
// if it reads, the caller writes the input.
func startGated(cmd *exec.Cmd, p process) (*group, io.WriteCloser, error) {
	w, err := startGuard()
	if err != nil {
		return nil, nil, err
	}
	script := gateScript
	if p.input != nil {
		script = inputScript
	}
	cmd.Path, cmd.Args = "/bin/sh", append([]string{"/bin/sh", "-c", script, "sh"}, p.argv...)
	cmd.SysProcAttr = leaderAttr()
	gate, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		w.dismiss()
		return nil, nil, err
	}
	w.watch(cmd.Process.Pid)
	fmt.Fprintln(gate)
	return &group{leader: cmd, guard: w, exited: make(chan struct{})}, gate, nil
}

// signal signals every member of the group. The group's number is the leader's process
// id, which the kernel does not reuse before the leader is reaped; after that nothing
// is sent.
func (g *group) signal(s syscall.Signal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.reaped {
		_ = syscall.Kill(-g.leader.Process.Pid, s)
	}
}

// stop asks a group with a running leader to end, and kills it after a while.
func (g *group) stop() {
	select {
	case <-g.exited:
		return
	default:
	}
	g.mu.Lock()
	g.stopped = true
	g.mu.Unlock()
	g.signal(syscall.SIGTERM)
	if !wait(g.exited, termGrace) {
		g.signal(syscall.SIGKILL)
	}
}

// end kills the rest of the group after its leader has ended, and reaps the leader. It
// reports whether the group was stopped before.
func (g *group) end() (state *os.ProcessState, stopped bool, err error) {
	g.signal(syscall.SIGKILL)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.leader.ProcessState == nil {
		err = g.leader.Wait()
	}
	g.reaped = true
	g.guard.dismiss()
	if g.leader.ProcessState != nil {
		err = nil // the exit status is not an error here
	}
	return g.leader.ProcessState, g.stopped, err
}

// guard is a process that briefly outlives this one: it kills the group when this
// process is gone, for whatever reason. The system itself would kill only the leader.
type guard struct {
	cmd  *exec.Cmd
	line io.WriteCloser
}

// guardScript reads the number of the group, and then waits for the end of its input,
// which comes when no process holds the other end.
const guardScript = `trap '' HUP INT TERM; read -r group || exit; read -r end; kill -s KILL -- "-$group"`

func startGuard() (*guard, error) {
	cmd := exec.Command("/bin/sh", "-c", guardScript)
	cmd.Dir, cmd.Env = "/", []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	line, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &guard{cmd: cmd, line: line}, nil
}

func (w *guard) watch(group int) { fmt.Fprintln(w.line, group) }

// dismiss ends the guard. It kills the guard before its input ends, so that the guard
// kills nothing.
func (w *guard) dismiss() {
	_ = w.cmd.Process.Kill()
	_ = w.cmd.Wait()
}
