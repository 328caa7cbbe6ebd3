package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/machine/versions"
	"github.com/pawlrun/pawl/internal/server"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
)

// keyed makes a request with an Idempotency-Key.
func (l local) keyed(key, path, body string) *httptest.ResponseRecorder {
	l.t.Helper()
	r := requestFromHere(l.t.Context(), http.MethodPost, path, body)
	r.Header.Set("Idempotency-Key", key)
	w := httptest.NewRecorder()
	conforming(l.t, l.Server).ServeHTTP(w, r)
	return w
}

func (l local) runs() int {
	l.t.Helper()
	return len(gets[struct{ Items []any }](l, http.StatusOK, http.MethodGet, "/v1/runs", "").Items)
}

// another is a server on the journal and the files of one that was closed.
func another(t *testing.T, store journal.Store, dir string) local {
	t.Helper()
	e := engine.New(store, versions.Make, engine.Options{})
	s, err := server.New(server.Options{
		Store: store, Engine: e, Controller: control.New(store, e), Agents: dir,
		Launch: launch.Options{Flags: launch.Flags{Workspace: dir}}, User: "somebody", NoAuth: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), e.Close()); err != nil {
			t.Error(err)
		}
	})
	return local{s, t}
}

const ordered = `{"agent": "thinks", "input": "go"}`

func TestRequestWithSameKeyMakesOneRunAcrossRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(nil)
		s, dir := newServerOn(t, store, thinking)
		l := local{s, t}
		first := l.keyed("k1", "/v1/runs", ordered)
		if first.Code != http.StatusCreated || first.Header().Get("Location") == "" {
			t.Fatalf("%d %s", first.Code, first.Body)
		}
		again := func(l local) {
			t.Helper()
			w := l.keyed("k1", "/v1/runs", ordered)
			if w.Code != first.Code || w.Body.String() != first.Body.String() || w.Header().Get("Location") != first.Header().Get("Location") {
				t.Errorf("again: %d %s, first %s", w.Code, w.Body, first.Body)
			}
			for body, path := range map[string]string{`{"agent": "thinks", "input": "stop"}`: "/v1/runs", ordered: "/v1/runs/none/cancel"} {
				if w := l.keyed("k1", path, body); w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), "key-reused") {
					t.Errorf("%s %s: %d %s", path, body, w.Code, w.Body)
				}
			}
		}
		again(l)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		l = another(t, store, dir)
		again(l)
		if n := l.runs(); n != 1 {
			t.Errorf("there are %d runs", n)
		}
		time.Sleep(25 * time.Hour)
		if w := l.keyed("k1", "/v1/runs", ordered); w.Code != http.StatusCreated || w.Body.String() == first.Body.String() {
			t.Errorf("a day later: %d %s", w.Code, w.Body)
		}
		for key, want := range map[string]int{"": 400, "a key": 400, strings.Repeat("k", 256): 400, "k2": 201} {
			if w := l.keyed(key, "/v1/runs", ordered); w.Code != want {
				t.Errorf("the key %q: %d %s", key, w.Code, w.Body)
			}
		}
	})
}

func TestOfEqualRequestsAtOnceOneIsDone(t *testing.T) {
	inBubble(t, thinking, func(l local, _ string) {
		codes := make([]int, 10)
		var all sync.WaitGroup
		for i := range codes {
			all.Go(func() { codes[i] = l.keyed("k", "/v1/runs", ordered).Code })
		}
		all.Wait()
		made := 0
		for _, code := range codes {
			switch code {
			case http.StatusCreated:
				made++
			case http.StatusConflict: // not answered yet
			default:
				t.Errorf("one gets %d", code)
			}
		}
		if n := l.runs(); made == 0 || n != 1 {
			t.Errorf("%d were answered, and there are %d runs", made, n)
		}
	})
}

func TestMessageWithKeyIsSentOnce(t *testing.T) {
	inBubble(t, thinking, func(l local, _ string) {
		_, path := l.begin("thinks")
		for range 3 {
			if w := l.keyed("said", path+"/input", `{"text": "hello"}`); w.Code != http.StatusOK {
				t.Fatal(w.Body)
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if said := happened[event.InputReceived](l, path); len(said) != 1 {
			t.Errorf("the run heard %+v", said)
		}
		for range 2 { // what was refused is refused in the same way
			if w := l.keyed("late", path+"/input", `{"text": "hello"}`); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "run-ended") {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		}
	})
}

// forgetful is a journal of a process that ends before an answer is in it.
type forgetful struct{ journal.Store }

func (forgetful) Amend(context.Context, int64, []byte) error { return journal.ErrIO }

func TestWhatWasNotAnsweredBeforeTheProcessEndedIsNotDoneTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(nil)
		s, dir := newServerOn(t, forgetful{store}, thinking)
		l := local{s, t}
		run := l.keyed("start", "/v1/runs", ordered)
		path := run.Header().Get("Location")
		l.keyed("say", path+"/input", `{"text": "hello"}`)
		l.keyed("pause", path+"/pause", "")
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		l = another(t, store, dir)
		if w := l.keyed("start", "/v1/runs", ordered); w.Code != http.StatusCreated || w.Header().Get("Location") != path || l.runs() != 1 {
			t.Errorf("started again: %d %s, %d runs", w.Code, w.Body, l.runs())
		}
		if w := l.keyed("say", path+"/input", `{"text": "hello"}`); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "perhaps-done") {
			t.Errorf("said again: %d %s", w.Code, w.Body)
		}
		if w := l.keyed("pause", path+"/pause", ""); strings.Contains(w.Body.String(), "perhaps-done") {
			t.Errorf("paused again: %d %s", w.Code, w.Body)
		}
	})
}

// A failure of the server is no answer to keep.
func TestARequestThatFailedMayBeMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &unwritable{Store: memory.New(nil), why: journal.ErrFull}
		s, _ := newServerOn(t, store, thinking)
		l := local{s, t}
		if w := l.keyed("k", "/v1/runs", ordered); w.Code != http.StatusServiceUnavailable {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		store.why = nil
		if w := l.keyed("k", "/v1/runs", ordered); w.Code != http.StatusCreated {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}

// unwritable is a journal that takes no run.
type unwritable struct {
	journal.Store
	why error
}

func (u *unwritable) Create(ctx context.Context, r journal.Run, b journal.Batch) (journal.Lease, int64, error) {
	if u.why != nil {
		return journal.Lease{}, 0, u.why
	}
	return u.Store.Create(ctx, r, b)
}

func TestTheJournalSaysWhoWasRefusedWhatAndWhoChangedWhat(t *testing.T) {
	inGate(t, writing, func(g gated) {
		g.as(g.given["viewer"], http.MethodGet, "/v1/runs", "")
		g.as(g.given["viewer"], http.MethodPost, "/v1/runs", `{"agent": "writes", "input": "go"}`)
		g.as(g.given["editor"], http.MethodPost, "/v1/runs", `{"agent": "writes", "input": "go"}`)
		for range 300 {
			g.as("pawl_guess", http.MethodGet, "/v1/runs", "")
		}
		type audit struct {
			ID        int64
			Principal event.Principal
			Operation string
			Remote    string
			Status    int
			Refused   string
		}
		var all []audit
		for cursor := ""; ; {
			var page struct {
				Items []audit
				Next  string
			}
			w := g.as(g.given["admin"], http.MethodGet, "/v1/audit?limit=30"+cursor, "")
			if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil {
				t.Fatal(err)
			}
			all = append(all, page.Items...)
			if page.Next == "" {
				break
			}
			cursor = "&cursor=" + page.Next
		}
		if len(all) < 50 || len(all) > 110 {
			t.Fatalf("%d are kept", len(all))
		}
		made, refused := all[len(all)-2], all[len(all)-1]
		if made.Principal.Name != "the-editor" || made.Status != http.StatusCreated || made.Refused != "" || made.Operation != "POST /v1/runs" {
			t.Errorf("the run is kept as %+v", made)
		}
		if refused.Principal.Role != "viewer" || refused.Status != http.StatusForbidden || !strings.Contains(refused.Refused, "does not permit") || refused.Remote == "" {
			t.Errorf("the viewer is kept as %+v", refused)
		}
		for _, c := range []string{"x", "7", "audit:0", "audit:x"} {
			if w := g.as(g.given["admin"], http.MethodGet, "/v1/audit?cursor="+c, ""); w.Code != http.StatusBadRequest {
				t.Errorf("the cursor %s: %d", c, w.Code)
			}
		}
	})
}
