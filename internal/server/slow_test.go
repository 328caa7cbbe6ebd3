package server_test

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A reader that takes nothing costs the server at most 1 MiB, also of an answer that is
// nearly as large: whether it comes while the run goes on, or reads what the run did.
func TestAReaderThatDoesNotReadCostsAtMostOneMebibyte(t *testing.T) {
	const readers, most = 50, 1 << 20
	for name, early := range map[string]bool{"there before the answer": true, "come when it was given": false} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{
				"agent.yaml":  answering,
				"script.yaml": "- delay: 20s\n  text: " + strings.Repeat("answers ", 900_000/8) + "\n",
			}
			inBubble(t, files, func(l local, _ string) {
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
			})
		})
	}
}

// heap is how many bytes are in use.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
