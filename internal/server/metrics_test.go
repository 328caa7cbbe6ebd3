package server_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestRequestsAreCountedByTheirOperation(t *testing.T) {
	s, _ := newServer(t, nil)
	l := local{s, t}
	l.refuses(http.StatusNotFound, "not-found", http.MethodGet, "/v1/runs/nothing", "")
	w := httptest.NewRecorder()
	l.serve(w, http.MethodGet, "/metrics", "")
	if kind := w.Header().Get("Content-Type"); w.Code != http.StatusOK || !strings.HasPrefix(kind, "text/plain; version=0.0.4") {
		t.Errorf("status %d, %s", w.Code, kind)
	}
	if want := `pawl_http_requests_total{method="GET",path="/v1/runs/{id}",code="404"} 1` + "\n"; !strings.Contains(w.Body.String(), want) {
		t.Errorf("no %s in\n%s", want, w.Body)
	}
}
