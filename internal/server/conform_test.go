package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/machine/versions"
	"github.com/pawlrun/pawl/internal/server"
	"github.com/pawlrun/pawl/journal/memory"
)

// conform are the schemas of a server's own document, by which every answer in
// these tests is checked.
type conform struct {
	// paths are the operations of the document.
	paths map[string]map[string]struct {
		Role      string `json:"x-pawl-role"`
		Responses map[string]struct {
			Content  map[string]any
			Problems []string `json:"x-pawl-problems"`
		}
	}
	mux     *http.ServeMux
	mu      sync.Mutex
	schemas *jsonschema.Compiler
}

// root is the path / for a router, to which that would be all paths.
const root = "/{$}"

const documentURL = "http://pawl.test/openapi.json"

// measured is a server's handler without the checks of its answers, which would be
// measured too.
func measured(s *server.Server) http.Handler { return s.Handler() }

// conforming is a server's handler whose answers are checked. Tests get no other.
func conforming(t testing.TB, s *server.Server) http.Handler {
	t.Helper()
	c, err := ofDocument()
	if err != nil {
		t.Fatal(err)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen := &witness{ResponseWriter: w, status: http.StatusOK}
		s.Handler().ServeHTTP(seen, r)
		for _, wrong := range c.check(r, seen) {
			t.Errorf("%s %s: %s", r.Method, r.URL, wrong)
		}
	})
}

// ofDocument reads the document, which is that of every server.
var ofDocument = sync.OnceValues(func() (*conform, error) {
	store := memory.New(nil)
	e := engine.New(store, versions.Make, engine.Options{})
	s, err := server.New(server.Options{Store: store, Engine: e, Controller: control.New(store, e), User: "somebody", NoAuth: true})
	if err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, requestFromHere(context.Background(), http.MethodGet, "/openapi.json", ""))
	if w.Code != http.StatusOK {
		return nil, fmt.Errorf("there is no document: %s", w.Body)
	}
	c := &conform{mux: http.NewServeMux(), schemas: jsonschema.NewCompiler()}
	text, err := jsonschema.UnmarshalJSON(bytes.NewReader(w.Body.Bytes()))
	if err != nil {
		return nil, err
	}
	if err := c.schemas.AddResource(documentURL, text); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(w.Body.Bytes(), &struct{ Paths any }{&c.paths}); err != nil {
		return nil, err
	}
	for path := range c.paths {
		if path == "/" {
			path = root
		}
		c.mux.Handle(path, http.NotFoundHandler())
	}
	return c, errors.Join(s.Close(), e.Close())
})

// check says where an answer is not what the document says.
func (c *conform) check(r *http.Request, seen *witness) (wrong []string) {
	_, path := c.mux.Handler(&http.Request{Method: r.Method, URL: r.URL, Host: r.Host})
	if path == root {
		path = "/"
	}
	o, known := c.paths[path][strings.ToLower(r.Method)]
	if !known || seen.cut {
		return nil
	}
	body := seen.body.Bytes()
	media, _, _ := strings.Cut(seen.Header().Get("Content-Type"), ";")
	answer, has := o.Responses[strconv.Itoa(seen.status)]
	switch {
	case !has:
		return []string{fmt.Sprintf("the document has no status %d: %s", seen.status, body)}
	case len(body) == 0 && len(answer.Content) == 0:
		return nil
	case answer.Content[media] == nil:
		return []string{fmt.Sprintf("the document has no %q of status %d: %s", media, seen.status, body)}
	}
	if !strings.HasSuffix(media, "json") && media != "text/event-stream" {
		return nil
	}
	at := fmt.Sprintf("%s#/paths/%s/%s/responses/%d/content/%s/schema", documentURL,
		escaped(path), strings.ToLower(r.Method), seen.status, escaped(media))
	if media == "text/event-stream" {
		for line := range strings.Lines(string(body)) {
			if data, is := strings.CutPrefix(line, "data: "); is {
				wrong = append(wrong, c.validate(at, data)...)
			}
		}
		return wrong
	}
	wrong = c.validate(at, string(body))
	if media == "application/problem+json" {
		var p server.Problem
		if err := json.Unmarshal(body, &p); err != nil {
			wrong = append(wrong, err.Error())
		}
		if name := strings.TrimPrefix(p.Type, "urn:pawl:problem:"); !slices.Contains(answer.Problems, name) {
			wrong = append(wrong, fmt.Sprintf("the document does not name the problem %s: %s", name, body))
		}
	}
	return wrong
}

func escaped(part string) string {
	return strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(part)
}

func (c *conform) validate(at, body string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	schema, err := c.schemas.Compile(at)
	if err != nil {
		return []string{err.Error()}
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
	if err == nil {
		err = schema.Validate(value)
	}
	if err != nil {
		return []string{fmt.Sprintf("%v in\n%s", err, body)}
	}
	return nil
}

// witness keeps what is answered.
type witness struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
	// cut is whether not all of it could be written.
	cut bool
}

func (w *witness) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *witness) Write(b []byte) (int, error) {
	w.body.Write(b)
	n, err := w.ResponseWriter.Write(b)
	w.cut = w.cut || err != nil
	return n, err
}

func (w *witness) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func TestTheDocumentIsOpenAPI(t *testing.T) {
	s, _ := newServer(t, nil)
	document := gets[any](local{s, t}, http.StatusOK, http.MethodGet, "/openapi.json", "")
	text, err := os.ReadFile(filepath.Join("testdata", "openapi-3.1.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var published any
	if err := yaml.Unmarshal(text, &published); err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("http://pawl.test/schema", published); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("http://pawl.test/schema")
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(document); err != nil {
		t.Errorf("%v", err)
	}
}

// What a client may do is in the document, and nowhere is there a default.
func TestEachOperationSaysItsRole(t *testing.T) {
	c, err := ofDocument()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for path, methods := range c.paths {
		for method, o := range methods {
			got[o.Role] = append(got[o.Role], strings.ToUpper(method)+" "+path)
		}
	}
	for _, operations := range got {
		slices.Sort(operations)
	}
	if roles := slices.Sorted(maps.Keys(got)); !slices.Equal(roles, []string{"admin", "anyone", "editor", "viewer"}) {
		t.Errorf("the roles are %v", roles)
	}
	for _, o := range got["viewer"] {
		if !strings.HasPrefix(o, "GET ") {
			t.Errorf("a viewer may %s", o)
		}
	}
	if want := []string{"GET /", "GET /assets/{name}", "GET /healthz", "GET /readyz"}; !slices.Equal(got["anyone"], want) {
		t.Errorf("anyone may %v", got["anyone"])
	}
}

// A test that asked the handler itself would not hear that an answer is not what
// the document says.
func TestEveryTestAsksAHandlerThatChecks(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if file != "conform_test.go" && bytes.Contains(text, []byte(".Handler()")) {
			t.Errorf("%s asks a handler of which nobody checks the answers; use conforming", file)
		}
	}
}
