package server_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/internal/server"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
)

// slowStart is a journal that takes a second for the first event of each run.
type slowStart struct{ journal.Store }

func (s slowStart) Create(ctx context.Context, run journal.Run, b journal.Batch) (journal.Lease, int64, error) {
	time.Sleep(time.Second)
	return s.Store.Create(ctx, run, b)
}

// Of many starts at once each that is answered with a run has one, and no other has: not
// the refused ones, and not those whose client has gone.
func TestOnlyAStartThatIsAnsweredMakesARun(t *testing.T) {
	const many, gone = 400, 40
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(nil)
		s, _ := newServerOn(t, slowStart{store}, thinking)
		l := local{s, t}
		for range 2 {
			before := runsOf(t, store)
			answers := make([]*httptest.ResponseRecorder, many+gone)
			var asking sync.WaitGroup
			for i := range answers {
				answers[i] = httptest.NewRecorder()
				asking.Go(func() {
					ctx := t.Context()
					if i >= many {
						var leave context.CancelFunc
						ctx, leave = context.WithTimeout(ctx, time.Second/2)
						defer leave()
						time.Sleep(time.Millisecond) // behind the others
					}
					conforming(t, s).ServeHTTP(answers[i], requestFromHere(ctx, http.MethodPost, "/v1/runs", starts))
				})
			}
			asking.Wait()
			started := map[string]bool{}
			refused := 0
			for i, w := range answers {
				switch {
				case w.Code == http.StatusCreated && i < many:
					var run journal.Run
					if err := json.Unmarshal(w.Body.Bytes(), &run); err != nil {
						t.Fatal(err)
					}
					started[run.ID] = true
				case w.Code == http.StatusServiceUnavailable && w.Header().Get("Retry-After") == "5":
					refused++
				case i < many:
					t.Errorf("start %d: %d %s", i, w.Code, w.Body)
				}
			}
			made := runsOf(t, store)
			for id := range before {
				delete(made, id)
			}
			if len(started) == 0 || refused == 0 || len(made) != len(started) {
				t.Errorf("%d starts have a run, %d were refused, and there are %d runs", len(started), refused, len(made))
			}
			for id := range started {
				if !made[id] {
					t.Errorf("there is no run %s", id)
				}
			}
			if run := gets[journal.Run](l, http.StatusCreated, http.MethodPost, "/v1/runs", starts); run.ID == "" {
				t.Error("afterwards none starts")
			}
		}
	})
}

func runsOf(t *testing.T, store journal.Store) map[string]bool {
	t.Helper()
	rows, err := store.Runs(t.Context(), journal.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, row := range rows {
		ids[row.ID] = true
	}
	return ids
}

func TestAServerWithoutSpaceIsNotReady(t *testing.T) {
	free := uint64(1 << 40)
	s, _ := newServerWith(t, memory.New(nil), nil, func(o *server.Options) {
		o.Space = func() (uint64, error) { return free, nil }
	})
	l := local{s, t}
	for range 2 {
		free = 64 << 20
		gets[any](l, http.StatusOK, http.MethodGet, "/readyz", "")
		free--
		p := l.refuses(http.StatusServiceUnavailable, "unavailable", http.MethodGet, "/readyz", "")
		if !strings.Contains(p.Detail, "63 MiB free") || !strings.Contains(p.Detail, "64 MiB") {
			t.Errorf("%q", p.Detail)
		}
	}
}
