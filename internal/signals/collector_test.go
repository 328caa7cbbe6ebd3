package signals_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/pawlrun/pawl/internal/signals"
)

// heard contains the requests that a collector received.
type heard struct {
	mu     sync.Mutex
	bodies []string
	last   *http.Request
}

// collecting starts a collector that answers the first requests with these statuses and
// further ones with 200.
func collecting(t *testing.T, statuses ...int) (*heard, string) {
	h := &heard{}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.last = r
		if len(statuses) > 0 {
			w.WriteHeader(statuses[0])
			statuses = statuses[1:]
			return
		}
		h.bodies = append(h.bodies, string(body))
	}))
	t.Cleanup(web.Close)
	return h, web.URL
}

func TestSpansAreSentToACollector(t *testing.T) {
	h, url := collecting(t, http.StatusServiceUnavailable)
	vars := map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": url + "/", "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Basic%20abc,x-team=a",
		"OTEL_SERVICE_NAME": "mine", "OTEL_METRICS_EXPORTER": "none", "OTEL_RESOURCE_ATTRIBUTES": "service.name=other,deployment.environment.name=test",
	}
	play(t, signals.FromEnvironment(func(n string) string { return vars[n] }), false)
	all := strings.Join(h.bodies, "\n")
	if spans := spansIn(t, all); len(spans) != 3 {
		t.Errorf("the collector got %s", all)
	}
	if !strings.Contains(all, `"mine"`) || strings.Contains(all, `"other"`) || !strings.Contains(all, "deployment.environment.name") {
		t.Errorf("the resource is another: %s", all)
	}
	r := h.last
	if r.URL.Path != "/v1/traces" || r.Header.Get("Authorization") != "Basic abc" || r.Header.Get("X-Team") != "a" || r.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%s with %v", r.URL.Path, r.Header)
	}
}

func TestRefusingCollectorIsReportedAtTheEnd(t *testing.T) {
	_, url := collecting(t, http.StatusUnauthorized)
	x, err := signals.Open(signals.Options{Traces: signals.Target{Endpoint: url}, Metrics: signals.Target{Off: true}})
	if err != nil {
		t.Fatal(err)
	}
	tell(x)
	if err := x.Close(); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("closing says %v", err)
	}
	for _, to := range []signals.Target{{Endpoint: "localhost:4318"}, {Endpoint: url, Protocol: "grpc"}} {
		for _, o := range []signals.Options{{Traces: to}, {Metrics: to}} {
			if _, err := signals.Open(o); err == nil {
				t.Errorf("%+v is taken", o)
			}
		}
	}
}
