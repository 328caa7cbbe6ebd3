package server_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/control"
	"github.com/pawlrun/pawl/engine"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/launch"
	"github.com/pawlrun/pawl/server"
)

func anybody(context.Context, netip.AddrPort, netip.AddrPort) error { return nil }

// newServer makes a server of a directory of files, on a journal in memory.
func newServer(t testing.TB, admit server.Admit, files map[string]string) (*server.Server, string) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	store := memory.New(nil)
	e := engine.New(store, launch.Machine, engine.Options{})
	s, err := server.New(server.Options{
		Store: store, Engine: e, Desk: control.New(store, e), Agents: dir,
		Launch: launch.Options{Workspace: dir}, User: "somebody", Admit: admit,
	})
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
	s, _ := newServer(t, anybody, files)
	web := httptest.NewServer(s.Handler())
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
