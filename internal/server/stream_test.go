package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
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
		s, _ := newServer(t, map[string]string{
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

func TestStalledReaderIsDisconnectedWithoutBlockingOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &counted{Store: memory.New(nil)}
		script := ""
		for i := range 40 {
			script += fmt.Sprintf("- tool_calls: [{name: fs.write, arguments: {path: %d.txt, content: x}}]\n", i)
		}
		s, _ := newServerOn(t, store, map[string]string{
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
		if other := l.streamed(path+"/events", ""); len(other) < 200 || time.Since(began) > 2*time.Second {
			t.Errorf("after %s another reader has %d events", time.Since(began), len(other))
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
		s, _ := newServer(t, map[string]string{
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
	s, _ := newServerOn(t, deserted{memory.New(nil)}, nil)
	ctx, gone := context.WithCancel(t.Context())
	gone()
	w := httptest.NewRecorder()
	conforming(t, s).ServeHTTP(w, requestFromHere(ctx, http.MethodGet, "/v1/runs", ""))
	if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "urn:pawl:problem:connection-closed") {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
}

// frame is an event of a stream.
type frame struct{ id, kind, data string }

func framesOf(text string) (frames []frame) {
	for part := range strings.SplitSeq(text, "\n\n") {
		var f frame
		for line := range strings.SplitSeq(part, "\n") {
			name, value, _ := strings.Cut(line, ": ")
			switch name {
			case "id":
				f.id = value
			case "event":
				f.kind = value
			case "data":
				f.data = value
			}
		}
		if f.data != "" {
			frames = append(frames, f)
		}
	}
	return frames
}

// streamed reads a stream to its end.
func (l local) streamed(path, lastEvent string) []frame {
	l.t.Helper()
	w := &reader{ResponseRecorder: httptest.NewRecorder()}
	r := requestFromHere(l.t.Context(), http.MethodGet, path, "", "text/event-stream")
	if lastEvent != "" {
		r.Header.Set("Last-Event-ID", lastEvent)
	}
	conforming(l.t, l.Server).ServeHTTP(w, r)
	return framesOf(w.text())
}

// asking is an agent that asks another one, which writes a file.
func asking() map[string]string {
	return map[string]string{
		"asks.yaml":    "identity: {name: asks}\nmodel_policy: {primary: {model: scripted/asks.script}}\ntools: {allow: [helper], agents: [{file: helps.yaml, name: helper, description: helps}]}\n",
		"helps.yaml":   "identity: {name: helps, description: helps}\nmodel_policy: {primary: {model: scripted/helps.script}}\ntools: {allow: [fs.write]}\n",
		"asks.script":  "- tool_calls: [{name: helper, arguments: {task: write}}]\n- {text: all is written, delay: 1s}\n",
		"helps.script": "- tool_calls: [{name: fs.write, arguments: {path: a.txt, content: x}}]\n- {text: it is written, delay: 1s}\n",
	}
}

// Whenever a client comes back, it gets what it would have got.
func TestAClientThatComesBackAfterAnyEventGetsTheSameSequence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServer(t, asking())
		l := local{s, t}
		_, path := l.begin("asks")
		for _, tree := range []string{"", "tree=true"} {
			whole := l.streamed(path+"/events?"+tree, "")
			if n := len(whole); n < 20 || whole[n-1].kind != "run.completed" {
				t.Fatalf("%d events", n)
			}
			for i, f := range whole {
				byHeader, byQuery := l.streamed(path+"/events?"+tree, f.id), l.streamed(path+"/events?after="+f.id+"&"+tree, "")
				if rest := whole[i+1:]; !slices.Equal(byHeader, rest) || !slices.Equal(byQuery, rest) {
					t.Fatalf("after event %d of %d of %q there are %d and %d", i+1, len(whole), tree, len(byHeader), len(byQuery))
				}
			}
		}
	})
}

func TestLiveEventsAreInAStreamForWhoAsksForThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServer(t, asking())
		l := local{s, t}
		_, path := l.begin("asks")
		plain := make(chan []frame)
		go func() { plain <- l.streamed(path+"/events?tree=true", "") }()
		received := l.streamed(path+"/events?tree=true&deltas=true", "")
		var said, durable []frame
		for _, f := range received {
			if f.id == "" {
				said = append(said, f)
			} else {
				durable = append(durable, f)
			}
		}
		if len(said) < 2 || !slices.Equal(durable, <-plain) {
			t.Errorf("%d live events among %d", len(said), len(received))
		}
	})
}

// A stream that begins with the state goes on behind it, and one that goes on from a
// place does not begin again.
func TestAStreamMayBeginWithHowTheRunStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServer(t, asking())
		l := local{s, t}
		run, path := l.begin("asks")
		time.Sleep(500 * time.Millisecond) // the helper's model thinks
		received := l.streamed(path+"/events?tree=true&snapshot=true", "")
		whole := l.streamed(path+"/events?tree=true", "")
		var snap struct {
			Pos  int64
			Run  journal.Run
			Tree []journal.Run
		}
		if err := json.Unmarshal([]byte(received[0].data), &snap); err != nil {
			t.Fatal(err)
		}
		if received[0].kind != "snapshot" || snap.Run.ID != run.ID || snap.Run.State != journal.Running || len(snap.Tree) != 2 {
			t.Fatalf("the stream begins with %+v", received[0])
		}
		at := slices.IndexFunc(whole, func(f frame) bool { return f.id == fmt.Sprint(snap.Pos) })
		if at < 5 || !slices.Equal(received[1:], whole[at+1:]) {
			t.Errorf("behind the state at %d there are %d of %d events", at, len(received)-1, len(whole))
		}
		if again := l.streamed(path+"/events?tree=true&snapshot=true", received[1].id); !slices.Equal(again, received[2:]) {
			t.Errorf("who comes back gets %d events, beginning with %s", len(again), again[0].kind)
		}
		if ended := l.streamed(path+"/events?snapshot=true", ""); len(ended) != 1 || ended[0].kind != "snapshot" {
			t.Errorf("of an ended run %d events are sent", len(ended))
		}
	})
}

// late is a store in which events come between the place where a stream begins and
// the state that it begins with.
type late struct{ journal.Store }

func (s late) Last(ctx context.Context) (int64, error) {
	pos, err := s.Store.Last(ctx)
	return max(pos-5, 0), err
}

func TestWhatTheStateOfARunHasIsNotSentBehindIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServerOn(t, late{memory.New(nil)}, asking())
		l := local{s, t}
		_, path := l.begin("asks")
		time.Sleep(500 * time.Millisecond)
		received := l.streamed(path+"/events?tree=true&snapshot=true", "")
		whole := l.streamed(path+"/events?tree=true", "")
		var snap struct{ Pos int64 }
		if err := json.Unmarshal([]byte(received[0].data), &snap); err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(whole, func(f frame) bool { return f.id == fmt.Sprint(snap.Pos+5) })
		if at < 5 || !slices.Equal(received[1:], whole[at+1:]) {
			t.Errorf("behind the state at %d there are %d of %d events", at, len(received)-1, len(whole))
		}
	})
}

// Pages of a tree hold the events that its stream holds, in the same order.
func TestPagesOfATreeHoldWhatItsStreamHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServer(t, asking())
		l := local{s, t}
		_, path := l.begin("asks")
		for _, of := range []string{path, ""} {
			if of == "" {
				tree := gets[struct{ Items []struct{ ID string } }](l, http.StatusOK, http.MethodGet, path+"/tree", "").Items
				of = "/v1/runs/" + tree[1].ID // a run that is not the root
			}
			whole := l.streamed(of+"/events?tree=true", "")
			var paged []string
			for next := "0"; next != ""; {
				page := gets[struct {
					Items []json.RawMessage
					Next  string
				}](l, http.StatusOK, http.MethodGet, of+"/events?tree=true&limit=7&after="+next, "")
				if len(page.Items) > 7 {
					t.Fatalf("a page has %d events", len(page.Items))
				}
				for _, item := range page.Items {
					paged = append(paged, string(item))
				}
				next = page.Next
			}
			if len(paged) != len(whole) {
				t.Fatalf("%s: %d events in pages, %d in the stream", of, len(paged), len(whole))
			}
			for i, f := range whole {
				if f.data != paged[i] {
					t.Errorf("event %d is %s in a page and %s in the stream", i, paged[i], f.data)
				}
			}
		}
		for _, query := range []string{"deltas=true", "snapshot=true", "tree=true&format=ag-ui"} {
			p := gets[struct{ Detail string }](l, http.StatusBadRequest, http.MethodGet, path+"/events?"+query, "")
			if !strings.Contains(p.Detail, "is for streams") {
				t.Errorf("%s: %q", query, p.Detail)
			}
		}
	})
}

// A proxy must neither hold a stream back nor change it.
func TestAStreamTellsProxiesToPassItOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServer(t, asking())
		l := local{s, t}
		_, path := l.begin("asks")
		for _, query := range []string{"", "?tree=true", "?format=ag-ui"} {
			w := &reader{ResponseRecorder: httptest.NewRecorder()}
			conforming(t, s).ServeHTTP(w, requestFromHere(t.Context(), http.MethodGet, path+"/events"+query, "", "text/event-stream"))
			if h := w.Header(); h.Get("X-Accel-Buffering") != "no" || h.Get("Cache-Control") != "no-store, no-transform" {
				t.Errorf("%q: %v", query, h)
			}
		}
	})
}
