package cli

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/host/sandbox"
	"github.com/pawlrun/pawl/internal/host/workplace"
	"github.com/pawlrun/pawl/tool/shell"
)

// sandboxVariable names the strongest tier to use, for a machine whose stronger
// tier does not work.
const sandboxVariable = "PAWL_SANDBOX"

// sandbox looks for the strongest sandbox of this machine.
func (a *app) sandbox(ctx context.Context) (*sandbox.Machine, error) {
	most := sandbox.Tier(os.Getenv(sandboxVariable))
	if most != "" && !most.AtLeast(sandbox.None) {
		return nil, usagef("$%s is %q; it can be bubblewrap, namespaces, landlock or none", sandboxVariable, most)
	}
	return sandbox.Strongest(ctx, a.shim, most), nil
}

// host returns what this process offers to the runs that it drives, or would drive.
// It also decides the place of a new journal.
func (a *app) host(ctx context.Context) (launch.Host, *replays, error) {
	config, err := a.config()
	if err != nil {
		return launch.Host{}, nil, err
	}
	machine, err := a.sandbox(ctx)
	if err == nil {
		err = a.placeJournal(machine)
	}
	if err != nil {
		return launch.Host{}, nil, err
	}
	var databases []netip.AddrPort
	if schemeOf(a.journalPath) != "" && a.build.Addresses != nil {
		if databases, err = a.build.Addresses(ctx, a.journalPath); err != nil {
			return launch.Host{}, nil, usagef("the database of --journal: %w", err)
		}
	}
	replayed := &replays{app: a}
	return launch.Host{Here: a.here(), Databases: databases, Config: config, Sandbox: machine, Limiter: &a.limiter, Pages: &a.pages, Journal: a.journalFile(), Replay: replayed.open, ServerLog: a.serverLogOf, RemoveLogs: a.removeLog, Learn: a.known.learn}, replayed, nil
}

// here returns what this machine has for runs. It has a name if it shares the journal with
// other machines, or if the user gives it one.
func (a *app) here() (h workplace.Here) {
	if schemeOf(a.journalPath) != "" || os.Getenv(workplace.HostVariable) != "" {
		h.Host = workplace.Name(os.Getenv)
	}
	h.Clones = clonesDir()
	h.Env = shell.Environment(os.Environ())
	return h
}

// clonesDir returns the directory for clones, $XDG_DATA_HOME/pawl/clones, "" if there is
// none. It cannot be in the state directory, which commands do not see.
func clonesDir() string {
	data := os.Getenv("XDG_DATA_HOME")
	if !filepath.IsAbs(data) {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		data = filepath.Join(home, ".local", "share")
	}
	return filepath.Join(data, "pawl", "clones")
}
