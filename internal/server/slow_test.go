package server_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/journal/sqlite"
)

// A reader that takes nothing costs the server at most 1 MiB, also of an answer that is
// nearly as large: whether it comes while the run goes on, or reads what the run did, and
// whichever store has the journal.
func TestAReaderThatDoesNotReadCostsAtMostOneMebibyte(t *testing.T) {
	stores := map[string]func(t *testing.T) journal.Store{
		"memory": func(*testing.T) journal.Store { return memory.New(nil) },
		"sqlite": func(t *testing.T) journal.Store {
			store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "journal.db"), sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := store.Close(); err != nil {
					t.Error(err)
				}
			})
			return store
		},
	}
	for kind, open := range stores {
		for name, early := range map[string]bool{"there before the answer": true, "come when it was given": false} {
			t.Run(kind+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { readNothing(t, open(t), early) })
			})
		}
	}
}

// readNothing has readers that take the beginning of a long answer only. They come before
// the answer or after it.
func readNothing(t *testing.T, store journal.Store, early bool) {
	const readers, most = 50, 1 << 20
	s, _ := newServerOn(t, store, map[string]string{
		"agent.yaml":  answering,
		"script.yaml": "- delay: 20s\n  text: " + strings.Repeat("answers ", 900_000/8) + "\n",
	})
	l := local{s, t}
	_, path := l.begin("answers")
	if !early {
		time.Sleep(time.Minute)
		l.stands(path)
	}
	before := heap()
	var left sync.WaitGroup
	for range readers {
		left.Go(func() {
			out := &stuck{ResponseRecorder: httptest.NewRecorder(), room: 20_000}
			l.serve(out, http.MethodGet, path+"/events", "", "text/event-stream")
		})
	}
	if early {
		time.Sleep(25 * time.Second)
	}
	synctest.Wait() // all are held up by their readers
	if each := (heap() - before) / readers; each > most {
		t.Errorf("each reader costs %d bytes, want at most %d", each, most)
	} else {
		t.Logf("each reader costs %d bytes", each)
	}
	left.Wait()
}

// heap is how many bytes are in use.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
