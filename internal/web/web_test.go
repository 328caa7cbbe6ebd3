package web_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/web"
)

// answer is what the page gives for a path.
func answer(t *testing.T, path string, header ...string) *http.Response {
	t.Helper()
	page, err := web.Load()
	if err != nil {
		t.Fatal(err)
	}
	r, w := httptest.NewRequest(http.MethodGet, path, nil), httptest.NewRecorder()
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	if name, is := strings.CutPrefix(path, web.Assets); !is {
		page.Index(w, r)
	} else if !page.Asset(w, r, name) {
		w.WriteHeader(http.StatusNotFound)
	}
	return w.Result()
}

func text(t *testing.T, r io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var linked = regexp.MustCompile(`(?:src|href)="([^"]+)"`)

func TestTheDocumentNamesFilesOfItsOwnAlone(t *testing.T) {
	index := answer(t, "/")
	found := linked.FindAllStringSubmatch(text(t, index.Body), -1)
	if len(found) != 3 {
		t.Fatalf("%d files are named", len(found))
	}
	types := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
	for _, link := range found {
		file := answer(t, link[1])
		ext := link[1][strings.LastIndex(link[1], "."):]
		if file.StatusCode != http.StatusOK || file.Header.Get("Content-Type") != types[ext] {
			t.Errorf("%s: status %d, %q", link[1], file.StatusCode, file.Header.Get("Content-Type"))
		}
		if c := file.Header.Get("Cache-Control"); !strings.Contains(c, "immutable") {
			t.Errorf("%s may be kept: %q", link[1], c)
		}
	}
	if got := answer(t, web.Assets+"main.js").StatusCode; got != http.StatusNotFound {
		t.Errorf("a file that is not there: status %d", got)
	}
}

// The policy is a promise to the reader: what a model wrote can neither run nor load
// anything.
func TestThePageForbidsTheBrowserWhatItDoesNotNeed(t *testing.T) {
	h := answer(t, "/").Header
	directives := map[string]bool{}
	for d := range strings.SplitSeq(h.Get("Content-Security-Policy"), ";") {
		directives[strings.TrimSpace(d)] = true
	}
	for _, want := range []string{
		"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "base-uri 'none'", "form-action 'none'",
		"frame-ancestors 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'",
	} {
		if !directives[want] {
			t.Errorf("the policy does not say %s: %v", want, directives)
		}
	}
	for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-cache"} {
		if h.Get(name) != want {
			t.Errorf("%s is %q", name, h.Get(name))
		}
	}
}

func TestWhatABrowserHasIsNotSentAgain(t *testing.T) {
	tag := answer(t, "/").Header.Get("ETag")
	if again := answer(t, "/", "If-None-Match", tag); again.StatusCode != http.StatusNotModified || text(t, again.Body) != "" {
		t.Errorf("status %d", again.StatusCode)
	}
	if other := answer(t, "/", "If-None-Match", `"another"`); other.StatusCode != http.StatusOK {
		t.Errorf("status %d", other.StatusCode)
	}
}

func TestWhoTakesGzipGetsTheSameSmaller(t *testing.T) {
	plain, zipped := answer(t, "/"), answer(t, "/", "Accept-Encoding", "br, gzip")
	if zipped.Header.Get("Content-Encoding") != "gzip" || plain.Header.Get("Content-Encoding") != "" {
		t.Fatal("the encoding is not the one that was asked for")
	}
	r, err := gzip.NewReader(zipped.Body)
	if err != nil {
		t.Fatal(err)
	}
	if text(t, r) != text(t, plain.Body) {
		t.Error("the texts are not the same")
	}
}

// imports names the files that a script loads at once; what it loads later is in import().
var imports = regexp.MustCompile(`(?:from|import)\s*"\./([^"]+)"`)

func TestThePageIsSmallAndItsFirstViewSmaller(t *testing.T) {
	size := func(name string) (n int64) {
		r := answer(t, web.Assets+name, "Accept-Encoding", "gzip")
		if r.StatusCode != http.StatusOK {
			t.Fatalf("%s: status %d", name, r.StatusCode)
		}
		return r.ContentLength
	}
	first, seen := int64(0), map[string]bool{}
	var load func(name string)
	load = func(name string) {
		if seen[name] {
			return
		}
		seen[name] = true
		first += size(name)
		for _, more := range imports.FindAllStringSubmatch(text(t, answer(t, web.Assets+name).Body), -1) {
			load(more[1])
		}
	}
	for _, link := range linked.FindAllStringSubmatch(text(t, answer(t, "/").Body), -1) {
		load(strings.TrimPrefix(link[1], web.Assets))
	}
	all := int64(0)
	files, err := filepath.Glob("dist/*-*.*s")
	if err != nil || len(files) < len(seen) {
		t.Fatal(files, err)
	}
	for _, file := range files {
		all += size(filepath.Base(file))
	}
	if first > 35<<10 || all > 80<<10 || first >= all {
		t.Errorf("the first view is %d bytes of %d", first, all)
	}
}

// The notices of what is in the bundle come with it.
func TestTheLicencesComeWithThePage(t *testing.T) {
	if got := text(t, answer(t, web.Assets+"LICENSES.txt").Body); strings.Count(got, "Permission is hereby granted") != 3 {
		t.Errorf("%s", got)
	}
}
