package server_test

import (
	"net/http"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/journal"
)

func TestAParkedRunHoldsNoGoroutine(t *testing.T) {
	inBubble(t, writing, func(l local, _ string) {
		counts := func() int {
			time.Sleep(time.Minute) // what a run leaves behind itself for a moment is gone
			synctest.Wait()
			return runtime.NumGoroutine()
		}
		l.begin("writes")
		before := counts()
		for range 100 {
			l.begin("writes")
		}
		after := counts()
		if page := gets[struct{ Items []journal.Run }](l, http.StatusOK, http.MethodGet, "/v1/runs?state=parked&limit=200", ""); len(page.Items) != 101 {
			t.Fatalf("%d runs are parked", len(page.Items))
		}
		if after > before+10 {
			t.Errorf("a hundred parked runs hold %d goroutines", after-before)
		}
	})
}
