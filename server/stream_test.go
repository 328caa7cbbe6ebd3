package server_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
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
		local := net.TCPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:3001"))
		ask := func(w http.ResponseWriter, method, path, body string) {
			r := httptest.NewRequest(method, "http://127.0.0.1:3001"+path, strings.NewReader(body))
			r.RemoteAddr = "127.0.0.1:4000"
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "text/event-stream")
			s.Handler().ServeHTTP(w, r.WithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, net.Addr(local))))
		}
		begun := httptest.NewRecorder()
		ask(begun, http.MethodPost, "/v1/runs", `{"agent": "answers", "input": "go"}`)
		if begun.Code != http.StatusCreated {
			t.Fatalf("status %d: %s", begun.Code, begun.Body)
		}
		out := &reader{ResponseRecorder: httptest.NewRecorder()}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			ask(out, http.MethodGet, begun.Header().Get("Location")+"/events", "")
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
