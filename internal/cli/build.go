package cli

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/internal/host/tokens"
	"github.com/pawlrun/pawl/internal/server"
	"github.com/pawlrun/pawl/journal"
)

// Build is what a program adds to this package.
type Build struct {
	// Version is that of a release build; if it is empty, the binary's build
	// information names it.
	Version string
	// Journals opens the journals that --journal names by a URL, by its scheme.
	Journals map[string]OpenJournal
	// Addresses returns where the database of a journal that is named by a URL is.
	Addresses func(ctx context.Context, at string) ([]netip.AddrPort, error)
	// Commands are added to those of the root.
	Commands []func(Environment) *cobra.Command
	// Lease is how long a run stays reserved for a process that does not renew its
	// lease; 0 means 15 s.
	Lease time.Duration
	// Dispatch connects to what places the runs of a server ('pawl serve --temporal');
	// nil for a build without it.
	Dispatch func(ctx context.Context, at string, limits DispatchLimits, store journal.Store, log *slog.Logger) (server.Dispatcher, error)
	// Examine describes what places the runs of a journal, and what may be lacking there
	// ('pawl doctor --temporal').
	Examine func(ctx context.Context, at string, store journal.Store) (detail, lacks string, err error)
}

// DispatchLimits bound what a server queues.
type DispatchLimits struct {
	// MaxQueued is how many runs may be queued.
	MaxQueued int
	// Placing returns how the runs of a principal are placed.
	Placing func(event.Principal) tokens.Placing
}

// OpenJournal opens the journal at a URL.
type OpenJournal func(ctx context.Context, at string, use Use) (Opened, error)

// Use is what a command does with a journal. The zero value writes to an existing one.
type Use struct {
	// ReadOnly forbids writes; Create makes a journal where there is none.
	ReadOnly, Create bool
}

// Opened is an open journal.
type Opened struct {
	Store journal.Store
	// Secrets are what it was opened with, for example a password.
	Secrets []secret.Secret
}

// Environment is what an added command shares with the others. The command line is
// read when the functions are called.
type Environment struct {
	// Journal returns the value of --journal.
	Journal func() string
	// Open opens a journal by path or URL.
	Open func(ctx context.Context, at string, use Use) (journal.Store, error)
	// Print writes to stdout, and Printf the same for a person who did not ask for JSON.
	Print  func(value any) error
	Printf func(format string, args ...any) error
	// Drive opens the journal and calls use with what drives runs on this machine, until
	// Ctrl-C or SIGTERM ends the context of use. The runs that are still driven then park.
	Drive func(ctx context.Context, o DriveOptions, use func(context.Context, Driver) error) error
	// Template adds flags of 'pawl run' to a command. It returns a function that makes the
	// first event of a run from FILE and INPUT, and starts none.
	Template func(*cobra.Command) func(words []string) (event.RunStarted, error)
}

// DriveOptions are the files that the runs of a worker use.
type DriveOptions struct {
	Agents, Workspace string
	// Labels are what the machine has for runs that ask for it.
	Labels []string
	// Peers is the address to listen on for servers that read the answers of runs as
	// they come; empty is a free port for those of this machine.
	Peers string
	// Metrics is the address at which the metrics are served, "" for none. Tokens is the
	// file of the tokens that their readers need, and Hosts has names of the address.
	Metrics, Tokens string
	Hosts           []string
}

// Driver drives the runs of a journal on this machine.
type Driver struct {
	Server *server.Server
	Store  journal.Store
	Log    *slog.Logger
}

// Usage marks an error of the command line, which exits with 2.
func Usage(err error) error { return usageError(err) }

// environment returns what the commands of a build share with the others.
func (a *app) environment() Environment {
	return Environment{
		Journal: func() string { return a.journalPath },
		Open: func(ctx context.Context, at string, use Use) (journal.Store, error) {
			opened, err := a.openStore(ctx, at, use)
			return opened.Store, err
		},
		Print:  a.printJSON,
		Printf: a.printf,
		Drive:  a.drive,
		Template: func(c *cobra.Command) func([]string) (event.RunStarted, error) {
			f := runFlags{workspace: "."}
			f.settings(c)
			approveFlag(c, &f.approve)
			return func(words []string) (started event.RunStarted, err error) {
				o, err := f.options(c)
				if err != nil {
					return started, err
				}
				if o.Host, _, err = a.host(c.Context()); err != nil {
					return started, err
				}
				l, err := a.prepare(c.Context(), &f, ofFile(f.withInput(words)), o)
				if err != nil {
					return started, err
				}
				defer l.session.close()
				return l.started, closeEnv(l.env)
			}
		},
	}
}

// schemeOf returns the scheme of a journal that is named by a URL, "" for a path.
func schemeOf(journal string) string {
	scheme, _, ok := strings.Cut(journal, "://")
	if !ok || scheme == "" || strings.ContainsAny(scheme, "/.") {
		return ""
	}
	return scheme
}

// openURL opens a journal that is named by a URL.
func (a *app) openURL(ctx context.Context, at string, use Use) (Opened, error) {
	scheme := schemeOf(at)
	open := a.build.Journals[scheme]
	if open == nil {
		return Opened{}, a.unopened(scheme)
	}
	return open(ctx, at, use)
}

// otherBuild names the build for several machines.
const otherBuild = "the one that does is github.com/pawlrun/pawl/cluster/cmd/pawl, which 'make bin/pawl-cluster' builds in a clone"

// unopened returns the error for a scheme that this build does not open.
func (a *app) unopened(scheme string) error {
	if scheme == "postgres" || scheme == "postgresql" {
		return usagef("this build opens no journal on PostgreSQL; %s; or give --journal a path", otherBuild)
	}
	known := slices.Sorted(maps.Keys(a.build.Journals))
	if len(known) == 0 {
		return usagef("no journal is opened by %s://; give --journal a path", scheme)
	}
	return usagef("no journal is opened by %s://; give --journal a path, or a URL that begins with %s://", scheme, strings.Join(known, ":// or "))
}

// checkURL refuses a password in a journal's URL, because the list of processes and the
// output of commands show the URL.
func checkURL(journal string) error {
	if schemeOf(journal) == "" {
		return nil
	}
	u, err := url.Parse(journal)
	if err != nil {
		return usagef("--journal is not a valid URL; write it like postgres://USER@HOST/DATABASE")
	}
	_, password := u.User.Password()
	for key := range u.Query() {
		password = password || strings.Contains(strings.ToLower(key), "password")
	}
	if password {
		return usagef("the URL of --journal contains a password, which other processes can read; give it in $PGPASSWORD, or in the file that $PGPASSFILE names (~/.pgpass), and leave it out of the URL")
	}
	return nil
}

// beside returns the directory of the files that belong to the journal: its own, or
// the nearest .pawl for a journal that is no file.
func (a *app) beside() string {
	if schemeOf(a.journalPath) != "" {
		return nearest()
	}
	return filepath.Dir(a.journalPath)
}

// journalFile returns the path of the journal, "" for one that is no file.
func (a *app) journalFile() string {
	if schemeOf(a.journalPath) != "" {
		return ""
	}
	return a.journalPath
}

// absoluteJournal returns what names the journal from every directory.
func (a *app) absoluteJournal() (string, error) {
	if schemeOf(a.journalPath) != "" {
		return a.journalPath, nil
	}
	return filepath.Abs(a.journalPath)
}

// noJournal reports whether the journal is a file that does not exist.
func (a *app) noJournal() bool {
	path := a.journalFile()
	if path == "" {
		return false
	}
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}
