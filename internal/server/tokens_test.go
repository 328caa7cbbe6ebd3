package server_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/host/tokens"
	"github.com/pawlrun/pawl/internal/machine/versions"
	"github.com/pawlrun/pawl/internal/rules/access"
	"github.com/pawlrun/pawl/internal/server"
	"github.com/pawlrun/pawl/journal/memory"
)

// gated is a server that needs tokens.
type gated struct {
	local
	// file is that of the tokens, given are they by their names.
	file  string
	given map[string]string
}

// inGate plays with a server that needs tokens, of which there is one for each role.
func inGate(t *testing.T, files map[string]string, play func(g gated), change ...func(*server.Options)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		for name, content := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		g := gated{file: filepath.Join(t.TempDir(), "tokens.yaml"), given: map[string]string{}}
		for _, role := range access.Roles() {
			token, err := tokens.Create(g.file, tokens.Entry{Name: "the-" + string(role), Role: role})
			if err != nil {
				t.Fatal(err)
			}
			g.given[string(role)] = token
		}
		store := memory.New(nil)
		e := engine.New(store, versions.Make, engine.Options{})
		o := server.Options{
			Store: store, Engine: e, Controller: control.New(store, e), Agents: dir, Tokens: g.file,
			Launch: launch.Options{Flags: launch.Flags{Workspace: dir}}, User: "somebody", Hosts: []string{"pawl.example"},
		}
		for _, c := range change {
			c(&o)
		}
		s, err := server.New(o)
		if err != nil {
			t.Fatal(err)
		}
		g.local = local{s, t}
		play(g)
		if err := errors.Join(s.Close(), e.Close()); err != nil {
			t.Error(err)
		}
	})
}

// as makes a request with a token.
func (g gated) as(token, method, path, body string, how ...func(*http.Request)) *httptest.ResponseRecorder {
	g.t.Helper()
	r := requestFromHere(g.t.Context(), method, path, body)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for _, h := range how {
		h(r)
	}
	w := httptest.NewRecorder()
	conforming(g.t, g.Server).ServeHTTP(w, r)
	return w
}

// rows: RON-55, RON-57
//
// Each operation of the document is asked by each role: whom it is not for is
// refused, and has changed nothing.
func TestEachRoleMayDoWhatTheDocumentSays(t *testing.T) {
	c, err := ofDocument()
	if err != nil {
		t.Fatal(err)
	}
	inGate(t, writing, func(g gated) {
		asked := 0
		for path, methods := range c.paths {
			time.Sleep(time.Second) // keeps each client below the limit of requests
			for method, o := range methods {
				time.Sleep(5 * time.Second) // of the bubble, after which an address may ask again
				url := strings.ReplaceAll(path, "{id}", "none")
				for role, want := range map[string]int{"": http.StatusUnauthorized, "viewer": http.StatusForbidden, "editor": http.StatusForbidden, "admin": 0} {
					w := g.as(g.given[role], strings.ToUpper(method), url, "")
					refused := w.Code == http.StatusUnauthorized || w.Code == http.StatusForbidden
					may := access.Role(role).Includes(access.Role(o.Role))
					if asked++; may == refused || refused && w.Code != want {
						t.Errorf("%s %s, which is for %s, as %q: %d %s", method, path, o.Role, role, w.Code, w.Body)
					}
				}
			}
		}
		if asked < 60 {
			t.Errorf("only %d requests were made", asked)
		}
		w := g.as("", http.MethodGet, "/v1/runs", "")
		if w.Header().Get("WWW-Authenticate") != "Bearer" || !strings.Contains(w.Body.String(), "no-token") {
			t.Errorf("%v %s", w.Header(), w.Body)
		}
		if w := g.as(g.given["viewer"], http.MethodPost, "/v1/runs", `{"agent": "writes", "input": "go"}`); !strings.Contains(w.Body.String(), "Your role does not permit running or modifying workflows") {
			t.Errorf("a viewer is told %s", w.Body)
		}
		for role, want := range map[string]int{"editor": http.StatusForbidden, "admin": http.StatusBadRequest} {
			if w := g.as(g.given[role], http.MethodPost, "/v1/runs", `{"spec": "identity: {name: x}\nmodel_policy: {primary: scripted/writes.script.yaml}\n"}`); w.Code != want {
				t.Errorf("a file that the %s brings: %d %s", role, w.Code, w.Body)
			}
		}
		if page := g.as(g.given["viewer"], http.MethodGet, "/v1/runs", ""); !strings.Contains(page.Body.String(), `"items":[]`) {
			t.Errorf("there are runs: %s", page.Body)
		}
	})
}

func TestADecisionSaysWhoMadeItInWhichRole(t *testing.T) {
	inGate(t, writing, func(g gated) {
		if w := g.as(g.given["editor"], http.MethodPost, "/v1/runs", `{"agent": "writes", "input": "go"}`); w.Code != http.StatusCreated {
			t.Fatal(w.Body)
		}
		synctest.Wait()
		page := g.as(g.given["viewer"], http.MethodGet, "/v1/approvals", "").Body.String()
		_, id, _ := strings.Cut(page, `"run":"`)
		id, _, _ = strings.Cut(id, `"`)
		if w := g.as(g.given["admin"], http.MethodPost, "/v1/runs/"+id+"/approve", `{"callId": "`+id+`-1-1"}`); w.Code != http.StatusOK {
			t.Fatal(w.Body)
		}
		synctest.Wait()
		events := g.as(g.given["viewer"], http.MethodGet, "/v1/runs/"+id+"/events?limit=500", "").Body.String()
		for _, want := range []string{
			`"approver":"http:the-admin"`, `"principal":{"name":"the-admin","role":"admin","proof":"token"}`, `"principal":{"name":"the-editor","role":"editor","proof":"token"}`,
		} {
			if !strings.Contains(events, want) {
				t.Errorf("the journal does not say %s:\n%s", want, events)
			}
		}
	})
}

func TestARevokedTokenEndsTheStreamThatIsOpenWithIt(t *testing.T) {
	files := map[string]string{"agent.yaml": answering, "script.yaml": "- text: the end\n  delay: 1h\n"}
	inGate(t, files, func(g gated) {
		w := g.as(g.given["editor"], http.MethodPost, "/v1/runs", `{"agent": "answers", "input": "go"}`)
		path := w.Header().Get("Location") + "/events"
		open := map[string]chan struct{}{}
		for _, role := range []string{"viewer", "editor"} {
			ended := make(chan struct{})
			open[role] = ended
			go func() {
				defer close(ended)
				g.as(g.given[role], http.MethodGet, path, "", func(r *http.Request) { r.Header.Set("Accept", "text/event-stream") })
			}()
		}
		time.Sleep(time.Minute)
		if err := tokens.Revoke(g.file, "the-viewer"); err != nil {
			t.Fatal(err)
		}
		if w := g.as(g.given["viewer"], http.MethodGet, "/v1/runs", ""); w.Code != http.StatusUnauthorized {
			t.Errorf("at once: %d", w.Code)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		select {
		case <-open["viewer"]:
		default:
			t.Error("two seconds later the stream is open")
		}
		select {
		case <-open["editor"]:
			t.Error("another's stream has ended, too")
		default:
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		<-open["editor"]
	})
}

func TestUnreadableTokenFileAdmitsNoClient(t *testing.T) {
	inGate(t, nil, func(g gated) {
		before, err := os.ReadFile(g.file)
		if err != nil {
			t.Fatal(err)
		}
		for _, content := range []string{"ann: admin", ""} {
			if err := os.WriteFile(g.file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if w := g.as(g.given["admin"], http.MethodGet, "/v1/runs", ""); w.Code != http.StatusUnauthorized {
				t.Errorf("%q: %d", content, w.Code)
			}
		}
		if err := os.WriteFile(g.file, before, 0o600); err != nil {
			t.Fatal(err)
		}
		if w := g.as(g.given["admin"], http.MethodGet, "/v1/runs", ""); w.Code != http.StatusOK {
			t.Errorf("repaired: %d", w.Code)
		}
	})
}

func TestRequestsAreLimitedByWhoMakesThem(t *testing.T) {
	inGate(t, nil, func(g gated) {
		guess := func(n int) (answers map[int]int, after string) {
			answers = map[int]int{}
			for range n {
				w := g.as("pawl_guess", http.MethodGet, "/v1/runs", "")
				if answers[w.Code]++; w.Code == http.StatusTooManyRequests {
					after = w.Header().Get("Retry-After")
				}
			}
			return answers, after
		}
		answers, after := guess(60)
		if diff := cmp.Diff(map[int]int{401: 50, 429: 10}, answers); diff != "" {
			t.Errorf("guesses (-want +got):\n%s", diff)
		}
		if w := g.as(g.given["viewer"], http.MethodGet, "/v1/runs", ""); w.Code != http.StatusOK {
			t.Errorf("another waits for them: %d", w.Code)
		}
		seconds, err := strconv.Atoi(after)
		if err != nil || seconds < 1 {
			t.Fatalf("Retry-After: %q", after)
		}
		time.Sleep(time.Duration(seconds) * time.Second)
		if answers, _ := guess(1); answers[401] != 1 {
			t.Errorf("after %d s: %v", seconds, answers)
		}
	})
}

func TestBeyondThisMachineNothingIsServedWithoutAToken(t *testing.T) {
	from := func(remote, host string) func(*http.Request) {
		return func(r *http.Request) { r.RemoteAddr, r.Host = remote, host }
	}
	inGate(t, nil, func(g gated) {
		for _, c := range []struct {
			token, host string
			want        int
		}{
			{g.given["viewer"], "pawl.example", 200},
			{g.given["viewer"], "pawl.example:3001", 200},
			{g.given["viewer"], "evil.example", 403},
			{"", "pawl.example", 401},
		} {
			if w := g.as(c.token, http.MethodGet, "/v1/runs", "", from("192.0.2.1:4000", c.host)); w.Code != c.want {
				t.Errorf("%+v: %d %s", c, w.Code, w.Body)
			}
		}
		for _, header := range []string{"Bearer", "bearer", "Basic " + g.given["admin"], g.given["admin"]} {
			w := g.as("", http.MethodGet, "/v1/runs", "", func(r *http.Request) { r.Header.Set("Authorization", header) })
			if w.Code != http.StatusUnauthorized {
				t.Errorf("%s: %d", header, w.Code)
			}
		}
	})
	for _, tokened := range []bool{true, false} {
		l, err := server.Listen(t.Context(), "0.0.0.0:0", tokened)
		if (err == nil) != tokened || err != nil && !errors.Is(err, server.ErrNotLoopback) {
			t.Errorf("tokens %t: %v", tokened, err)
		}
		if err == nil {
			_ = l.Close()
		}
	}
}

// What an address sends is counted before anything of it is judged, and one that tries
// tokens leaves enough for the others there.
func TestAnAddressIsLimitedBeforeItsRequestsAreJudged(t *testing.T) {
	inGate(t, nil, func(g gated) {
		handler := conforming(g.t, g.Server)
		ask := func(token, host, from string) int {
			r := requestFromHere(g.t.Context(), http.MethodGet, "/v1/principal", "")
			r.Host, r.RemoteAddr = host, from
			r.Header.Set("Authorization", "Bearer "+token)
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			return w.Code
		}
		const host, foreign, here, elsewhere = "127.0.0.1:3001", "evil.example", "127.0.0.1:4000", "192.0.2.1:4000"
		const all = 20_000
		for n := range all {
			want := http.StatusUnauthorized
			if n >= 50 {
				want = http.StatusTooManyRequests
			}
			if n == all-1 {
				if got := ask(g.given["viewer"], host, here); got != http.StatusOK {
					t.Errorf("after %d guesses a good token gets %d", n, got)
				}
			} else if got := ask("guess", host, here); got != want {
				t.Fatalf("guess %d gets %d, want %d", n, got, want)
			}
		}
		for what, got := range map[string]int{
			"a guess": ask("guess", host, here), "a good token": ask(g.given["viewer"], host, here), "a foreign name": ask(g.given["viewer"], foreign, here),
		} {
			if got != http.StatusTooManyRequests {
				t.Errorf("beyond what an address may send, %s gets %d", what, got)
			}
		}
		if got := ask(g.given["viewer"], host, elsewhere); got != http.StatusOK {
			t.Errorf("another address gets %d", got)
		}
		time.Sleep(time.Second)
		if got := ask(g.given["viewer"], host, here); got != http.StatusOK {
			t.Errorf("a second later a good token gets %d", got)
		}
	})
}
