package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Behind nginx as it is configured by default, a reader of a stream has an event when it
// happens, not when the run ends or some kilobytes are there.
func TestNginxHoldsNoEventBack(t *testing.T) {
	if os.Getenv("PAWL_LONG") == "" {
		t.Skip("part of the long suite: PAWL_LONG=1")
	}
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		t.Skip("there is no nginx")
	}
	s, _ := newServer(t, map[string]string{"agent.yaml": answering, "script.yaml": "- delay: 1h\n  text: the end\n"})
	web := httptest.NewServer(conforming(t, s))
	defer web.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	client := behindNginx(ctx, t, nginx, web.URL)

	first := streamThrough(ctx, t, client, http.MethodPost, "/v1/runs", `{"agent": "answers", "input": "go"}`)
	first.has("run.started")
	path := first.Header.Get("Location")
	second := streamThrough(ctx, t, client, http.MethodGet, path+"/events", "")
	second.has("run.started")
	second.has("model.requested") // the model takes an hour
	r, err := client.Post("http://nginx"+path+"/cancel", "application/json", strings.NewReader("{}"))
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("cancel: %v, %v", r, err)
	}
	defer r.Body.Close()
	first.has("run.completed")
	second.has("run.completed")
}

// behindNginx starts an nginx that passes everything on, and returns a client of it.
func behindNginx(ctx context.Context, t *testing.T, nginx, target string) *http.Client {
	t.Helper()
	dir := t.TempDir()
	socket := filepath.Join(dir, "socket")
	conf := fmt.Sprintf(`
daemon off;
master_process off;
pid nginx.pid;
error_log stderr;
events {}
http {
	access_log off;
	client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
	server { listen unix:%s; location / { proxy_pass %s; } }
}
`, socket, target)
	if err := os.WriteFile(filepath.Join(dir, "nginx.conf"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(ctx, nginx, "-p", dir, "-c", "nginx.conf", "-e", "stderr")
	var said strings.Builder
	c.Stdout, c.Stderr = &said, &said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		if t.Failed() {
			t.Logf("nginx: %s", said.String())
		}
	})
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		for { // until nginx listens
			conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
			if err == nil || ctx.Err() != nil {
				return conn, err
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	return &http.Client{Transport: &http.Transport{DialContext: dial}}
}

// passed is a stream of events that comes through a proxy.
type passed struct {
	*http.Response
	t     *testing.T
	lines *bufio.Reader
}

func streamThrough(ctx context.Context, t *testing.T, client *http.Client, method, path, body string) passed {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, "http://nginx"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	w, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Body.Close() })
	if w.StatusCode >= 300 {
		text, _ := io.ReadAll(w.Body)
		t.Fatalf("%s %s: %s %s", method, path, w.Status, text)
	}
	return passed{w, t, bufio.NewReader(w.Body)}
}

// has reads on to an event of a type.
func (p passed) has(event string) {
	p.t.Helper()
	for {
		line, err := p.lines.ReadString('\n')
		if err != nil {
			p.t.Fatalf("the stream has no %s: %v", event, err)
		}
		if strings.TrimSpace(line) == "event: "+event {
			return
		}
	}
}
