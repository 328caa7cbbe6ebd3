package sqlite_test

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/journaltest"
	"github.com/pawlrun/pawl/journal/sqlite"
)

var powerSeed = flag.Uint64("power.seed", 0, "lose power in the run of this seed only")

// acknowledged is what a run must have; more has the heads of appends that were
// not acknowledged, each of which may be there as a whole.
type acknowledged struct {
	seq  int64
	head string
	more map[string]bool
}

// blackout is a disk after a power cut, and what was acknowledged before it.
type blackout struct {
	log, db []byte
	runs    map[string]acknowledged
}

// powerRun writes a journal from two connections, as two processes would, on
// a disk that loses power again and again.
type powerRun struct {
	r       *rand.Rand
	path    string
	files   map[string]*platter
	stores  [2]*sqlite.Store
	drivers []*journaltest.Driver
	runs    map[string]acknowledged
	// kills counts the processes that were killed.
	kills int
	// What the next write or sync of the log fails with, and the next sync of
	// the database.
	writing, syncing, copying error
	// often is how many operations pass for each cut. With late, each operation
	// on the log is followed by cuts after which that has what was written behind
	// a place and nothing of what was written before it, for every place of its
	// first pages.
	often int
	late  bool
	// meanwhile is done before the next page of a copy is written.
	meanwhile func()
	blackouts []blackout
}

func (p *powerRun) file(path string) *platter {
	if p.files[path] == nil {
		p.files[path] = &platter{dirty: map[int64][][]byte{}}
	}
	return p.files[path]
}

func (p *powerRun) tap() *sqlite.Tap {
	return &sqlite.Tap{
		Dir: filepath.Dir(filepath.Dir(p.path)),
		Write: func(path string, b []byte, offset int64) error {
			if err := p.writing; err != nil && strings.HasSuffix(path, "-wal") {
				p.writing = nil
				return err
			}
			if do := p.meanwhile; do != nil && !strings.HasSuffix(path, "-wal") {
				p.meanwhile = nil
				do()
			}
			p.file(path).write(b, offset)
			p.cut(path)
			return nil
		},
		Truncate: func(path string, size int64) { p.file(path).resize(int(size)); p.cut(path) },
		Sync: func(path string) error {
			failing := &p.copying
			if strings.HasSuffix(path, "-wal") {
				failing = &p.syncing
			}
			if err := *failing; err != nil {
				*failing = nil
				p.file(path).fail(p.r)
				return err
			}
			p.file(path).sync()
			p.cut(path)
			return nil
		},
	}
}

// cut keeps what a power cut would leave, at some of the operations.
func (p *powerRun) cut(path string) {
	log := p.file(p.path + "-wal")
	switch {
	case len(p.runs) == 0:
	case p.late:
		for page := range int64(20) {
			if strings.HasSuffix(path, "-wal") {
				p.lose(log.behind(page * cachePage))
			}
		}
	case p.r.IntN(p.often) == 0:
		p.lose(log.lose(p.r))
	}
}

// lose keeps a power cut that leaves that log.
func (p *powerRun) lose(log []byte) {
	runs := map[string]acknowledged{}
	for id, a := range p.runs {
		runs[id] = acknowledged{a.seq, a.head, maps.Clone(a.more)}
	}
	p.blackouts = append(p.blackouts, blackout{log, p.file(p.path).lose(p.r), runs})
}

func (p *powerRun) append(t *testing.T) {
	p.appendTo(t, p.r.IntN(2))
}

// appendTo appends a batch through one of the two stores and says whether that
// was acknowledged.
func (p *powerRun) appendTo(t *testing.T, store int) bool {
	d := p.drivers[p.r.IntN(len(p.drivers))]
	d.Store = p.stores[store]
	data := texts(1 + p.r.IntN(3))
	if p.r.IntN(4) == 0 {
		data = append(data, big())
	}
	b := d.Batch(t, data...)
	a := p.runs[d.Lease.Run]
	a.more[b.Head] = true
	failing := p.writing != nil || p.syncing != nil
	if err := d.Write(t, b); err != nil {
		if !failing {
			t.Fatal(err)
		}
		return false
	}
	p.runs[d.Lease.Run] = acknowledged{d.Seq, d.Head, map[string]bool{}}
	return true
}

// failSync is a disk that does not keep a commit. What the system has of it is
// not tried again, so nothing that follows on it may be acknowledged.
func (p *powerRun) failSync(t *testing.T) {
	i := p.r.IntN(2)
	p.syncing = syscall.EIO
	if p.appendTo(t, i) {
		t.Fatal("a commit whose sync failed was acknowledged")
	}
	d := p.drivers[0]
	d.Store = p.stores[i]
	if err := d.Write(t, d.Batch(t, texts(1)...)); !errors.Is(err, journal.ErrIO) {
		t.Fatalf("after a sync that failed: %v, want ErrIO", err)
	}
	if p.r.IntN(2) == 0 {
		p.reopen(t, i)
	} else {
		p.kill(t)
	}
}

// reopen closes a store and opens it again.
func (p *powerRun) reopen(t *testing.T, i int) {
	if err := p.stores[i].Close(); err != nil {
		t.Fatal(err)
	}
	p.stores[i] = open(t, p.path)
	p.load(t)
}

// kill leaves the files as they are to two new processes. They are copied,
// because locks of this process cannot be lost any other way.
func (p *powerRun) kill(t *testing.T) {
	before, old := p.path, p.stores
	p.kills++
	p.path = filepath.Join(filepath.Dir(filepath.Dir(p.path)), strconv.Itoa(p.kills), "journal.db")
	if err := os.Mkdir(filepath.Dir(p.path), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"", "-wal"} {
		p.files[p.path+suffix] = p.file(before + suffix)
		delete(p.files, before+suffix)
		if err := os.WriteFile(p.path+suffix, p.file(p.path+suffix).cache, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i := range p.stores {
		p.stores[i] = open(t, p.path)
		_ = old[i].Close()
	}
	p.load(t)
}

// load makes the drivers go on from what their journal holds.
func (p *powerRun) load(t *testing.T) {
	for _, d := range p.drivers {
		row, err := p.stores[0].Run(t.Context(), d.Lease.Run)
		if a := p.runs[row.ID]; err != nil || row.Head != a.head && !a.more[row.Head] {
			t.Fatalf("run %s ends at event %d (%v); acknowledged were %d", d.Lease.Run, row.Seq, err, a.seq)
		}
		d.Seq, d.Head = row.Seq, row.Head
	}
}

// copy copies the log into the database. Where that lets others commit, the
// other process does so meanwhile: what it commits is in the log alone.
func (p *powerRun) copy(t *testing.T, s *sqlite.Store) {
	mode := []string{"PASSIVE", "RESTART", "TRUNCATE"}[p.r.IntN(3)]
	if mode == "PASSIVE" {
		i := slices.IndexFunc(p.stores[:], func(other *sqlite.Store) bool { return other != s })
		p.meanwhile = func() { p.appendTo(t, i) }
	}
	_ = s.Checkpoint(mode)
	p.meanwhile = nil
}

func (p *powerRun) step(t *testing.T) {
	switch s := p.stores[p.r.IntN(2)]; p.r.IntN(16) {
	case 0:
		if p.r.IntN(3) == 0 {
			p.copying = syscall.EIO
		}
		p.copy(t, s)
	case 1:
		if err := s.Script(spillAndFail); err == nil {
			t.Fatal("the transaction did not fail")
		}
	case 2:
		p.failSync(t)
	case 3:
		p.writing = syscall.ENOSPC
		p.append(t)
	case 4:
		p.reopen(t, p.r.IntN(2))
	case 5:
		p.kill(t)
	default:
		p.append(t)
	}
	p.writing, p.syncing, p.copying = nil, nil, nil
}

func TestAPowerCutLosesNothingThatWasAcknowledged(t *testing.T) {
	seeds, steps, often := []uint64{1, 2, 3, 4}, 60, 12
	if os.Getenv("PAWL_LONG") != "" {
		seeds, steps, often = make([]uint64, 40), 120, 20
		for i := range seeds {
			seeds[i] = uint64(i + 1)
		}
	}
	if *powerSeed != 0 {
		seeds = []uint64{*powerSeed}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			p := newPowerRun(t, seed, often)
			for range steps {
				p.step(t)
			}
			p.check(t)
		})
	}
}

// A log whose end is erased while its beginning is not says less than the
// database: the beginning has to go first, on the disk as well.
func TestAPowerCutWhileTheLogIsErasedLosesNothing(t *testing.T) {
	p := newPowerRun(t, 1, 1000)
	if err := p.stores[0].Checkpoint("TRUNCATE"); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		p.appendTo(t, i%2)
	}
	p.late = true
	if err := p.stores[0].Checkpoint("TRUNCATE"); err != nil {
		t.Fatal(err)
	}
	p.check(t)
}

// A copy that leaves a part of the log is not synced, and is taken for done. The
// disk may not keep it either when the sync of the next copy fails.
func TestFailedCopyRestartsAtTheBeginningOfTheLog(t *testing.T) {
	for seed := range uint64(8) {
		p := newPowerRun(t, seed, 1000)
		p.appendTo(t, 0)
		p.meanwhile = func() { p.appendTo(t, 1) }
		if err := p.stores[0].Checkpoint("PASSIVE"); err != nil {
			t.Fatal(err)
		}
		p.copying = syscall.EIO
		if err := p.stores[1].Checkpoint("PASSIVE"); err == nil {
			t.Fatal("a copy whose sync failed succeeded")
		}
		for i := range 3 {
			if err := p.stores[i%2].Checkpoint("PASSIVE"); err != nil {
				t.Fatal(err)
			}
			p.appendTo(t, i%2) // at the start of the log
		}
		p.lose(p.file(p.path + "-wal").lose(p.r))
		p.check(t)
	}
}

func newPowerRun(t *testing.T, seed uint64, often int) *powerRun {
	p := &powerRun{
		r: rand.New(rand.NewPCG(seed, 0)), path: filepath.Join(t.TempDir(), "0", "journal.db"),
		files: map[string]*platter{}, runs: map[string]acknowledged{}, often: often,
	}
	t.Cleanup(p.tap().Install())
	p.stores = [2]*sqlite.Store{open(t, p.path), open(t, p.path)}
	for i, id := range []string{"a", "b", "c"} {
		p.drivers = append(p.drivers, journaltest.Start(t, p.stores[i%2], id))
	}
	for _, d := range p.drivers {
		p.runs[d.Lease.Run] = acknowledged{d.Seq, d.Head, map[string]bool{}}
	}
	return p
}

func (p *powerRun) check(t *testing.T) {
	t.Helper()
	t.Logf("%d power cuts", len(p.blackouts))
	for i, b := range p.blackouts {
		b.check(t, i)
	}
}

// check opens what a power cut left and goes on with it.
func (b *blackout) check(t *testing.T, cut int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.db")
	for name, content := range map[string][]byte{path: b.db, path + "-wal": b.log} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatalf("cut %d: %v", cut, err)
	}
	defer s.Close()
	total := int64(0)
	for id, a := range b.runs {
		v, err := journal.Verify(t.Context(), s, id, "")
		row, _ := s.Run(t.Context(), id)
		if err != nil || v.Events != row.Seq || row.Head != a.head && !a.more[row.Head] {
			t.Fatalf("cut %d, run %s: %+v, %v; acknowledged were %d", cut, id, v, err, a.seq)
		}
		lease, err := s.Acquire(t.Context(), id, "heir", "owner", 0)
		if err != nil {
			t.Fatal(err)
		}
		d := &journaltest.Driver{Store: s, Lease: lease, Seq: row.Seq, Head: row.Head}
		d.Append(t, texts(2)...)
		intact(t, s, d)
		total += d.Seq
	}
	records, err := s.Tail(t.Context(), 0, 0)
	if err != nil || int64(len(records)) != total {
		t.Fatalf("cut %d: %d events in the tail, want %d (%v)", cut, len(records), total, err)
	}
}

// A log that no directory names after a crash is lost with all that it holds.
func TestTheFirstCommitSyncsTheDirectoryOfTheLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "journal.db")
	var synced []string
	failed := syscall.EIO
	tap := &sqlite.Tap{
		Dir: filepath.Dir(path),
		SyncDir: func(dir string) error {
			synced = append(synced, dir)
			if len(synced) == 1 {
				return failed
			}
			return nil
		},
	}
	defer tap.Install()()
	if s, err := sqlite.Open(t.Context(), path, sqlite.Options{}); err == nil {
		_ = s.Close()
		t.Error("a journal was made in a directory that cannot be synced")
	}
	journaltest.Start(t, open(t, path), "a")
	if want := filepath.Dir(path); len(synced) < 2 || synced[0] != want || synced[1] != want {
		t.Errorf("synced were %q, want %s until it succeeds", synced, want)
	}
}
