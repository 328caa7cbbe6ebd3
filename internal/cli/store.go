package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/files/kinds"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/internal/host/tokens"
	"github.com/pawlrun/pawl/internal/machine/versions"
	"github.com/pawlrun/pawl/internal/signals"
	"github.com/pawlrun/pawl/internal/tenants"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/sqlite"
	"github.com/pawlrun/pawl/models"
)

// mode is how a command uses the journal.
type mode int

const (
	// toRead opens an existing journal, also one that cannot be written.
	toRead mode = iota
	// toWrite opens an existing journal.
	toWrite
	// toCreate creates a missing journal.
	toCreate
	// toServe is toCreate for a server.
	toServe
)

// checkPatience bounds the check of a journal before a write.
const checkPatience = 250 * time.Millisecond

// errNoJournal is wrapped by the error for reading a missing journal.
var errNoJournal = errors.New("there is no journal")

// newest stands for the newest run in place of an id.
const newest = "last"

// session is an open journal with an engine on it.
type session struct {
	app        *app
	store      journal.Store
	engine     *engine.Engine
	controller *control.Controller
	// budgets bounds what the runs of a token spend; nil for a journal that is only read.
	budgets *tenants.Budgets
	// tokens is the file that has the budgets.
	tokens *tokens.File
	// exporter exports to OpenTelemetry; nil if that is off.
	exporter *signals.Exporter
	// chats reports that the runs are those of a session, which what is allowed holds for.
	chats bool
	// unread is the error of the config file; nil means that its credentials are
	// known and can be redacted from inputs.
	unread error
}

// open opens the journal that the command line names. change changes the options of
// its engine.
func (a *app) open(ctx context.Context, m mode, change ...func(*engine.Options)) (*session, error) {
	opened, err := a.openStore(ctx, a.journalPath, Use{ReadOnly: m == toRead, Create: m >= toCreate})
	if err != nil {
		return nil, err
	}
	store := opened.Store
	if counters, may := store.(journal.KeepsCounters); may && schemeOf(a.journalPath) != "" {
		a.limiter.Share(counters)
	}
	config, unread := a.config()
	o := engine.Options{Secrets: a.credentials(config, opened.Secrets...), Served: m == toServe, LeaseTTL: a.build.Lease}
	var exporter *signals.Exporter
	if m != toRead {
		if exporter, err = signals.Open(signals.FromEnvironment(os.Getenv)); err != nil {
			fmt.Fprintf(a.err, "pawl: runs go on without telemetry: %v\n", err)
		}
		if exporter != nil {
			o.Observers = append(o.Observers, exporter.Observer())
		}
	}
	if a.metrics != nil {
		o.Observers = append(o.Observers, a.metrics.Observer())
	}
	s := &session{app: a, exporter: exporter, store: store, unread: unread, tokens: &tokens.File{Path: a.tokensFile()}}
	if m != toRead {
		prices := &models.Resolver{Config: config}
		s.budgets = tenants.New(store, s.tokens, prices.Price, slog.New(slog.NewTextHandler(a.err, nil)))
		o.Admission = s.budgets
	}
	for _, f := range change {
		f(&o)
	}
	s.engine = engine.New(store, versions.Make, o)
	s.controller = control.New(store, s.engine)
	a.pending = func(run string) []string { return s.pendingIDs(ctx, run) }
	return s, nil
}

// openStore opens a journal by path or URL.
func (a *app) openStore(ctx context.Context, at string, use Use) (opened Opened, err error) {
	if schemeOf(at) != "" {
		opened, err = a.openURL(ctx, at, use)
	} else {
		opened.Store, err = a.openFile(ctx, at, use)
	}
	switch {
	case err == nil:
		return opened, nil
	case errors.Is(err, journal.ErrNewer), errors.Is(err, journal.ErrForeign):
		return Opened{}, usageError(err) // the named place is not a journal
	}
	return Opened{}, failure(err)
}

// openFile opens the journal at a path.
func (a *app) openFile(ctx context.Context, path string, use Use) (journal.Store, error) {
	if err := sqlite.CheckPath(path); err != nil {
		return nil, usagef("%w; name another one with --journal or $PAWL_JOURNAL", err)
	}
	nothingRan := usagef("%w at %s, so nothing has run here yet; another one is named with --journal or $PAWL_JOURNAL", errNoJournal, path)
	if !use.Create {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, nothingRan
		}
	} else {
		if err := a.point(); err != nil {
			return nil, err
		}
		makeHome(path)
	}
	store, err := sqlite.Open(ctx, path, sqlite.Options{ReadOnly: use.ReadOnly})
	if use.ReadOnly && errors.Is(err, fs.ErrNotExist) {
		return nil, nothingRan
	}
	if wrong, ok := errors.AsType[*fs.PathError](err); ok && noPlace(wrong.Err) {
		return nil, usagef("the journal %s cannot be opened: %w; name another one with --journal", path, wrong)
	}
	if err == nil && !use.ReadOnly {
		if err = store.CheckPages(ctx, checkPatience); err != nil {
			_ = store.Close()
		}
	}
	if err != nil {
		return nil, err
	}
	return store, nil
}

// makeHome creates the directory .pawl of a new journal, and excludes its content
// from the repository of the working tree: a journal contains the content of files
// and messages. The config file is not excluded. It runs before the journal exists,
// so that a crash does not leave an unprotected journal. An existing ignore file
// stays. A failure is harmless.
func makeHome(journal string) {
	dir := filepath.Dir(journal)
	if filepath.Base(dir) != ".pawl" || sqlite.MakeDir(dir) != nil {
		return
	}
	if _, err := os.Lstat(journal); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	f, err := os.OpenFile(filepath.Join(dir, ".gitignore"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	_, _ = f.WriteString("*\n!config.yaml\n")
	_ = f.Close()
}

// noPlace reports whether a path can never name a file.
func noPlace(err error) bool {
	for _, why := range []error{syscall.ENOTDIR, syscall.ENAMETOOLONG, syscall.ELOOP, syscall.EINVAL, fs.ErrNotExist} {
		if errors.Is(err, why) {
			return true
		}
	}
	return false
}

// credentials returns a redactor for this process's credentials: variables that
// look like one, those that the config file names, the tokens of the user's logins,
// and others that are known. It learns the tokens that runs renew.
func (a *app) credentials(config models.Config, others ...secret.Secret) *secret.Redactor {
	return a.known.add(append(secret.FromEnvironment(os.Environ(), config.Credentials()...), others...))
}

// close closes the journal. Acknowledged data does not depend on it.
func (s *session) close() {
	_ = s.engine.Close()
	_ = s.store.Close()
	if s.exporter != nil {
		if err := s.exporter.Close(); err != nil {
			fmt.Fprintf(s.app.err, "pawl: %v\n", err)
		}
	}
}

// find returns the run whose id starts with a unique prefix, or the newest root run
// for [newest].
func (s *session) find(ctx context.Context, prefix string) (journal.Run, error) {
	if prefix == newest {
		runs, err := s.store.Runs(ctx, journal.Filter{Roots: true, Limit: 1})
		if err == nil && len(runs) == 0 {
			err = usagef("there are no runs in %s", s.app.journalPath)
		}
		if err != nil {
			return journal.Run{}, failure(err)
		}
		return runs[0], nil
	}
	r, err := s.store.Find(ctx, prefix)
	switch {
	case errors.Is(err, journal.ErrNotFound):
		return r, usagef("there is no run %q in %s; '%s runs' lists them", prefix, s.app.journalPath, s.app.invocation())
	case errors.Is(err, journal.ErrAmbiguous):
		return r, usagef("%q fits several runs of %s; write more of the id", prefix, s.app.journalPath)
	}
	return r, failure(err)
}

// endedError returns an error with the remaining next step and what it requires: a
// higher limit if a limit ended the run, and a new message unless the last message
// is not the model's.
func (s *session) endedError(ctx context.Context, r journal.Run) error {
	if slices.ContainsFunc(kinds.All(), func(k launch.Kind) bool { return k.Name == r.Kind && k.Continue == nil }) {
		again := fmt.Sprintf("start its failed steps again with '%s runs retry %s'", s.app.invocation(), r.ID)
		if _, _, err := launch.Retry(ctx, s.engine, s.store, r, ""); err != nil {
			again = fmt.Sprintf("start another with '%s run', or go on from one of its events with '%s runs fork %s --seq N'", s.app.invocation(), s.app.invocation(), r.ID)
		}
		return fmt.Errorf("run %s has ended (%s) and is not continued, because it is a %s: %s", r.ID, r.Detail, r.Kind, again)
	}
	with := `"…"`
	if r.Detail == string(event.ReasonMaxCycles) {
		with = `--max-cycles N "…"`
	} else if setting, ok := strings.CutPrefix(r.Detail, string(event.BudgetReason(""))); ok {
		with = "--limit " + setting + `=… "…"`
	}
	return fmt.Errorf("run %s has ended (%s); start a new one from it with '%s run --continue %s %s'", r.ID, r.Detail, s.app.invocation(), r.ID, with)
}

// withRun opens the journal, finds a run, and closes the journal afterwards.
func (a *app) withRun(ctx context.Context, m mode, prefix string, do func(*session, journal.Run) error) error {
	s, err := a.open(ctx, m)
	if err != nil {
		return err
	}
	defer s.close()
	r, err := s.find(ctx, prefix)
	if err != nil {
		return err
	}
	return do(s, r)
}

// withOpenRun is withRun for a run that has not ended.
func (a *app) withOpenRun(ctx context.Context, prefix string, do func(*session, journal.Run) error) error {
	return a.withRun(ctx, toWrite, prefix, func(s *session, r journal.Run) error {
		if r.State == journal.Ended {
			return usageError(s.endedError(ctx, r))
		}
		return do(s, r)
	})
}
