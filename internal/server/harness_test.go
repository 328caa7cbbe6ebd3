package server_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/machine/versions"
	"github.com/pawlrun/pawl/internal/server"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
)

// newServer makes a server of a directory of files, on a journal in memory.
func newServer(t testing.TB, files map[string]string) (*server.Server, string) {
	t.Helper()
	return newServerOn(t, memory.New(nil), files)
}

func newServerOn(t testing.TB, store journal.Store, files map[string]string) (*server.Server, string) {
	t.Helper()
	return newServerWith(t, store, files, func(*server.Options) {})
}

// newServerWith makes a server whose options are changed.
func newServerWith(t testing.TB, store journal.Store, files map[string]string, change func(*server.Options)) (*server.Server, string) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e := engine.New(store, versions.Make, engine.Options{})
	o := server.Options{
		Store: store, Engine: e, Controller: control.New(store, e), Agents: dir,
		Launch: launch.Options{Flags: launch.Flags{Workspace: dir}}, User: "somebody", NoAuth: true,
	}
	change(&o)
	s, err := server.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, dir
}

// site is a server that listens.
type site struct {
	*httptest.Server
	t *testing.T
}

func listening(t *testing.T, files map[string]string) site {
	t.Helper()
	s, _ := newServer(t, files)
	web := httptest.NewServer(conforming(t, s))
	t.Cleanup(web.Close)
	return site{web, t}
}

// ask makes a request, changed by how, and returns the status and the problem
// that it gets, if it gets one.
func (s site) ask(method, path, body string, how func(*http.Request)) (int, server.Problem) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if how != nil {
		how(r)
	}
	answer, err := s.Client().Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	var p server.Problem
	if answer.StatusCode >= 400 {
		if kind := answer.Header.Get("Content-Type"); kind != "application/problem+json" {
			s.t.Errorf("%s %s: a problem is %q: %s", method, path, kind, text)
		}
		if err := json.Unmarshal(text, &p); err != nil {
			s.t.Fatalf("%s %s: %v: %s", method, path, err, text)
		}
		if p.Status != answer.StatusCode || p.Detail == "" || p.Next == "" || p.Type == "" {
			s.t.Errorf("%s %s: the problem says too little: %s", method, path, text)
		}
	}
	return answer.StatusCode, p
}

// local asks a server without a network, so that time may be virtual.
type local struct {
	*server.Server
	t *testing.T
}

// serve answers a request of this machine.
func (l local) serve(w http.ResponseWriter, method, path, body string, accept ...string) {
	conforming(l.t, l.Server).ServeHTTP(w, requestFromHere(l.t.Context(), method, path, body, accept...))
}

// requestFromHere is a request with JSON over a connection of this machine.
func requestFromHere(ctx context.Context, method, path, body string, accept ...string) *http.Request {
	r := httptest.NewRequest(method, "http://127.0.0.1:3001"+path, strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:4000"
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header["Accept"] = accept
	here := net.TCPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:3001"))
	return r.WithContext(context.WithValue(ctx, http.LocalAddrContextKey, net.Addr(here)))
}

// gets makes a request that must get a status, and decodes what else it gets.
func gets[T any](l local, status int, method, path, body string) (v T) {
	l.t.Helper()
	w := httptest.NewRecorder()
	l.serve(w, method, path, body)
	if w.Code != status {
		l.t.Fatalf("%s %s: status %d, want %d: %s", method, path, w.Code, status, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		l.t.Fatalf("%s %s: %v: %s", method, path, err, w.Body)
	}
	return v
}

// refuses makes a request that must be refused with a problem of a kind.
func (l local) refuses(status int, kind, method, path, body string) server.Problem {
	l.t.Helper()
	p := gets[server.Problem](l, status, method, path, body)
	if p.Type != "urn:pawl:problem:"+kind || p.Detail == "" || p.Next == "" {
		l.t.Errorf("%s %s: the problem is %+v, want %s", method, path, p, kind)
	}
	return p
}

// begin starts a run of an agent and returns its path.
func (l local) begin(agent string) (run journal.Run, path string) {
	l.t.Helper()
	run = gets[journal.Run](l, http.StatusCreated, http.MethodPost, "/v1/runs", `{"agent": "`+agent+`", "input": "go"}`)
	return run, "/v1/runs/" + run.ID
}
