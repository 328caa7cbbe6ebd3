package shell

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// leaderAttr puts a command into its own session, and has it killed when the
// thread that started it ends, which covers the moment before the guard knows
// of it.
func leaderAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitLeader waits for the leader to end and does not reap it, so that its
// number stays its own until the group is dealt with.
func (g *group) awaitLeader() {
	for {
		err := unix.Waitid(unix.P_PID, g.leader.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	close(g.exited)
}
