package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/sqlite"
)

// detached is what a command prints about a run that continues without it.
type detached struct {
	Run string `json:"run"`
	PID int    `json:"pid"`
	Log string `json:"log"`
}

// takeUp bounds the time until another process starts a detached run.
const takeUp = 10 * time.Second

// detach creates the run and leaves it to a process with its own session, which
// outlives this process and its terminal.
func (l *launched) detach(ctx context.Context, asJSON bool, record string) error {
	s := l.session
	if err := closeEnv(l.env); err != nil {
		return err
	}
	id := engine.NewID()
	if err := s.engine.Create(ctx, id, l.started, l.env.Secrets); err != nil {
		return err
	}
	d, gone, err := s.app.spawn(id, record)
	if err != nil {
		return fmt.Errorf("%w; continue with '%s runs resume %s'", err, s.app.invocation(), id)
	}
	if err := s.awaitDriver(ctx, d, gone); err != nil {
		return err
	}
	if asJSON {
		return s.app.printJSON(d)
	}
	fmt.Fprintf(s.app.err, "the run continues in the background; its log is %s\nwatch it with: %s runs log %s --follow\n", d.Log, s.app.invocation(), d.Run)
	s.app.showAddress(d.Run)
	return s.app.printf("%s\n", d.Run)
}

// logOf returns the file to which a detached run's process writes its progress and
// its answer.
func (a *app) logOf(run string) string { return filepath.Join(a.beside(), run+".log") }

// serverLogOf returns the file that keeps the end of what the MCP servers of a run print
// as errors.
func (a *app) serverLogOf(run string) string { return filepath.Join(a.beside(), run+".servers.log") }

// spawn starts this binary again to drive the run. gone receives when that process
// has ended.
func (a *app) spawn(id, record string) (detached, <-chan error, error) {
	path, err := a.absoluteJournal()
	if err != nil {
		return detached{}, nil, fmt.Errorf("detach: %w", err)
	}
	log, err := filepath.Abs(a.logOf(id))
	if err == nil {
		err = sqlite.MakeDir(filepath.Dir(log))
	}
	if err != nil {
		return detached{}, nil, fmt.Errorf("detach: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return detached{}, nil, fmt.Errorf("detach: %w", err)
	}
	d := detached{Run: id, Log: log}
	output, err := os.OpenFile(d.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return detached{}, nil, fmt.Errorf("detach: open the log: %w", err)
	}
	defer output.Close()
	args := []string{"--journal", path, "runs", "resume", id}
	if a.configPath != "" {
		args = append(args, "--config", a.configPath)
	}
	if record != "" {
		args = append(args, "--record", record)
	}
	cmd := exec.Command(self, args...)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return detached{}, nil, fmt.Errorf("detach: start the background process: %w", err)
	}
	d.PID = cmd.Process.Pid
	gone := make(chan error, 1)
	go func() { gone <- cmd.Wait() }()
	return d, gone, nil
}

// awaitDriver waits until the other process drives the run, or has driven it: only then
// does the run continue.
func (s *session) awaitDriver(ctx context.Context, d detached, gone <-chan error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, takeUp, errors.New("the background process did not start the run in time"))
	defer cancel()
	watch := s.store.Watch(ctx)
	for {
		r, err := s.store.Run(ctx, d.Run)
		if err == nil && (r.Owner != "" || r.Seq > 1 || r.State == journal.Ended) {
			return nil
		}
		select {
		case err := <-gone:
			if r, readErr := s.store.Run(ctx, d.Run); err == nil || readErr == nil && r.Seq > 1 {
				return nil
			}
			return fmt.Errorf("the background process failed: %w\n%s", err, lastLines(d.Log))
		case <-watch:
		case <-ctx.Done():
			return fmt.Errorf("%w; see %s", context.Cause(ctx), d.Log)
		}
	}
}

// lastLines returns the end of a log, for an error that names its cause.
func lastLines(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}
