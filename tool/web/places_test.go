package web_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/tool/web"
)

// Each page is long, and its end comes after eight seconds. Those that wait do so
// for longer than a page may be silent, and none is given up for that.
func TestLongPagesAreReadAFewAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := inBubble(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			if r.URL.Path == "/short" {
				_, _ = io.WriteString(w, "hello")
				return
			}
			_, _ = io.WriteString(w, strings.Repeat("x", 2<<20))
			w.(http.Flusher).Flush()
			select {
			case <-time.After(8 * time.Second):
			case <-r.Context().Done():
			}
		})
		o.Places = new(web.Places)
		var mu sync.Mutex
		var all sync.WaitGroup
		got := map[string]int{}
		note := func(path string) {
			r, took, err := attempt(t, o, "http://example.com/"+path, 0)
			what := path
			if err != nil {
				what = err.Error()
			} else if r.Truncated {
				what += " in part"
			}
			mu.Lock()
			defer mu.Unlock()
			got[took.String()+": "+what]++
		}
		for range 14 {
			all.Go(func() { note("long") })
		}
		synctest.Wait()
		all.Go(func() { note("short") })
		all.Wait()
		want := map[string]int{
			"0s: short": 1, "8s: long": 4, "16s: long": 4, "24s: long": 4,
			// These had their place too late, and still one deadline.
			"30s: example.com did not answer within 30s": 2,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}
