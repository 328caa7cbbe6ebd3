package server_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
)

// reader is a response that is read while it is written.
type reader struct {
	*httptest.ResponseRecorder
	mu sync.Mutex
}

func (r *reader) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ResponseRecorder.Write(b)
}

func (r *reader) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Body.String()
}

func TestAStreamIsAliveEveryTenSecondsAndEndsWithTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServer(t, anybody, map[string]string{
			"agent.yaml":  answering,
			"script.yaml": "- text: the end\n  delay: 1h\n",
		})
		l := local{s, t}
		_, path := l.begin("answers")
		out := &reader{ResponseRecorder: httptest.NewRecorder()}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			l.serve(out, http.MethodGet, path+"/events", "", "text/event-stream")
		}()
		time.Sleep(35 * time.Second)
		synctest.Wait()
		if n := strings.Count(out.text(), ": alive\n"); n != 3 {
			t.Errorf("%d heartbeats in 35 s, want 3:\n%s", n, out.text())
		}
		if !strings.Contains(out.text(), "event: model.requested\n") {
			t.Errorf("the stream has no events:\n%s", out.text())
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		<-ended
	})
}

// stuck is a reader that takes a little: then a write to it ends at its deadline.
type stuck struct {
	*httptest.ResponseRecorder
	room     int
	deadline time.Time
}

func (s *stuck) SetWriteDeadline(t time.Time) error { s.deadline = t; return nil }

func (s *stuck) Write(p []byte) (int, error) {
	if s.room -= len(p); s.room >= 0 {
		return len(p), nil
	}
	time.Sleep(time.Until(s.deadline))
	return 0, os.ErrDeadlineExceeded
}

// counted is a store that counts the events that are read from it.
type counted struct {
	journal.Store
	read atomic.Int64
}

func (c *counted) Records(ctx context.Context, run string, after int64, limit int) ([]journal.Record, error) {
	records, err := c.Store.Records(ctx, run, after, limit)
	c.read.Add(int64(len(records)))
	return records, err
}

func TestAReaderThatStopsReadingHoldsNoRunUpAndIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &counted{Store: memory.New(nil)}
		script := ""
		for i := range 40 {
			script += fmt.Sprintf("- tool_calls: [{name: fs.write, arguments: {path: %d.txt, content: x}}]\n", i)
		}
		s, _ := newServerOn(t, store, anybody, map[string]string{
			"agent.yaml":  "identity: {name: busy}\nmodel_policy: {primary: {model: scripted/script.yaml}}\ntools: {allow: [fs.write]}\n",
			"script.yaml": script + "- text: the end\n",
		})
		l := local{s, t}
		_, path := l.begin("busy")
		store.read.Store(0)
		began := time.Now()
		var cut time.Duration
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			l.serve(&stuck{ResponseRecorder: httptest.NewRecorder(), room: 1000}, http.MethodGet, path+"/events", "", "text/event-stream")
			cut = time.Since(began)
		}()
		time.Sleep(time.Second)
		synctest.Wait()
		read := store.read.Load()
		if run := l.stands(path); run.State != journal.Ended || run.Seq < 200 {
			t.Errorf("a second later the run is %s after %d events", run.State, run.Seq)
		}
		if read > 100 {
			t.Errorf("%d events are held for a reader that takes no more", read)
		}
		<-ended
		if cut != 30*time.Second {
			t.Errorf("the reader is cut off after %s", cut)
		}
	})
}

// A stream has no end of its own while its run goes, and HEAD asks for none of it.
func TestTheHeadOfAStreamIsAnsweredAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServer(t, anybody, map[string]string{
			"agent.yaml":  answering,
			"script.yaml": "- text: the end\n  delay: 1h\n",
		})
		l := local{s, t}
		_, path := l.begin("answers")
		began, w := time.Now(), httptest.NewRecorder()
		l.serve(w, http.MethodHead, path+"/events", "", "text/event-stream")
		if kind := w.Header().Get("Content-Type"); kind != "text/event-stream" || time.Since(began) > 0 {
			t.Errorf("%q after %s", kind, time.Since(began))
		}
	})
}

// deserted is a store that is read for a client that has gone.
type deserted struct{ journal.Store }

func (d deserted) Runs(ctx context.Context, f journal.Filter) ([]journal.Run, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	return d.Store.Runs(ctx, f)
}

// A client that closes its half of the connection once it has asked may still
// read.
func TestAClientThatHasGoneIsNoFailureOfTheServer(t *testing.T) {
	s, _ := newServerOn(t, deserted{memory.New(nil)}, anybody, nil)
	ctx, gone := context.WithCancel(t.Context())
	gone()
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, requestFromHere(ctx, http.MethodGet, "/v1/runs", ""))
	if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "urn:pawl:problem:connection-closed") {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
}
