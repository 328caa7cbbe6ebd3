// Package pgtest starts PostgreSQL servers on loopback, for tests.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// User is the superuser of a server. It needs no password on loopback unless a
// server is started with one.
const User = "pawl"

// Server is a running PostgreSQL server with its own data.
type Server struct {
	Port int
	dir  string
	bin  string
	// settings are options for the server's command line.
	settings []string
}

// ErrMissing reports that PostgreSQL is not installed.
var ErrMissing = errors.New("PostgreSQL is not installed (make test-cluster installs it where it may)")

// binaries returns the directory of initdb and pg_ctl.
func binaries() (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pg_ctl")
	slices.Reverse(found)
	if path, err := exec.LookPath("pg_ctl"); err == nil {
		found = append([]string{path}, found...)
	}
	for _, path := range found {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			dir := filepath.Dir(real)
			if _, err := os.Stat(filepath.Join(dir, "initdb")); err == nil {
				return dir, nil
			}
		}
	}
	return "", ErrMissing
}

// account returns the user that runs the server. Root needs another user, because
// PostgreSQL refuses to run as root.
func account() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("%w: PostgreSQL does not run as root, and there is no user postgres", ErrMissing)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, err
}

// Start creates and starts a server in a directory of its own. A setting has the form
// "fsync=off".
func Start(ctx context.Context, settings ...string) (*Server, error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	// A user other than root can access sockets and data below /tmp.
	dir, err := os.MkdirTemp("", "pawl-pg-")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, bin: bin, settings: settings}
	if err := s.init(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

// own gives the server's directory to the user that runs it.
func (s *Server) own() error {
	who, err := account()
	if err != nil || who == nil {
		return err
	}
	return os.Chown(s.dir, int(who.Uid), int(who.Gid))
}

// listen chooses a free port.
func (s *Server) listen() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.Port = l.Addr().(*net.TCPAddr).Port
	return l.Close()
}

func (s *Server) init(ctx context.Context) error {
	if err := errors.Join(s.own(), s.listen()); err != nil {
		return err
	}
	if err := s.run(ctx, "initdb", "-D", s.data(), "-U", User, "--auth=trust", "-E", "UTF8", "--locale=C", "-N"); err != nil {
		return err
	}
	return s.Up(ctx)
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// Up starts the server; [Server.Down] stops it.
func (s *Server) Up(ctx context.Context) error {
	options := fmt.Sprintf("-p %d -c listen_addresses=127.0.0.1 -c unix_socket_directories=%s -c max_connections=200", s.Port, s.dir)
	for _, setting := range s.settings {
		options += " -c " + setting
	}
	return s.run(ctx, "pg_ctl", "-D", s.data(), "-o", options, "-l", filepath.Join(s.dir, "log"), "-w", "start")
}

// Down stops the server. The mode is smart, fast or immediate, which is like a crash.
func (s *Server) Down(ctx context.Context, mode string) error {
	return s.run(ctx, "pg_ctl", "-D", s.data(), "-m", mode, "-w", "stop")
}

// Remove stops the server and deletes its data.
func (s *Server) Remove() error {
	return errors.Join(s.Down(context.Background(), "immediate"), os.RemoveAll(s.dir))
}

// URL returns the address of the server's database.
func (s *Server) URL() string {
	return fmt.Sprintf("postgres://%s@127.0.0.1:%d/postgres", User, s.Port)
}

// Process returns the id of the server's first process.
func (s *Server) Process() (int, error) {
	text, err := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	return strconv.Atoi(first)
}

// Program returns the path of a program of PostgreSQL.
func (s *Server) Program(name string) string { return filepath.Join(s.bin, name) }

func (s *Server) run(ctx context.Context, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, program), args...)
	cmd.Dir = s.dir
	who, err := account()
	if err != nil {
		return err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who, Setsid: true}
	// A file, because the server would keep a pipe open.
	out, err := os.Create(filepath.Join(s.dir, "out"))
	if err != nil {
		return err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		text, _ := os.ReadFile(out.Name())
		return fmt.Errorf("%s: %w: %s", program, err, text)
	}
	return nil
}

// Main runs the tests of a package with one server. The server is nil if PostgreSQL is
// not available; see [Skip].
func Main(m *testing.M, use func(*Server, error)) {
	s, err := Start(context.Background())
	use(s, err)
	code := m.Run()
	if s != nil {
		if err := s.Remove(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	os.Exit(code)
}

// Skip skips a test if PostgreSQL is missing; any other error fails it.
func Skip(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, ErrMissing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Pair returns a server, a standby that follows it, and the URL of the one that takes
// writes. They are removed at the end of the test.
func Pair(t testing.TB) (primary, standby *Server, either string) {
	t.Helper()
	primary, err := Start(t.Context())
	Skip(t, err)
	t.Cleanup(func() { _ = primary.Remove() })
	standby, err = primary.Follow(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = standby.Remove() })
	return primary, standby, fmt.Sprintf("postgres://%s@127.0.0.1:%d,127.0.0.1:%d/postgres?target_session_attrs=read-write", User, primary.Port, standby.Port)
}

// Set replaces the settings, effective from the next start.
func (s *Server) Set(settings ...string) { s.settings = settings }

// Standby restarts the server as a standby without a primary.
func (s *Server) Standby(ctx context.Context) error {
	if err := s.Down(ctx, "fast"); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.data(), "standby.signal"), nil, 0o644); err != nil {
		return err
	}
	return s.Up(ctx)
}

// Follow starts a standby that follows the server. Remove it like a server.
func (s *Server) Follow(ctx context.Context) (*Server, error) {
	dir, err := os.MkdirTemp("", "pawl-pg-")
	if err != nil {
		return nil, err
	}
	f := &Server{dir: dir, bin: s.bin}
	if err := errors.Join(f.own(), f.listen()); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	err = f.run(ctx, "pg_basebackup", "-h", "127.0.0.1", "-p", strconv.Itoa(s.Port), "-U", User, "-D", f.data(), "-R", "-X", "stream", "-c", "fast", "-N")
	if err == nil {
		err = f.Up(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return f, nil
}

// Promote makes a standby a server that takes writes.
func (s *Server) Promote(ctx context.Context) error {
	return s.run(ctx, "pg_ctl", "-D", s.data(), "-w", "promote")
}
