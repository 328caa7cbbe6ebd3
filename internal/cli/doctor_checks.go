package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/engine/holder"
	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/files/kinds"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/sqlite"
	"github.com/pawlrun/pawl/models"
)

// journalHealth opens the journal, if there is one, and measures its disk.
func (a *app) journalHealth(ctx context.Context) finding {
	f := finding{Name: "journal", Health: healthBroken, Help: "name another place with --journal or $PAWL_JOURNAL"}
	if schemeOf(a.journalPath) != "" {
		return a.databaseHealth(ctx, f)
	}
	if err := sqlite.CheckPath(a.journalPath); err != nil {
		f.Detail = err.Error()
		return f
	}
	dir := filepath.Dir(a.journalPath)
	state := "is not there yet"
	switch _, err := os.Stat(a.journalPath); {
	case err == nil:
		state = "is there"
		store, err := sqlite.Open(ctx, a.journalPath, sqlite.Options{ReadOnly: true})
		switch {
		case errors.Is(err, fs.ErrNotExist):
			state = "is empty yet"
		case err != nil:
			f.Detail = fmt.Sprintf("%s: %s", a.journalPath, a.describe(err))
			return f
		default:
			err := store.Check(ctx)
			_ = store.Close()
			if errors.Is(err, journal.ErrCorrupt) {
				f.Detail = fmt.Sprintf("%s: %s", a.journalPath, control.Plain(err))
				f.Help = "'pawl runs verify --all' names the runs that are whole, and 'pawl runs export' saves them; restore the file from a backup, or " + f.Help
				return f
			}
		}
	case errors.Is(err, fs.ErrNotExist):
		dir = nearestDirectory(dir)
	default:
		f.Detail = err.Error()
		return f
	}
	took, err := syncTime(dir)
	if err != nil {
		f.Detail = fmt.Sprintf("%s %s, and %s cannot be written: %v", a.journalPath, state, dir, err)
		return f
	}
	f = finding{Name: "journal", Health: healthOK, Detail: fmt.Sprintf("%s %s; its disk makes a write durable in %s", a.journalPath, state, rounded(took))}
	if took > slowSync {
		f.Health, f.Help = healthLacks, "every step of a run waits for the disk twice; use a faster disk with --journal"
	}
	return f
}

// databaseHealth opens a journal that is no file, and reads it once.
func (a *app) databaseHealth(ctx context.Context, f finding) finding {
	began := time.Now()
	opened, err := a.openURL(ctx, a.journalPath, Use{ReadOnly: true})
	if err != nil {
		f.Detail = a.describe(err)
		return f
	}
	defer opened.Store.Close()
	if _, err := opened.Store.Last(ctx); err != nil {
		f.Detail = a.describe(err)
		return f
	}
	return finding{Name: "journal", Health: healthOK, Detail: fmt.Sprintf("%s is there and answered in %s", a.journalPath, rounded(time.Since(began)))}
}

// temporalHealth checks the Temporal server that places the runs of the journal.
func (a *app) temporalHealth(ctx context.Context, at string) finding {
	f := finding{Name: "temporal", Health: healthBroken}
	if err := a.checkTemporal(serveFlags{temporal: at}); err != nil {
		f.Detail = err.Error()
		return f
	}
	opened, err := a.openURL(ctx, a.journalPath, Use{})
	if err != nil {
		f.Detail = a.describe(err)
		return f
	}
	defer opened.Store.Close()
	if f.Detail, f.Help, err = a.build.Examine(ctx, at, opened.Store); err != nil {
		f.Detail = err.Error()
		return f
	}
	f.Health = healthOK
	if f.Help != "" {
		f.Health = healthLacks
	}
	return f
}

// nearestDirectory returns the directory itself, or the first one above it that
// exists.
func nearestDirectory(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

const (
	syncs = 5
	// slowSync is slower than disks, but not than a network file system or an
	// emulated disk.
	slowSync = 50 * time.Millisecond
)

// syncTime measures the time to write a page of a file to the disk: the median of a
// few.
func syncTime(dir string) (time.Duration, error) {
	f, err := os.CreateTemp(dir, ".pawl-doctor-*")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	var took []time.Duration
	page := make([]byte, 4096)
	for range syncs {
		start := time.Now()
		if _, err := f.Write(page); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

func rounded(d time.Duration) time.Duration {
	if d < 10*time.Millisecond {
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(time.Millisecond)
}

func (a *app) configHealth() finding {
	path, err := a.configFile()
	if err == nil {
		_, err = a.config()
	}
	switch {
	case err != nil:
		return finding{Name: "config", Health: healthBroken, Detail: err.Error()}
	case path == "":
		return finding{Name: "config", Health: healthOK, Detail: "no config file (none is needed)"}
	}
	return finding{Name: "config", Health: healthOK, Detail: path}
}

// modelHealth reports which providers can be called. None is required: scripted
// models need no key.
func (a *app) modelHealth() finding {
	f := finding{Name: "models", Health: healthOK}
	config, err := a.config()
	if err != nil {
		return finding{Name: "models", Health: healthLacks, Detail: "not checked, because the config file has errors"}
	}
	known, _, err := (&models.Resolver{Config: config}).List()
	if err != nil {
		return finding{Name: "models", Health: healthBroken, Detail: err.Error()}
	}
	var usable, missing []string
	for _, m := range known {
		provider, _, _ := strings.Cut(m.Name, "/")
		if m.Unusable == nil {
			usable = append(usable, provider)
		} else {
			missing = append(missing, provider)
		}
	}
	usable, missing = slices.Compact(usable), slices.Compact(missing)
	f.Detail = "can be called: " + strings.Join(append(usable, "scripted"), ", ")
	if len(usable) == 0 {
		f.Health = healthLacks
	}
	if len(missing) > 0 {
		f.Help = "cannot: " + strings.Join(missing, ", ") + "; 'pawl models' says which API keys are missing"
	}
	return f
}

func (a *app) terminalHealth() finding {
	s := screenOf(a.err, os.Getenv)
	switch {
	case !s.terminal:
		return finding{Name: "terminal", Health: healthOK, Detail: "none; progress is plain lines, and a run that asks parks"}
	case !s.colour:
		return finding{Name: "terminal", Health: healthOK, Detail: fmt.Sprintf("%d columns, without colours", s.width())}
	}
	return finding{Name: "terminal", Health: healthOK, Detail: fmt.Sprintf("%d columns", s.width())}
}

func gitHealth(ctx context.Context) finding {
	out, err := exec.CommandContext(ctx, "git", "version").Output()
	if err != nil {
		return finding{Name: "git", Health: healthLacks, Detail: "does not run: " + err.Error(), Help: "agents that work on code need it"}
	}
	return finding{Name: "git", Health: healthOK, Detail: strings.TrimPrefix(strings.TrimSpace(string(out)), "git version ")}
}

// serverHealth reports processes of MCP servers whose run's process has ended.
func serverHealth() finding {
	f := finding{Name: "servers", Health: healthOK, Detail: "no process of an MCP server is left from a run that has ended"}
	processes, known := holder.Left()
	if !known {
		f.Detail = "this system does not show which processes MCP servers have left"
	}
	var left, pids []string
	for _, p := range processes {
		left = append(left, fmt.Sprintf("%s (%d, %s)", harmless(p.Server), p.PID, harmless(p.Program)))
		pids = append(pids, strconv.Itoa(p.PID))
	}
	if len(left) > 0 {
		f.Health, f.Detail = healthLacks, "processes of MCP servers are left whose pawl has ended: "+strings.Join(left, ", ")
		f.Help = "'kill " + strings.Join(pids, " ") + "' ends them"
	}
	return f
}

// clockHealth compares the clock with the one date that is known to have passed,
// that of the price table, because journals record times.
func (a *app) clockHealth() finding {
	now := time.Now()
	f := finding{Name: "time", Health: healthOK, Detail: now.Format("2006-01-02 15:04:05 -0700")}
	_, date, err := (&models.Resolver{}).List()
	if err != nil {
		return f
	}
	if made, err := time.Parse(time.DateOnly, date); err == nil && now.Before(made) {
		f.Health, f.Help = healthLacks, "the clock is before "+date+", when this version was built; set the clock, because journals record times"
	}
	return f
}

// programHealth reports which programs of a file are not on this machine.
func programHealth(f kinds.File, o launch.Options) finding {
	found := finding{Name: "programs", Health: healthOK, Detail: f.Path + ": all of its programs are there"}
	warnings, err := f.Check(o)
	var problems decode.Errors
	if err != nil && !errors.As(err, &problems) {
		found.Health, found.Detail = healthBroken, f.Path+": "+err.Error()
		return found
	}
	var missing []string
	for _, p := range append(problems, warnings...) {
		if strings.HasSuffix(p.Path, ".command") {
			missing = append(missing, p.Path+": "+p.Message)
		}
	}
	switch {
	case len(missing) > 0 && err == nil: // only optional servers lack theirs
		found.Health = healthLacks
	case len(missing) > 0:
		found.Health = healthBroken
	case err != nil:
		found.Health, found.Detail = healthLacks, fmt.Sprintf("%s: not known, because the file has errors; 'pawl check %s' lists them", f.Path, f.Path)
		return found
	default:
		return found
	}
	found.Detail = f.Path + ": " + strings.Join(missing, "; ")
	found.Help = "install them, or name another program; ./FILE is relative to the file, other paths to the workspace"
	return found
}
