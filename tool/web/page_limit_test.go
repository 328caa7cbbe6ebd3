package web

import (
	"context"
	"errors"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
)

func TestLongPagesAreReadOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := new(PageLimit)
		leave, err := limit.take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		long := "<p>x" + strings.Repeat(" ", smallPage)
		read := func(page string, patience time.Duration) (took time.Duration, err error) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			start := time.Now()
			_, _, err = reduce(ctx, page, &url.URL{}, 100, limit)
			return time.Since(start), err
		}
		if took, err := read(long[:smallPage], time.Second); took > 0 || err != nil {
			t.Errorf("a page that is not long waits for %s, %v", took, err)
		}
		took, err := read(long, 5*time.Second)
		if e, ok := errors.AsType[*tool.Error](err); !ok || e.Type != event.ErrorTimeout || took != 5*time.Second {
			t.Errorf("a page without a place gives %v after %s", err, took)
		}
		var waiting sync.WaitGroup
		for range 3 {
			waiting.Go(func() {
				if took, err := read(long, time.Minute); took != 7*time.Second || err != nil {
					t.Errorf("a page that waits for its place gives %v after %s", err, took)
				}
			})
		}
		time.Sleep(7 * time.Second)
		leave()
		waiting.Wait()
	})
}

func TestAPageForWhichThereWasNoTimeIsNotBlamedOnItsServer(t *testing.T) {
	late, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	_, _, why := reduce(late, "<p>x", &url.URL{}, 100, new(PageLimit))
	err := Options{Timeout: time.Second}.failure(late, target{host: "example.com"}, why)
	if !strings.Contains(err.Error(), "no time to read the page as HTML; source gives it as it is") {
		t.Errorf("got %v", err)
	}
}

// What eight hostile pages take together is what one takes.
func TestHostilePagesTakeNoMoreTogetherThanOne(t *testing.T) {
	page := strings.Repeat("<p>x", 1<<20/len("<p>x"))
	most := func(readers int) (held uint64) {
		runtime.GC()
		limit, done := new(PageLimit), make(chan struct{})
		var all sync.WaitGroup
		for range readers {
			all.Go(func() {
				if _, _, err := reduce(t.Context(), page, &url.URL{}, 1000, limit); err != nil {
					t.Error(err)
				}
			})
		}
		go func() { all.Wait(); close(done) }()
		for {
			select {
			case <-done:
				return held
			case <-time.After(time.Millisecond):
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				held = max(held, m.HeapAlloc)
			}
		}
	}
	one, eight := most(1), most(8)
	if eight > 5*one {
		t.Errorf("one takes %d MiB, eight take %d", one>>20, eight>>20)
	}
}
