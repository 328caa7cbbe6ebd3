// Package temporaltest starts Temporal servers on loopback, for tests. The program that
// they run is cluster/test/temporal, which is a module of its own because the server
// takes minutes to compile.
package temporaltest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// ErrMissing reports that the program is not there.
var ErrMissing = errors.New("there is no bin/temporal (make bin/temporal compiles it, in minutes)")

// Server is a Temporal server with its own data, which survive a restart.
type Server struct {
	// Addr is its HOST:PORT, the same after a restart.
	Addr    string
	program string
	args    []string
	cmd     *exec.Cmd
}

// Program returns the path of the program: $PAWL_TEMPORAL, or bin/temporal in a
// directory above.
func Program() (string, error) {
	if path := os.Getenv("PAWL_TEMPORAL"); path != "" {
		return path, nil
	}
	dir, err := os.Getwd()
	for err == nil {
		path := filepath.Join(dir, "bin", "temporal")
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
		if dir == filepath.Dir(dir) {
			return "", ErrMissing
		}
		dir = filepath.Dir(dir)
	}
	return "", err
}

// Start starts a server that keeps its data in dir.
func Start(ctx context.Context, dir string, args ...string) (*Server, error) {
	program, err := Program()
	if err != nil {
		return nil, err
	}
	s := &Server{program: program, args: append([]string{"-file", filepath.Join(dir, "temporal.db")}, args...)}
	return s, s.Up(ctx)
}

// Up starts a server that was stopped. A port that was free may be taken before the server
// listens on it, so it tries more than once.
func (s *Server) Up(ctx context.Context) (err error) {
	for range 3 {
		if err = s.up(ctx); err == nil {
			return nil
		}
	}
	return err
}

func (s *Server) up(ctx context.Context) error {
	args := s.args
	if s.Addr != "" {
		_, port, err := net.SplitHostPort(s.Addr)
		if err != nil {
			return err
		}
		args = append([]string{"-port", port}, args...)
	}
	s.cmd = exec.CommandContext(ctx, s.program, args...)
	s.cmd.Stderr = os.Stderr
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return errors.Join(fmt.Errorf("temporaltest: the server does not start: %w", err), s.Down())
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	s.Addr = strings.TrimSpace(line)
	return nil
}

// Down kills the server.
func (s *Server) Down() error {
	err := s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	return err
}

// Pid returns the server's process.
func (s *Server) Pid() int { return s.cmd.Process.Pid }

// New starts a server for a test, which it skips if the program is missing.
func New(t testing.TB, args ...string) *Server {
	t.Helper()
	s, err := Start(context.WithoutCancel(t.Context()), t.TempDir(), args...)
	if errors.Is(err, ErrMissing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Down() })
	return s
}
