package cli

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

// A wait that is too long is asked for one model, so another one of the same
// provider answers.
func TestALongWaitOnOneModelLeavesTheOthersOfItsProvider(t *testing.T) {
	for provider, models := range map[string][2]string{
		"openai": {"gpt-4o", "gpt-4o-mini"}, "openai-chat": {"gpt-4o", "gpt-4o-mini"},
		"anthropic": {"claude-sonnet-4-5", "claude-haiku-4-5"}, "google": {"gemini-2.5-pro", "gemini-2.5-flash"},
	} {
		t.Run(provider, func(t *testing.T) {
			upstream := newProvider(t, reply{refused: http.StatusTooManyRequests, header: map[string]string{"Retry-After": "7200"}}, reply{text: "seen"})
			p := newProject(t, map[string]string{
				"config.yaml": upstream.config(),
				"agent.yaml":  fmt.Sprintf("identity: {name: far}\ntools: {allow: []}\nmodel_policy: {primary: %s/%s, fallbacks: [%s/%s]}\n", provider, models[0], provider, models[1]),
			})
			f := p.startWith([]string{testKey}, "run", "agent.yaml", "look", "--config", "config.yaml", "--no-budget").wait()
			if f.code != 0 || f.out != "seen\n" || len(upstream.asked()) != 2 {
				t.Errorf("exit code %d, stdout %q, asked %d times: %s", f.code, f.out, len(upstream.asked()), f.err)
			}
		})
	}
}

// Base URLs are taken as the providers' own SDKs take them.
func TestAddressesAndKeysComeFromTheCustomaryVariables(t *testing.T) {
	for _, tt := range []struct {
		model, path, keyHeader, key string
		env                         []string
	}{
		{"anthropic/claude-sonnet-4-5", "/v1/messages", "X-Api-Key", "k", []string{"ANTHROPIC_BASE_URL=URL", "ANTHROPIC_API_KEY=k"}},
		{"anthropic/claude-sonnet-4-5", "/v1/messages", "Authorization", "Bearer t", []string{"ANTHROPIC_BASE_URL=URL/", "ANTHROPIC_AUTH_TOKEN=t\n"}},
		{"openai/gpt-4o", "/v1/responses", "Authorization", "Bearer k", []string{"OPENAI_BASE_URL=URL/v1", "OPENAI_API_KEY=k"}},
		{"openai-chat/gpt-4o", "/v1/chat/completions", "Authorization", "Bearer k", []string{"OPENAI_BASE_URL=URL/v1/", "OPENAI_API_KEY=k"}},
		{"openai-chat/any", "/v1/chat/completions", "Authorization", "", []string{"OPENAI_BASE_URL=URL/v1"}},
		{"google/gemini-2.5-pro", "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse", "X-Goog-Api-Key", "k", []string{"GOOGLE_GEMINI_BASE_URL=URL", "GEMINI_API_KEY=k"}},
		{"google/gemini-2.5-pro", "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse", "X-Goog-Api-Key", "g", []string{"GOOGLE_GEMINI_BASE_URL=URL", "GOOGLE_API_KEY=g"}},
		{"ollama/qwen3", "/v1/chat/completions", "Authorization", "", []string{"OLLAMA_HOST=HOST"}},
	} {
		t.Run(strings.ReplaceAll(tt.model, "/", " ")+" "+tt.env[len(tt.env)-1], func(t *testing.T) {
			upstream := newProvider(t, reply{text: "seen"})
			p := newProject(t, map[string]string{"agent.yaml": "identity: {name: far}\ntools: {allow: []}\n"})
			env := []string{"ANTHROPIC_API_KEY=", "ANTHROPIC_AUTH_TOKEN=", "OPENAI_API_KEY=", "GEMINI_API_KEY=", "GOOGLE_API_KEY=", "OLLAMA_API_KEY=", "PAWL_CONFIG="}
			for _, e := range tt.env {
				env = append(env, strings.NewReplacer("URL=URL", "URL="+upstream.url, "HOST=HOST", "HOST="+strings.TrimPrefix(upstream.url, "http://")).Replace(e))
			}
			if f := p.startWith(env, "run", "agent.yaml", "look", "--model", tt.model, "--no-budget").wait(); f.code != 0 || f.out != "seen\n" {
				t.Fatalf("exit code %d, stdout %q: %s", f.code, f.out, f.err)
			}
			if r := upstream.asked()[0]; r.path != tt.path || r.header.Get(tt.keyHeader) != tt.key {
				t.Errorf("asked %s with the key %q", r.path, r.header.Get(tt.keyHeader))
			}
		})
	}
}

// What a provider runs on its own side is asked for by its name there, shown,
// and goes back as it came.
func TestToolsThatAProviderRunsItselfPassThrough(t *testing.T) {
	for _, tt := range []struct {
		model, tool, offered, raw, back, shown string
	}{
		{
			"anthropic/claude-sonnet-4-5", "web_search", `"type":"web_search_`, `{"type":"message","role":"assistant","content":[` +
				`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"otters"}},` +
				`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://o.example","title":"Otters","encrypted_content":"sealed=="}]},` +
				`{"type":"text","text":"Otters swim."}],"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":3}}`,
			`"encrypted_content":"sealed=="`, `⇢ web_search {"query":"otters"} (run by the provider)`,
		},
		{
			"openai/gpt-5", "web_search", `{"type":"web_search"`, `{"id":"r1","object":"response","status":"completed","output":[` +
				`{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"otters"}},` +
				`{"type":"message","id":"m1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Otters swim.","annotations":[]}]}],"usage":{"input_tokens":9,"output_tokens":3}}`,
			`"id":"ws_1"`, `⇢ web_search {"type":"search","query":"otters"} (run by the provider)`,
		},
		{
			"google/gemini-2.5-pro", `'{"codeExecution": {}}'`, `{"codeExecution":{}}`, `{"candidates":[{"content":{"role":"model","parts":[` +
				`{"executableCode":{"language":"PYTHON","code":"print(6*7)"}},{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"42"}},` +
				`{"text":"Otters swim."}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":3}}`,
			`"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"42"}`, `⇢ executableCode {"language":"PYTHON","code":"print(6*7)"} (run by the provider)`,
		},
		{
			// These services have no place for what they ran in what goes back to them.
			"openrouter/m", "web_search", `{"type":"openrouter:web_search"}`, `{"id":"c1","choices":[{"index":0,"message":{"role":"assistant","content":"Otters swim.",` +
				`"annotations":[{"type":"url_citation","url_citation":{"url":"https://o.example","title":"Otters"}}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":3}}`,
			`{"role":"assistant","content":"Otters swim."}`, `⇢ cites https://o.example`,
		},
	} {
		t.Run(strings.ReplaceAll(tt.model, "/", " "), func(t *testing.T) {
			upstream := newProvider(t, reply{raw: tt.raw}, reply{text: "They do."})
			p := newProject(t, map[string]string{"config.yaml": upstream.config(), "agent.yaml": "identity: {name: far}\ntools: {allow: [], provider: [" + tt.tool + "]}\n"})
			f := p.calls(testKey, "run", "agent.yaml", "Do otters swim?", "--model", tt.model, "--config", "config.yaml", "--no-budget")
			if f.code != 0 || f.out != "Otters swim.\n" || !strings.Contains(f.err, tt.shown) {
				t.Fatalf("exit code %d, stdout %q: %s", f.code, f.out, f.err)
			}
			if !strings.Contains(upstream.last(), tt.offered) {
				t.Errorf("%s is not asked for: %s", tt.tool, upstream.last())
			}
			f = p.calls(testKey, "run", "--continue", p.newest(), "Really?", "--config", "config.yaml")
			if f.code != 0 || !strings.Contains(upstream.last(), tt.back) {
				t.Errorf("exit code %d: %s\nwhat the provider ran does not go back: %s", f.code, f.err, upstream.last())
			}
		})
	}
}

// If no provider runs the tool, the owner learns it before anything is charged.
func TestUnsupportedProviderToolIsReported(t *testing.T) {
	upstream := newProvider(t, reply{text: "seen"})
	p := newProject(t, map[string]string{"config.yaml": upstream.config(), "agent.yaml": "identity: {name: far}\ntools: {allow: [], provider: [teleport]}\n"})
	f := p.calls(testKey, "run", "agent.yaml", "hi", "--model", "ollama/qwen3", "--config", "config.yaml")
	if !strings.Contains(f.err, "warning: agent.yaml:2:31: tools.provider[0]: ollama/qwen3 runs no tools of its own, so teleport has no effect there") || strings.Contains(upstream.last(), "teleport") {
		t.Errorf("exit code %d: %s", f.code, f.err)
	}
	f = p.calls(testKey, "run", "agent.yaml", "hi", "--model", "anthropic/claude-sonnet-4-5", "--config", "config.yaml")
	const unknown = `tools.provider[0]: anthropic/claude-sonnet-4-5: there is no provider tool "teleport"; known are`
	if f.clean(t, "agent.yaml:2:31: "+unknown); f.code != exitUsage || len(upstream.asked()) != 1 {
		t.Errorf("exit code %d after %d requests", f.code, len(upstream.asked()))
	}

	// A run that continues with another model reports it too.
	id := p.newest()
	for _, args := range [][]string{{"run", "--continue", id, "again"}, {"runs", "fork", id, "--seq", "3"}} {
		args = append(args, "--config", "config.yaml", "--model")
		f = p.calls(testKey, append(args, "anthropic/claude-sonnet-4-5")...)
		if f.clean(t, unknown); f.code != exitUsage || p.newest() != id || len(upstream.asked()) != 1 {
			t.Errorf("%q: exit code %d after %d requests, the newest run is %s", args, f.code, len(upstream.asked()), p.newest())
		}
	}
	for _, args := range [][]string{{"run", "--continue", id, "again"}, {"runs", "fork", id, "--seq", "3"}} {
		f = p.calls(testKey, append(args, "--config", "config.yaml", "--model", "ollama/llama4")...)
		if f.clean(t, "warning: tools.provider[0]: ollama/llama4 runs no tools of its own, so teleport has no effect there"); f.code != 0 {
			t.Errorf("%q: exit code %d", args, f.code)
		}
	}
}
