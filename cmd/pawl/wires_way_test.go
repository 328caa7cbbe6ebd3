package main

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlrun/pawl/journal"
)

// proxy is an HTTP proxy that remembers what it was asked for.
type proxy struct {
	url string

	mu    sync.Mutex
	asked []string
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	p := &proxy{}
	s := httptest.NewServer(p)
	t.Cleanup(s.Close)
	p.url = s.URL
	return p
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asked = append(p.asked, r.Method+" "+r.Host+" "+r.Header.Get("Proxy-Authorization"))
	p.mu.Unlock()
	if r.Method == http.MethodConnect {
		tunnel(w, r.Host)
		return
	}
	if !r.URL.IsAbs() {
		http.Error(w, "not asked as a proxy", http.StatusBadRequest)
		return
	}
	r.RequestURI = ""
	r.Header.Del("Proxy-Authorization")
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer answer.Body.Close()
	w.Header().Set("Content-Type", answer.Header.Get("Content-Type"))
	_, _ = io.Copy(w, answer.Body)
}

// tunnel joins a client's connection to a host.
func tunnel(w http.ResponseWriter, host string) {
	there, err := net.Dial("tcp", host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer there.Close()
	here, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer here.Close()
	_, _ = io.WriteString(here, "HTTP/1.1 200 Connection established\r\n\r\n")
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(there, here)
		_ = there.Close()
	}()
	_, _ = io.Copy(here, there)
	_ = here.Close()
	<-done
}

func (p *proxy) requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

func TestEveryProviderIsReachedThroughTheProxyOfTheConfigFile(t *testing.T) {
	for _, form := range wireForms {
		for scheme, method := range map[string]string{"http": "POST", "https": "CONNECT"} {
			t.Run(strings.ReplaceAll(form.model, "/", " ")+" "+scheme, func(t *testing.T) {
				upstream, way := newProvider(t, reply{text: "seen"}), newProxy(t)
				files := map[string]string{"agent.yaml": "identity: {name: far}\ntools: {allow: []}\n", "certificate.pem": ""}
				if scheme == "https" {
					s := httptest.NewTLSServer(upstream)
					t.Cleanup(s.Close)
					upstream.url = s.URL
					files["certificate.pem"] = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
				}
				address := strings.Replace(way.url, "http://", "http://team:${PAWL_TEST_PASSWORD}@", 1)
				files["config.yaml"] = strings.ReplaceAll(upstream.config(), "PAWL_TEST_KEY}", fmt.Sprintf("PAWL_TEST_KEY, proxy: %q}", address))
				p := newProject(t, files)
				f := p.startWith([]string{testKey, "PAWL_TEST_PASSWORD=open/sesame@50%", "SSL_CERT_FILE=certificate.pem"},
					"run", "agent.yaml", "look", "--model", form.model, "--config", "config.yaml", "--no-budget").wait()
				if f.code != 0 || f.out != "seen\n" {
					t.Fatalf("exit code %d, stdout %q: %s", f.code, f.out, f.err)
				}
				_, host, _ := strings.Cut(upstream.url, "://")
				want := method + " " + host + " Basic " + base64.StdEncoding.EncodeToString([]byte("team:open/sesame@50%"))
				if got := way.requests(); len(got) != 1 || got[0] != want {
					t.Errorf("the proxy was asked %q, want %q", got, want)
				}
				if strings.Contains(p.exits(0, "runs", "events", p.newest(), "--json").out, "sesame") {
					t.Error("the journal has the proxy's password")
				}
			})
		}
	}
}

// What one run hears of a provider's limits holds for all runs of the process.
func TestTheLimitsOfAProviderHoldForEveryRunOfAProcess(t *testing.T) {
	spent := func(names map[string]string) reply { return reply{text: "seen", header: names} }
	for _, tt := range []struct {
		model string
		first reply
		held  time.Duration
	}{
		{"openai/gpt-4o", spent(map[string]string{"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "800ms"}), 800 * time.Millisecond},
		{"openai-chat/gpt-4o", spent(map[string]string{"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "0.8s"}), 800 * time.Millisecond},
		{"anthropic/claude-sonnet-4-5", spent(map[string]string{
			"anthropic-ratelimit-requests-remaining": "0", "anthropic-ratelimit-requests-reset": "2026-01-01T00:00:01Z", "Date": "Thu, 01 Jan 2026 00:00:00 GMT",
		}), time.Second},
		{"google/gemini-2.5-pro", reply{refused: http.StatusTooManyRequests, header: map[string]string{"Retry-After": "1"}}, time.Second},
	} {
		t.Run(strings.ReplaceAll(tt.model, "/", " "), func(t *testing.T) {
			upstream := newProvider(t, tt.first, reply{text: "seen"})
			p := newProject(t, map[string]string{"config.yaml": upstream.config(), "agent.yaml": "identity: {name: far}\ntools: {allow: []}\nmodel_policy: {primary: " + tt.model + "}\nbudgets: {max_tool_calls: 9}\n"})
			s := p.serve(testKey, "PAWL_CONFIG=config.yaml")
			begin := func() string {
				return asks[journal.Run](s, http.StatusCreated, http.MethodPost, "/v1/runs", `{"agent": "far", "input": "look"}`).ID
			}
			first := begin()
			p.eventually("the provider was asked", func() bool { return len(upstream.asked()) > 0 })
			second := begin()
			for _, id := range []string{first, second} {
				p.eventually("the run has ended", func() bool {
					return asks[journal.Run](s, http.StatusOK, http.MethodGet, "/v1/runs/"+id, "").State == journal.Ended
				})
			}
			s.stop()
			for _, r := range upstream.asked()[1:] {
				if waited := r.at.Sub(upstream.asked()[0].at); waited < tt.held {
					t.Errorf("asked again after %s, want at least %s", waited, tt.held)
				}
			}
		})
	}
}
