package sqlite_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/journaltest"
	"github.com/pawlrun/pawl/journal/sqlite"
)

// filesWith returns the files of a journal that contain a text, used or unused.
func filesWith(t *testing.T, path, text string) []string {
	t.Helper()
	files, err := filepath.Glob(path + "*")
	if err != nil || !slices.Contains(files, path+"-wal") {
		t.Fatalf("the journal is %v, %v", files, err)
	}
	return slices.DeleteFunc(files, func(name string) bool {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return !bytes.Contains(content, []byte(text))
	})
}

func input(t *testing.T, s *sqlite.Store, run, text string) int64 {
	t.Helper()
	id, err := s.Send(t.Context(), journal.Command{Run: run, Kind: journal.Input, Text: text})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func consume(t *testing.T, d *journaltest.Driver, ids ...int64) {
	t.Helper()
	b := d.Batch(t, event.Checkpoint{Label: "taken"})
	b.Consumed = ids
	if err := d.Write(t, b); err != nil {
		t.Fatal(err)
	}
}

// A command may contain a secret that only its reader recognizes. The other process
// keeps the log open, which the last process would delete.
func TestWhatWasTakenOutOfAnInboxIsFoundNowhere(t *testing.T) {
	const word = "correct-horse-battery"
	for name, text := range map[string]string{
		"a sentence":       "it is " + word,
		"a page":           strings.Repeat("-", 4000) + word,
		"a file":           strings.Repeat(word+" ", 5000),
		"a very long file": strings.Repeat(word+" ", 200_000),
	} {
		for _, copied := range []bool{false, true} {
			for how, take := range map[string]func(*testing.T, *sqlite.Store, *journaltest.Driver, int64){
				"taken up": func(t *testing.T, _ *sqlite.Store, d *journaltest.Driver, id int64) { consume(t, d, id) },
				"taken up with one that is gone": func(t *testing.T, _ *sqlite.Store, d *journaltest.Driver, id int64) {
					consume(t, d, id, id+1)
				},
				"left when its run ends": func(t *testing.T, _ *sqlite.Store, d *journaltest.Driver, _ int64) { d.End(t) },
				"deleted with its run": func(t *testing.T, s *sqlite.Store, d *journaltest.Driver, _ int64) {
					if err := s.Release(t.Context(), d.Lease); err != nil {
						t.Fatal(err)
					}
					if err := s.Delete(t.Context(), d.Lease.Run); err != nil {
						t.Fatal(err)
					}
				},
			} {
				t.Run(fmt.Sprintf("%s %s, copied before %t", name, how, copied), func(t *testing.T) {
					path := filepath.Join(t.TempDir(), "journal.db")
					open(t, path) // the other process
					s := open(t, path)
					d := journaltest.Start(t, s, "a")
					id := input(t, s, "a", text)
					if copied {
						if err := s.Checkpoint("PASSIVE"); err != nil {
							t.Fatal(err)
						}
					}
					if len(filesWith(t, path, word)) == 0 {
						t.Fatal("the word was never there")
					}
					take(t, s, d, id)
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
					if found := filesWith(t, path, word); len(found) > 0 {
						t.Errorf("it is in %v", found)
					}
				})
			}
		}
	}
}

// There may be space for what the log holds only later.
func TestALogThatCouldNotBeCopiedIsErasedOnceItCanBe(t *testing.T) {
	const word = "correct-horse-battery"
	path := filepath.Join(t.TempDir(), "journal.db")
	var full atomic.Bool
	tap := &sqlite.Tap{
		Dir: filepath.Dir(path),
		Write: func(file string, _ []byte, _ int64) error {
			if !strings.HasSuffix(file, "-wal") && full.CompareAndSwap(true, false) {
				return syscall.ENOSPC
			}
			return nil
		},
	}
	defer tap.Install()()
	open(t, path) // the other process
	s := open(t, path)
	d := journaltest.Start(t, s, "a")
	id := input(t, s, "a", "it is "+word)
	full.Store(true)
	consume(t, d, id)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if full.Load() {
		t.Fatal("nothing was copied")
	}
	if found := filesWith(t, path, word); len(found) > 0 {
		t.Errorf("it is in %v", found)
	}
}

// There may be a descriptor for the connection that copies it only later.
func TestALogIsErasedOnceItsCopierCanBeOpened(t *testing.T) {
	const word = "correct-horse-battery"
	path := filepath.Join(t.TempDir(), "journal.db")
	open(t, path) // the other process
	s := open(t, path)
	s.RefuseCopier()
	d := journaltest.Start(t, s, "a")
	consume(t, d, input(t, s, "a", "it is "+word))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if found := filesWith(t, path, word); len(found) > 0 {
		t.Errorf("it is in %v", found)
	}
}

// A reader of the log prevents erasing it. No later command causes another attempt.
func TestALogThatSomebodyReadsIsErasedOnceTheyHaveGone(t *testing.T) {
	const word = "correct-horse-battery"
	path := filepath.Join(t.TempDir(), "journal.db")
	synctest.Test(t, func(t *testing.T) {
		s := open(t, path)
		d := journaltest.Start(t, s, "a")
		id := input(t, s, "a", "it is "+word)
		other, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		reading, err := other.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var waiting int
		if err := reading.QueryRowContext(t.Context(), "SELECT count(*) FROM inbox").Scan(&waiting); err != nil || waiting != 1 {
			t.Fatalf("%d commands wait, %v", waiting, err)
		}
		consume(t, d, id)
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(filesWith(t, path, word)) == 0 {
			t.Fatal("it is nowhere although it is being read")
		}
		if err := reading.Rollback(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if found := filesWith(t, path, word); len(found) > 0 {
			t.Errorf("it is in %v", found)
		}
	})
}

// To erase the log takes a copy of all that it holds, and keeps writers waiting.
func TestALogIsLeftAloneOnceItIsErased(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	synctest.Test(t, func(t *testing.T) {
		s := open(t, path)
		d := journaltest.Start(t, s, "a")
		id := input(t, s, "a", "be quick")
		d.Append(t, event.Checkpoint{Label: "before"})
		consume(t, d, id)
		time.Sleep(time.Minute)
		synctest.Wait()
		if slices.Contains(filesWith(t, path, "before"), path+"-wal") {
			t.Fatal("the log is not erased")
		}
		d.Append(t, event.Checkpoint{Label: "afterwards"})
		time.Sleep(time.Minute)
		synctest.Wait()
		if found := filesWith(t, path, "afterwards"); !slices.Contains(found, path+"-wal") {
			t.Errorf("what was written later is in %v", found)
		}
	})
}

// A busy inbox has its log erased for many commands at once.
func TestALogIsErasedOnceASecondAtMost(t *testing.T) {
	const word = "correct-horse-battery"
	path := filepath.Join(t.TempDir(), "journal.db")
	synctest.Test(t, func(t *testing.T) {
		s := open(t, path)
		d := journaltest.Start(t, s, "a")
		rests := func(d time.Duration) bool {
			time.Sleep(d)
			synctest.Wait()
			return slices.Contains(filesWith(t, path, word), path+"-wal")
		}
		consume(t, d, input(t, s, "a", word))
		if rests(time.Millisecond) {
			t.Fatal("the log is not erased")
		}
		consume(t, d, input(t, s, "a", word))
		if !rests(900 * time.Millisecond) {
			t.Error("the log is erased again at once")
		}
		if rests(100 * time.Millisecond) {
			t.Error("the log is not erased again")
		}
	})
}

// Older versions left in the inbox what a run did not take up before its end. Who
// opens the journal while another process writes still opens it.
func TestInboxesOfEndedRunsAreEmptiedAtOpen(t *testing.T) {
	const word = "correct-horse-battery"
	path := filepath.Join(t.TempDir(), "journal.db")
	other := open(t, path)
	journaltest.Start(t, other, "ended")
	journaltest.Start(t, other, "goes on")
	input(t, other, "ended", "it is "+word)
	kept := input(t, other, "goes on", "be quick")
	if err := other.Script("UPDATE runs SET state = 'ended' WHERE id = 'ended'"); err != nil {
		t.Fatal(err)
	}
	var opened error
	if err := other.During(func() {
		s, err := sqlite.Open(t.Context(), path, sqlite.Options{BusyTimeout: time.Millisecond})
		if opened = err; err == nil {
			opened = s.Close()
		}
	}); err != nil || opened != nil {
		t.Fatal(err, opened)
	}
	if len(filesWith(t, path, word)) == 0 {
		t.Fatal("the word was never there")
	}
	s := open(t, path)
	left, err := s.Inbox(t.Context(), "")
	if err != nil || len(left) != 1 || left[0].ID != kept {
		t.Errorf("there waits %+v, %v", left, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if found := filesWith(t, path, word); len(found) > 0 {
		t.Errorf("it is in %v", found)
	}
}

// Pages split and merge while commands come and go: what moved leaves nothing
// behind either, and what waits stays whole.
func TestACrowdedInboxLeavesNothingBehind(t *testing.T) {
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 0))
		path := filepath.Join(t.TempDir(), "journal.db")
		other := open(t, path)
		s := open(t, path)
		d := journaltest.Start(t, s, "a")
		var waiting, taken []int64
		words := map[int64]string{}
		for n := range 200 {
			if r.IntN(5) < 2 && len(waiting) > 0 {
				i := r.IntN(len(waiting))
				consume(t, d, waiting[i])
				taken = append(taken, waiting[i])
				waiting = slices.Delete(waiting, i, i+1)
				continue
			}
			word := fmt.Sprintf("word-%d-of-%d;", n, seed)
			id := input(t, s, "a", word+strings.Repeat(".", int(r.ExpFloat64()*1500))+word)
			waiting, words[id] = append(waiting, id), word
			if r.IntN(20) == 0 {
				if err := s.Checkpoint("PASSIVE"); err != nil {
					t.Fatal(err)
				}
			}
		}
		for range len(waiting) / 2 {
			consume(t, d, waiting[0])
			taken, waiting = append(taken, waiting[0]), waiting[1:]
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		for _, id := range taken {
			if found := filesWith(t, path, words[id]); len(found) > 0 {
				t.Errorf("seed %d: %s is in %v", seed, words[id], found)
			}
		}
		left, err := other.Inbox(t.Context(), "a")
		if err != nil || len(left) != len(waiting) {
			t.Fatalf("seed %d: %d commands wait, %d should: %v", seed, len(left), len(waiting), err)
		}
		for i, c := range left {
			if c.ID != waiting[i] || !strings.HasPrefix(c.Text, words[c.ID]) || !strings.HasSuffix(c.Text, words[c.ID]) {
				t.Errorf("seed %d: command %d reads %.40q", seed, c.ID, c.Text)
			}
		}
	}
}

// Only an inbox is overwritten: a page that becomes free is written nowhere else.
func TestOnlyAnInboxIsOverwritten(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "journal.db"))
	d := journaltest.Start(t, s, "a")
	consume(t, d, input(t, s, "a", "go on"))
	if on, err := s.Pragma("secure_delete"); err != nil || on != int64(0) {
		t.Errorf("secure_delete is %v, %v", on, err)
	}
}

// A power cut in the middle must not leave the beginning of a log, which would
// take the journal back to what it was then.
func TestALogIsNoneOnTheDiskBeforeItIsErased(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	var told []string
	tap := &sqlite.Tap{
		Dir: filepath.Dir(path),
		Write: func(file string, p []byte, offset int64) error {
			if strings.HasSuffix(file, "-wal") {
				told = append(told, fmt.Sprintf("write %d at %d, zeros %t", len(p), offset, bytes.Count(p, []byte{0}) == len(p)))
			}
			return nil
		},
		Truncate: func(file string, size int64) {
			if strings.HasSuffix(file, "-wal") {
				told = append(told, fmt.Sprintf("cut to %d", size))
			}
		},
		Sync: func(file string) error {
			if strings.HasSuffix(file, "-wal") {
				told = append(told, "sync")
			}
			return nil
		},
		SyncDir: func(string) error { return nil },
	}
	defer tap.Install()()
	s := open(t, path)
	d := journaltest.Start(t, s, "a")
	d.Append(t, message(100_000))
	before, err := os.Stat(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	told = nil
	if err := s.Checkpoint("TRUNCATE"); err != nil {
		t.Fatal(err)
	}
	if len(told) < 4 || told[0] == "sync" { // a log is synced before it is copied
		told = told[1:]
	}
	want := []string{"write 32 at 0, zeros true", "sync", "write 262144 at 32, zeros true"}
	if len(told) < 4 || !slices.Equal(told[:3], want) || told[len(told)-1] != "sync" {
		t.Errorf("the log was erased by %q", told)
	}
	after, err := os.ReadFile(path + "-wal")
	if err != nil || int64(len(after)) != before.Size() || bytes.Count(after, []byte{0}) != len(after) {
		t.Errorf("the log had %d bytes and has %d, %v", before.Size(), len(after), err)
	}
	intact(t, s, d)
}
