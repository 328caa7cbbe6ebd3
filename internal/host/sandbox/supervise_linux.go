//go:build amd64 || arm64

package sandbox

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// supervisor is the process that supervises a command.
type supervisor struct {
	plan    plan
	control *bufio.Reader
	command int

	mu     sync.Mutex
	status *json.Encoder
	limit  string
	// over is closed when all processes must be killed.
	over chan struct{}
	// reaped reports that the command's process id may have been reused.
	reaped bool
}

// supervise runs a supervisor to its end and returns its exit code. It reports errors
// before the command runs; after that only the command's own end matters.
func supervise() int {
	s := &supervisor{
		control: bufio.NewReader(os.NewFile(fdControl, "control")), status: json.NewEncoder(os.NewFile(fdStatus, "status")),
		over: make(chan struct{}),
	}
	// A handled signal is reset in child processes; an ignored one would stay ignored.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	if err := s.begin(); err != nil {
		errno, _ := errors.AsType[syscall.Errno](err)
		s.report(report{Error: err.Error(), Errno: errno})
		return 1
	}
	go s.obey()
	if s.plan.Limits.Processes > 0 || s.plan.Limits.MemoryBytes > 0 {
		go s.watch()
	}
	s.reap()
	return 0
}

func (s *supervisor) begin() error {
	// The command also must not inherit other files of this program.
	if err := unix.CloseRange(fdControl, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("keep files from the command: %w", err)
	}
	line, err := s.control.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read the plan: %w", err)
	}
	if err := json.Unmarshal(line, &s.plan); err != nil {
		return fmt.Errorf("read the plan: %w", err)
	}
	if s.plan.Unshared != nil {
		if err := s.plan.Unshared.build(); err != nil {
			return err
		}
	}
	if err := s.prepare(); err != nil {
		return err
	}
	for _, port := range s.plan.Listen {
		if err := offerListener(port); err != nil {
			return fmt.Errorf("listen for the proxy on port %d: %w", port, err)
		}
	}
	if s.command, err = s.start(); err != nil {
		return err
	}
	// If the report has no reader, the order to kill everything follows: exiting now
	// would leave the command behind.
	_ = s.report(report{Started: true})
	return nil
}

// prepare hides this process from the command, and makes it the parent of all orphans.
func (s *supervisor) prepare() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("guard the supervisor: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("adopt orphans: %w", err)
	}
	if s.plan.Namespace && s.plan.Unshared == nil {
		// The parent is bwrap, which has one thread; see prctl(2) for why that matters.
		if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
			return fmt.Errorf("follow bwrap: %w", err)
		}
	}
	if s.plan.Free {
		return nil
	}
	return unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
}

// start starts the command from a restricted thread, so that the command is restricted
// and this process is not. The thread waits forever, because the command dies with it.
func (s *supervisor) start() (pid int, err error) {
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		if err = restrict(s.plan); err == nil {
			pid, err = s.exec()
		}
		close(done)
		select {}
	}()
	<-done
	return pid, err
}

func (s *supervisor) exec() (int, error) {
	input := os.Stdin
	if !s.plan.Input {
		var err error
		if input, err = os.Open(os.DevNull); err != nil {
			return 0, err
		}
	}
	defer input.Close() // a writer then receives EPIPE
	errs := cmp.Or(s.plan.Errors, fdOutput)
	attr := &syscall.ProcAttr{
		Dir: s.plan.Dir, Env: s.plan.Env, Files: []uintptr{input.Fd(), fdOutput, uintptr(errs)},
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	}
	pid, err := syscall.ForkExec(s.plan.Args[0], s.plan.Args, attr)
	if err != nil {
		return 0, fmt.Errorf("start the command: %w", err)
	}
	if errs != fdOutput {
		err = syscall.Close(errs)
	}
	return pid, errors.Join(err, syscall.Close(fdOutput))
}

// obey executes orders until the end.
func (s *supervisor) obey() {
	for {
		order, err := s.control.ReadByte()
		if err != nil {
			s.end("")
			return
		}
		if order == orderTerminate {
			s.terminate()
		}
	}
}

func (s *supervisor) terminate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.reaped {
		_ = unix.Kill(-s.command, unix.SIGTERM)
	}
}

// end kills everything, because of a limit if one is given. In a process namespace the
// kernel does so when this process ends; otherwise it repeats until [supervisor.reap]
// finds no process, and this process ends.
func (s *supervisor) end(limit string) {
	s.mu.Lock()
	if s.isOver() {
		s.mu.Unlock()
		return
	}
	s.limit = limit
	close(s.over)
	ended := s.reaped
	s.mu.Unlock()
	if s.plan.Namespace {
		if !ended {
			_ = s.report(report{Ended: true, Signal: unix.SIGKILL, Limit: limit})
		}
		os.Exit(0)
	}
	// The kernel's lists may miss a process that is being forked or adopted at this
	// moment, and no later pass would find it.
	for {
		killDescendants()
		time.Sleep(watchInterval)
	}
}

func (s *supervisor) isOver() bool {
	select {
	case <-s.over:
		return true
	default:
		return false
	}
}

// reap waits for every child of this process, and returns when there is none and
// everything must end.
func (s *supervisor) reap() {
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil: // no child is left; its output is being read
			<-s.over
			return
		case pid == s.command:
			s.commandEnded(ws)
		}
		if s.isOver() {
			killDescendants()
		}
	}
}

// commandEnded reports the exit in one step: the reader of the report may end this
// process at once, as in a namespace, and no other process would report the rest.
func (s *supervisor) commandEnded(ws unix.WaitStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reaped = true
	r := report{Ended: true, Exit: ws.ExitStatus(), Limit: s.limit}
	if ws.Signaled() {
		r.Exit, r.Signal = 0, ws.Signal()
	}
	_ = s.status.Encode(r)
}

func (s *supervisor) report(r report) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status.Encode(r)
}
