package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/host/tokens"
	"github.com/pawlrun/pawl/internal/machine/versions"
	"github.com/pawlrun/pawl/internal/processor"
	"github.com/pawlrun/pawl/internal/rules/access"
	"github.com/pawlrun/pawl/journal/memory"
)

// Admission is what a request costs before its operation begins.
func TestAdmissionIsCheapBesideThreeThousandConnections(t *testing.T) {
	const idle = 3000
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil || files.Cur < 2*idle+500 {
		t.Skipf("needs %d descriptors and has %d (%v)", 2*idle+500, files.Cur, err)
	}
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	var token string
	for i := range 20 {
		var err error
		if token, err = tokens.Create(file, tokens.Entry{Name: fmt.Sprint("ann", i), Role: access.Viewer}); err != nil {
			t.Fatal(err)
		}
	}
	store := memory.New(nil)
	e := engine.New(store, versions.Make, engine.Options{})
	defer e.Close()
	s, err := New(Options{Store: store, Engine: e, Controller: control.New(store, e), Agents: t.TempDir(), User: "somebody", Tokens: file, Connections: 2 * idle})
	if err != nil {
		t.Fatal(err)
	}
	l, err := Listen(t.Context(), "127.0.0.1:0", true)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()

	// Each connection has made a request and stays open.
	answered := func(c net.Conn) {
		t.Helper()
		if _, err := fmt.Fprintf(c, "GET /v1/principal HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", l.Addr(), token); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("status %d, %v", answer.StatusCode, err)
		}
	}
	var first net.Conn
	for range idle {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		answered(c)
		if first == nil {
			first = c
		}
	}
	answered(first)

	admitted := 0
	guarded := s.guarded(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if principalOf(r.Context()).Name == "ann19" {
			admitted++
		}
	}))
	here := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(l.Addr().String()))
	r := httptest.NewRequest(http.MethodGet, "http://"+l.Addr().String()+"/v1/runs", nil)
	r = r.WithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, net.Addr(here)))
	r.RemoteAddr = "127.0.0.1:4000"
	r.Header.Set("Authorization", "Bearer "+token)
	const requests = 1000
	before := processor.Time(t)
	for range requests {
		guarded.ServeHTTP(httptest.NewRecorder(), r)
	}
	cost := (processor.Time(t) - before) / requests
	if admitted != requests || cost > 200*time.Microsecond {
		t.Errorf("%d of %d requests are admitted, for %s of CPU time each", admitted, requests, cost)
	}
	t.Logf("%s of CPU time for each admission", cost)
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
