package shell

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// leaderAttr puts a command into a separate session, and has it killed when the thread
// that started it ends, which covers the time before the guard knows the group.
func leaderAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitLeader waits for the leader to end without reaping it, so that its process id is
// not reused before the group is killed.
func (g *group) awaitLeader() {
	for {
		err := unix.Waitid(unix.P_PID, g.leader.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	close(g.exited)
}
