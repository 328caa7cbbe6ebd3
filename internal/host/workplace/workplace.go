// Package workplace decides whether the files of a run are on this machine, and clones the
// repository of a run that works in one.
package workplace

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pawlrun/pawl/event"
)

// HostVariable is the variable in the environment that names this machine for the
// journals that it shares with others.
const HostVariable = "PAWL_HOST"

// ErrElsewhere is wrapped by the error for a run whose files are on another machine.
var ErrElsewhere = errors.New("this machine does not have")

// Here is what this machine has for runs. The zero value is a machine that shares no
// journal with others.
type Here struct {
	// Host is the name of this machine.
	Host string
	// Labels are what it has; a label NAME=DIR has the directory of its runs.
	Labels []string
	// Workspace is the directory of runs whose place has none of its own.
	Workspace string
	// Clones is the directory for clones, and Env the environment of git.
	Clones string
	Env    []string
}

// Name returns the name of this machine: what the environment says, or the host's name
// with a part that other machines of that name do not have.
func Name(getenv func(string) string) string {
	if name := getenv(HostVariable); name != "" {
		return name
	}
	name, err := os.Hostname()
	if err != nil {
		name = "unknown"
	}
	if id, err := os.ReadFile("/etc/machine-id"); err == nil && len(id) > 0 {
		sum := sha256.Sum256(id)
		name += "-" + hex.EncodeToString(sum[:3])
	}
	return name
}

// labelName is what a label and a host may be called.
var labelName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]{0,99}$`)

// CheckLabel returns an error unless a label is NAME, or NAME=DIR with an absolute
// directory that exists.
func CheckLabel(label string) error {
	name, dir, has := strings.Cut(label, "=")
	if !labelName.MatchString(name) {
		return fmt.Errorf("%q is no label; write NAME or NAME=DIR, with letters, digits, '.', '_', '-' and '/' in the name", label)
	}
	if !has {
		return nil
	}
	if info, err := os.Stat(dir); !filepath.IsAbs(dir) || err != nil || !info.IsDir() {
		return fmt.Errorf("%s is not the absolute path of a directory", label)
	}
	return nil
}

// Check returns an error unless p names one machine, label or repository.
func Check(p event.Place) error {
	given := 0
	for _, is := range []bool{p.Host != "", p.Label != "", p.Repo != ""} {
		if is {
			given++
		}
	}
	switch {
	case given > 1:
		return errors.New("host, label and repo exclude each other")
	case p.Ref != "" && p.Repo == "":
		return errors.New("a ref needs a repo")
	case p.Host != "" && !labelName.MatchString(p.Host), p.Label != "" && !labelName.MatchString(p.Label):
		return fmt.Errorf("%q cannot be the name of a host or label", cmp.Or(p.Host, p.Label))
	case strings.HasPrefix(p.Repo, "-"), strings.HasPrefix(p.Ref, "-"):
		return errors.New("a repo and a ref do not begin with '-'")
	}
	return nil
}

// Matches reports whether a machine with a name and labels has a place. A repository
// that is not cloned yet can be cloned everywhere.
func Matches(p event.Place, host string, labels []string) bool {
	if p.Label != "" {
		return slices.ContainsFunc(labels, func(l string) bool {
			name, _, _ := strings.Cut(l, "=")
			return name == p.Label
		})
	}
	return p.Host == "" || p.Host == host
}

// Has reports whether this machine has a place.
func (h Here) Has(p event.Place) bool { return Matches(p, h.Host, h.Labels) }

// Dir returns the directory of a run that works in p, or in dir if p has none of its
// own. The error wraps [ErrElsewhere] if it is on another machine.
func (h Here) Dir(p event.Place, dir string) (string, error) {
	if !h.Has(p) {
		return "", fmt.Errorf("%w %s", ErrElsewhere, p)
	}
	if p.Repo != "" && dir == "" {
		return "", fmt.Errorf("%s is not cloned yet; a server or a worker does that", p.Repo)
	}
	for _, l := range h.Labels {
		if name, own, has := strings.Cut(l, "="); has && p.Label != "" && name == p.Label {
			return own, nil
		}
	}
	if p.Label != "" && h.Workspace != "" {
		return h.Workspace, nil
	}
	return cmp.Or(dir, h.Workspace), nil
}

// Settles reports whether this machine, as the first that drives a run, decides where the
// run works. p is the place that the run names, and dir its directory, "" if it has none.
func (h Here) Settles(p event.Place, dir string) bool {
	return dir == "" && p.Label == "" && (p.Repo != "" || h.Host != "") && h.Has(p)
}

// Settle decides where a run works that this machine drives first. It clones the repository
// that p names, if any; the error is a [*CloneError] if that fails.
func (h Here) Settle(ctx context.Context, p event.Place, run string) (placed event.RunPlaced, err error) {
	placed.Host = h.Host
	if p.Repo == "" {
		placed.Workspace, err = h.Dir(p, "")
		return placed, err
	}
	placed.Workspace, err = h.clone(ctx, p, run)
	return placed, err
}

// Cloned returns the directories of all clones on this machine, also those of other journals.
func (h Here) Cloned() (dirs []string, err error) {
	entries, err := os.ReadDir(h.Clones)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("workplace: %w", err)
	}
	for _, e := range entries {
		dirs = append(dirs, filepath.Join(h.Clones, e.Name()))
	}
	return dirs, nil
}

// ClonedFor reports whether a clone was made for a run. Those that a killed process did not
// complete are among them.
func (h Here) ClonedFor(dir, run string) bool { return strings.HasPrefix(filepath.Base(dir), run+"-") }

// CloneError is the failure of a clone, with what git printed.
type CloneError struct {
	Place event.Place
	Text  string
	Err   error
}

// Error names the repository and the ref.
func (e *CloneError) Error() string {
	ref := ""
	if e.Place.Ref != "" {
		ref = " at " + e.Place.Ref
	}
	return fmt.Sprintf("the repository %s cannot be cloned%s: %s", e.Place.Repo, ref, cmp.Or(e.Text, e.Err.Error()))
}

// Unwrap returns the error of the process.
func (e *CloneError) Unwrap() error { return e.Err }

// cloneLeft bounds the wait for the output of a git process that was killed.
const cloneLeft = 5 * time.Second

// clone makes a clone for a run. Its directory has a name of its own, because an earlier
// attempt may still write to another. Git asks no one, runs no hook, and uses no
// transport that starts programs of the repository's choice.
func (h Here) clone(ctx context.Context, p event.Place, run string) (_ string, err error) {
	if h.Clones == "" {
		return "", errors.New("workplace: this machine has no directory for clones")
	}
	if err := os.MkdirAll(h.Clones, 0o700); err != nil {
		return "", fmt.Errorf("workplace: %w", err)
	}
	dir, err := os.MkdirTemp(h.Clones, run+"-")
	if err != nil {
		return "", fmt.Errorf("workplace: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	for _, args := range [][]string{
		{"init", "--quiet", dir},
		{"-C", dir, "remote", "add", "origin", p.Repo},
		{"-C", dir, "fetch", "--quiet", "origin", cmp.Or(p.Ref, "HEAD")},
		{"-C", dir, "checkout", "--quiet", "--detach", "FETCH_HEAD"},
	} {
		cmd := exec.CommandContext(ctx, "git", append([]string{"-c", "core.hooksPath=/dev/null"}, args...)...)
		cmd.Env = append(slices.Clip(h.Env), "GIT_TERMINAL_PROMPT=0", "GIT_ALLOW_PROTOCOL=https:ssh:file")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // with its helpers
		cmd.WaitDelay = cloneLeft
		out, err := cmd.CombinedOutput()
		if ctx.Err() != nil {
			return "", fmt.Errorf("workplace: clone %s: %w", p.Repo, context.Cause(ctx))
		}
		if err != nil {
			return "", &CloneError{Place: p, Text: strings.TrimSpace(string(out)), Err: err}
		}
	}
	return dir, nil
}
