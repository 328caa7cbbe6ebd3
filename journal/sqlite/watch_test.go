package sqlite_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/journaltest"
	"github.com/pawlrun/pawl/journal/sqlite"
)

// The test measures how long a subscriber waits, not how busy the machine is: the clock
// advances only while all goroutines wait.
func TestOtherStoreSeesCommitsAndCommandsWithin100ms(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	synctest.Test(t, func(t *testing.T) {
		here, there := open(t, path), open(t, path)
		d := journaltest.Start(t, here, "a")
		events, commands := there.Watch(t.Context()), there.WatchInbox(t.Context(), "a")
		hears := func(what string, news <-chan struct{}, do func()) {
			t.Helper()
			synctest.Wait()
			for len(news) > 0 {
				<-news // of what was before
			}
			do()
			begin := time.Now()
			select {
			case <-news:
			case <-time.After(time.Hour):
			}
			if took := time.Since(begin); took > 100*time.Millisecond {
				t.Errorf("%s was told after %s", what, took)
			}
		}
		for range 20 {
			time.Sleep(17 * time.Millisecond) // so that each comes at another moment between two looks
			hears("a commit", events, func() { d.Append(t, texts(1)...) })
			hears("a command", commands, func() {
				if _, err := here.Send(t.Context(), journal.Command{Run: "a", Kind: journal.Pause}); err != nil {
					t.Fatal(err)
				}
			})
		}
	})
}

// Who leaves last takes the log along; nothing of a store may still have the file
// open then, or the log stays behind with all that was committed since it was begun.
func TestAWatchedStoreLeavesNoLogWhenItCloses(t *testing.T) {
	for range 20 {
		path := filepath.Join(t.TempDir(), "journal.db")
		s := openAt(t, path, sqlite.Options{})
		<-s.Watch(t.Context()) // what was before the first look is news
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path + "-wal"); !os.IsNotExist(err) {
			t.Fatal("the log was left behind")
		}
	}
}

// A subscription to a closed store gets no commits, and leaves no goroutine behind.
func TestSubscribingToAClosedStoreLeavesNoGoroutine(t *testing.T) {
	looking := func() bool {
		var all bytes.Buffer
		if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
			t.Fatal(err)
		}
		return strings.Contains(all.String(), "sqlite.(*watcher).poll")
	}
	synctest.Test(t, func(t *testing.T) {
		s := open(t, filepath.Join(t.TempDir(), "journal.db"))
		s.Watch(t.Context())
		synctest.Wait()
		if !looking() {
			t.Fatal("nobody looks for the commits of an open store")
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s.Watch(t.Context())
		s.WatchInbox(t.Context(), "a")
		synctest.Wait()
		if looking() {
			t.Error("somebody looks for the commits of a closed store")
		}
	})
}
