package server_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// The page holds no data, so it is for anybody; all that it shows needs a token.
func TestThePageIsForAnybodyAndWhatItShowsIsNot(t *testing.T) {
	inGate(t, nil, func(g gated) {
		page := g.as("", http.MethodGet, "/", "")
		if page.Code != http.StatusOK || !strings.HasPrefix(page.Header().Get("Content-Type"), "text/html") || page.Header().Get("Content-Security-Policy") == "" {
			t.Fatalf("status %d, %v", page.Code, page.Header())
		}
		links := regexp.MustCompile(`"(/assets/[^"]+)"`).FindAllStringSubmatch(page.Body.String(), -1)
		for _, link := range links {
			if got := g.as("", http.MethodGet, link[1], ""); got.Code != http.StatusOK || got.Body.Len() == 0 {
				t.Errorf("%s: status %d", link[1], got.Code)
			}
		}
		if len(links) == 0 {
			t.Error("the page names no file")
		}
		for _, path := range []string{"/v1/principal", "/v1/runs"} {
			if got := g.as("", http.MethodGet, path, ""); got.Code != http.StatusUnauthorized {
				t.Errorf("%s: status %d", path, got.Code)
			}
		}
		who := g.as(g.given["viewer"], http.MethodGet, "/v1/principal", "")
		if !strings.Contains(who.Body.String(), `"name":"the-viewer","role":"viewer"`) {
			t.Errorf("%s", who.Body)
		}
		foreign := g.as("", http.MethodGet, "/", "", func(r *http.Request) { r.Host = "evil.example" })
		if foreign.Code != http.StatusForbidden {
			t.Errorf("by another name: status %d", foreign.Code)
		}
	})
}

// The page takes no path from the API: what is not there stays a problem.
func TestThePageSwallowsNoPath(t *testing.T) {
	s, _ := newServer(t, nil)
	l := local{s, t}
	for _, path := range []string{"/nothing", "/v1", "/v1/nothing", "/v1/runs/nothing", "/assets/", "/assets/nothing.js", "/index.html"} {
		l.refuses(http.StatusNotFound, "not-found", http.MethodGet, path, "")
	}
	l.refuses(http.StatusMethodNotAllowed, "method-not-allowed", http.MethodPost, "/", "{}")
}

func TestAServerSaysWhoAsks(t *testing.T) {
	s, _ := newServer(t, nil)
	got := gets[struct{ Name, Role, Proof string }](local{s, t}, http.StatusOK, http.MethodGet, "/v1/principal", "")
	if got.Name != "somebody" || got.Role != "admin" || got.Proof != "none" {
		t.Errorf("%+v", got)
	}
}
