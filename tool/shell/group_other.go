//go:build !linux

package shell

import "syscall"

// leaderAttr puts a command into a separate session.
func leaderAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// awaitLeader waits for the leader to end. It also reaps the leader, so its process id
// could briefly be reused; no portable call avoids that.
func (g *group) awaitLeader() {
	_ = g.leader.Wait()
	close(g.exited)
}
