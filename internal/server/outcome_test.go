package server_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/journal"
)

const starts = `{"agent": "thinks", "input": "go"}`

// awaited is a run with the part of its outcome that is looked at.
type awaited struct {
	ID      string
	State   journal.State
	Outcome struct {
		Reason string
		Output string `json:"final_output"`
	}
}

func TestAStartThatWaitsIsAnsweredWithTheOutcome(t *testing.T) {
	inBubble(t, thinking, func(l local, _ string) {
		for range 2 {
			if run := gets[awaited](l, http.StatusCreated, http.MethodPost, "/v1/runs?wait=300", starts); run.State != journal.Ended || run.Outcome.Reason != "final_answer" {
				t.Errorf("it is %+v", run)
			}
			began := time.Now()
			run := gets[awaited](l, http.StatusAccepted, http.MethodPost, "/v1/runs?wait=1", starts)
			if took := time.Since(began); run.State == journal.Ended || took < time.Second || took > 2*time.Second {
				t.Errorf("after %s it is %+v", took, run)
			}
			if later := l.stands("/v1/runs/" + run.ID); later.ID != run.ID {
				t.Errorf("it is lost: %+v", later)
			}
		}
		for _, query := range []string{"wait=0", "wait=301", "wait=-1", "wait=x", "wait=", "deltas=true", "tree=true", "format=pawl"} {
			l.refuses(http.StatusBadRequest, "bad-query", http.MethodPost, "/v1/runs?"+query, starts)
		}
	})
}

func TestAStartThatWaitsIsAnsweredWhereTheRunParks(t *testing.T) {
	inBubble(t, writing, func(l local, _ string) {
		for range 2 {
			began := time.Now()
			run := gets[awaited](l, http.StatusAccepted, http.MethodPost, "/v1/runs?wait=300", `{"agent": "writes", "input": "go"}`)
			if took := time.Since(began); run.State != journal.Parked || took > time.Minute {
				t.Errorf("after %s it is %+v", took, run)
			}
		}
	})
}

func TestAStartThatAcceptsEventsStreamsItsRun(t *testing.T) {
	inBubble(t, thinking, func(l local, _ string) {
		for range 2 {
			for query, want := range map[string]string{"": "event: run.completed", "?deltas=true": "event: run.completed", "?format=ag-ui": "RUN_FINISHED"} {
				w := httptest.NewRecorder()
				l.serve(w, http.MethodPost, "/v1/runs"+query, starts, "text/event-stream")
				path := w.Header().Get("Location")
				if w.Code != http.StatusCreated || path == "" || strings.Count(w.Body.String(), want) != 1 {
					t.Errorf("%q: %d %q\n%s", query, w.Code, path, w.Body)
				}
				if row := l.stands(path); row.State != journal.Ended {
					t.Errorf("%q: the run is %+v", query, row)
				}
			}
		}
		for _, query := range []string{"wait=3", "format=none"} {
			w := httptest.NewRecorder()
			l.serve(w, http.MethodPost, "/v1/runs?"+query, starts, "text/event-stream")
			if w.Code != http.StatusBadRequest {
				t.Errorf("%s: %d %s", query, w.Code, w.Body)
			}
		}
	})
}

// A client that lost its connection asks again with the same key, and hears of the same
// run from the beginning.
func TestAStreamedStartWithAKeyIsMadeOnce(t *testing.T) {
	inBubble(t, thinking, func(l local, _ string) {
		var paths []string
		for range 3 {
			w := httptest.NewRecorder()
			r := requestFromHere(l.t.Context(), http.MethodPost, "/v1/runs", starts, "text/event-stream")
			r.Header.Set("Idempotency-Key", "one")
			conforming(l.t, l.Server).ServeHTTP(w, r)
			paths = append(paths, w.Header().Get("Location"))
			if !strings.Contains(w.Body.String(), "event: run.started") || !strings.Contains(w.Body.String(), "event: run.completed") {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		}
		if paths[0] == "" || paths[1] != paths[0] || paths[2] != paths[0] {
			t.Errorf("it is run as %q", paths)
		}
	})
}

func TestAForkIsRunUnlessTheBodySaysOtherwise(t *testing.T) {
	inBubble(t, thinking, func(l local, _ string) {
		_, path := l.begin("thinks")
		time.Sleep(time.Minute)
		for range 2 {
			for body, want := range map[string]journal.State{`{"seq": 3}`: journal.Ended, `{"seq": 3, "run": true}`: journal.Ended, `{"seq": 3, "run": false}`: journal.Queued} {
				fork := gets[journal.Run](l, http.StatusCreated, http.MethodPost, path+"/fork", body)
				time.Sleep(time.Minute)
				synctest.Wait()
				if got := l.stands("/v1/runs/" + fork.ID); got.State != want {
					t.Errorf("%s: it is %+v", body, got)
				}
			}
		}
	})
}
