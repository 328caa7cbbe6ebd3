package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/journaltest"
	"github.com/pawlrun/pawl/journal/sqlite"
)

// atOperation says before which of its writes, truncations and syncs another
// process kills itself.
const atOperation = "PAWL_SQLITE_KILL_AT"

// upgradeUntilKilled opens a journal of an older version for writing, appends to
// the run "a", and closes it, unless it is killed before; then it says how many
// operations that took.
func upgradeUntilKilled(path string) error {
	last, err := strconv.Atoi(os.Getenv(atOperation))
	if err != nil {
		return err
	}
	done := 0
	count := func() {
		if done == last {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		done++
	}
	tap := &sqlite.Tap{
		Dir:      filepath.Dir(path),
		Write:    func(string, []byte, int64) error { count(); return nil },
		Truncate: func(string, int64) { count() },
		Sync:     func(string) error { count(); return nil },
		SyncDir:  func(string) error { count(); return nil },
	}
	defer tap.Install()()
	ctx := context.Background()
	s, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return err
	}
	lease, err := s.Acquire(ctx, "a", "upgrader", "owner", 0)
	if err != nil {
		return err
	}
	row, err := s.Run(ctx, "a")
	if err != nil {
		return err
	}
	w := &plainWriter{s: s, lease: lease, seq: row.Seq, head: row.Head}
	if err := errors.Join(w.append(ctx, 300), s.Close()); err != nil {
		return err
	}
	fmt.Println(done)
	return nil
}

// stride is how many operations lie between those at which the normal suite
// interrupts an upgrade; the long one takes each.
func stride(every int) int {
	if os.Getenv("PAWL_LONG") != "" {
		return 1
	}
	return every
}

// A journal must be whole wherever the process that upgrades it is killed, for
// who only reads it and for who goes on with it.
func TestKilledInAnUpgradeTheJournalIsReadAndUpgradedByTheNext(t *testing.T) {
	for version := 1; version < sqlite.Format; version++ {
		t.Run(fmt.Sprintf("from format %d", version), func(t *testing.T) {
			old, drivers := older(t, version)
			killed := 0
			for at := 0; ; at += stride(5) {
				path := filepath.Join(t.TempDir(), "journal.db")
				copyFile(t, old, path)
				cmd := child(t, "upgrade", path)
				cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", atOperation, at))
				out, err := cmd.CombinedOutput()
				if err == nil {
					break
				}
				if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
					t.Fatalf("operation %d: %v\n%s", at, err, out)
				}
				killed++
				goesOn(t, path, drivers)
				if t.Failed() {
					t.Fatalf("killed before operation %d", at)
				}
			}
			t.Logf("killed %d times", killed)
			if killed < 3 {
				t.Error("the upgrade took no time")
			}
		})
	}
}

// goesOn fails unless a journal that was left in an upgrade has at least what
// the drivers wrote, and takes more.
func goesOn(t *testing.T, path string, drivers []*journaltest.Driver) {
	t.Helper()
	reader := openAt(t, path, sqlite.Options{ReadOnly: true})
	for _, d := range drivers {
		if v, err := journal.Verify(t.Context(), reader, d.Lease.Run, d.Head); err != nil || v.HeadSeq != d.Seq {
			t.Errorf("read only: %+v, %v; acknowledged were %d events", v, err, d.Seq)
		}
	}
	if err := reader.Close(); err != nil {
		t.Error(err)
	}
	s := openAt(t, path, sqlite.Options{})
	defer s.Close()
	for _, d := range drivers {
		row, err := s.Run(t.Context(), d.Lease.Run)
		if err != nil {
			t.Fatal(err)
		}
		lease, err := s.Acquire(t.Context(), row.ID, "heir", row.Owner, 0)
		if err != nil {
			t.Fatal(err)
		}
		heir := &journaltest.Driver{Store: s, Lease: lease, Seq: row.Seq, Head: row.Head}
		heir.Append(t, texts(2)...)
		intact(t, s, heir)
	}
}

func TestAPowerCutInAnUpgradeLosesNothing(t *testing.T) {
	for version := 1; version < sqlite.Format; version++ {
		for seed := range uint64(5 / stride(5)) {
			t.Run(fmt.Sprintf("from format %d, seed %d", version, seed), func(t *testing.T) {
				path, drivers := older(t, version)
				content, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				p := &powerRun{
					r: rand.New(rand.NewPCG(seed, 1)), path: path, files: map[string]*platter{},
					runs: map[string]acknowledged{}, often: stride(5),
				}
				p.file(path).cache, p.file(path).disk = content, content
				for _, d := range drivers {
					p.runs[d.Lease.Run] = acknowledged{d.Seq, d.Head, map[string]bool{}}
				}
				tap := p.tap()
				tap.Dir = filepath.Dir(path)
				defer tap.Install()()
				s := openAt(t, path, sqlite.Options{})
				p.stores, p.drivers = [2]*sqlite.Store{s, s}, drivers
				p.append(t)
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				t.Logf("%d power cuts", len(p.blackouts))
				for i, b := range p.blackouts {
					b.check(t, i)
				}
			})
		}
	}
}
