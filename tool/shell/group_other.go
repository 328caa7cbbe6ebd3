//go:build !linux

package shell

import "syscall"

// leaderAttr puts a command into its own session.
func leaderAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// awaitLeader waits for the leader to end. It is reaped here, so for a moment
// its number could be given to another process; no portable call avoids that.
func (g *group) awaitLeader() {
	_ = g.leader.Wait()
	close(g.exited)
}
