package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/egress"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/web"
)

// local are options for tests: servers of this machine are allowed by name,
// and no proxy of the machine is asked.
func local() web.Options {
	return web.Options{
		Egress: egress.Rules{Private: []egress.Pattern{"127.0.0.1"}},
		Proxy:  func(*http.Request) (*url.URL, error) { return nil, nil },
	}
}

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func gives(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if contentType != "" {
			w.Header().Set("Content-Type", contentType)
		}
		_, _ = io.WriteString(w, body)
	}
}

func fetch(t *testing.T, o web.Options, args map[string]any) (tool.Result, error) {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return web.New(o).Run(t.Context(), tool.Call{ID: "c", Args: raw})
}

// get is a fetch that must give a page; it returns what is below its first line.
func get(t *testing.T, o web.Options, address string) string {
	t.Helper()
	r, err := fetch(t, o, map[string]any{"url": address})
	if err != nil {
		t.Fatalf("%s: %v", address, err)
	}
	_, body, _ := strings.Cut(r.Output, "\n")
	return body
}

// fails is a fetch that must not give a page; it returns why.
func fails(t *testing.T, o web.Options, address string) *tool.Error {
	t.Helper()
	r, err := fetch(t, o, map[string]any{"url": address})
	typed, ok := errors.AsType[*tool.Error](err)
	if !ok {
		t.Fatalf("%s gave %q, %v", address, r.Output, err)
	}
	return typed
}

func TestAPageIsGivenAsText(t *testing.T) {
	for _, tt := range []struct{ name, contentType, body, want string }{
		{"plain text", "text/plain; charset=utf-8", "Grüße\n", "Grüße\n"},
		{"JSON", "application/json", `{"a": "ü"}`, `{"a": "ü"}`},
		{"a kind of JSON", "application/problem+json", `{}`, `{}`},
		{"XML", "application/xml", `<a>b</a>`, `<a>b</a>`},
		{"HTML", "text/html; charset=utf-8", "<title>T</title><p>one <b>two</b>", "# T\n\none two"},
		{"no type, and it is HTML", "", "<!DOCTYPE html><p>x", "x"},
		{"Latin-1 by its header", "text/plain; charset=iso-8859-1", "Gr\xfc\xdfe", "Grüße"},
		{"Latin-1 by its look", "text/plain", "Gr\xfc\xdfe", "Grüße"},
		{"Shift-JIS by its meta element", "text/html", "<meta charset=shift_jis><p>\x93\xfa\x96{", "日本"},
		{"UTF-16 by its mark", "text/plain", "\xff\xfeh\x00i\x00", "hi"},
		{"UTF-8 that shows late", "text/plain", strings.Repeat("a", 5000) + "ü", strings.Repeat("a", 5000) + "ü"},
		{"nothing", "text/plain", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			address := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if tt.contentType == "" {
					w.Header()["Content-Type"] = nil
				}
				gives(tt.contentType, tt.body)(w, r)
			})
			if got := get(t, local(), address); got != tt.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestWhatIsNotTextIsRefused(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"an image":  gives("image/png", "\x89PNG"),
		"a program": gives("application/octet-stream", "x"),
		"no type, and it is a PDF": func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			_, _ = io.WriteString(w, "%PDF-1.7")
		},
		"a type that is none": gives(";;", "x"),
		"text that is not":    gives("text/plain", "a\x00b"),
		"an encoding nobody asked": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "br")
			gives("text/plain", "x")(w, r)
		},
		"compressed, and it is not": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			gives("text/plain", "not at all compressed")(w, r)
		},
		"nested without end": gives("text/html", strings.Repeat("<div>", 5000)),
		"an answer that breaks off": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "100")
			gives("text/plain", "x")(w, r)
		},
		"headers without end":        func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 100<<10)) },
		"a redirect without address": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusFound) },
	} {
		t.Run(name, func(t *testing.T) {
			if err := fails(t, local(), serve(t, h)); err.Type != event.ErrorTool || err.Message == "" {
				t.Errorf("got %s: %s", err.Type, err.Message)
			}
		})
	}
}

func TestAnAddressThatIsNotFetchedIsAnErrorOfTheCall(t *testing.T) {
	for _, address := range []string{
		"", "example.com", "//example.com", "ftp://example.com", "file:///etc/passwd", "javascript:alert(1)", "http://", "http:///x",
		"http://user:secret@example.com/", "http://user@example.com/", "http://2130706433/", "http://0x7f.1/", "http://127.1/", "http://example.com:0/",
		"http://example.com:99999/", "http://exa mple.com/", "http://[::1%25eth0]/", "http://[::1/", "http://a..b/", "http://" + strings.Repeat("a", 9000),
		"http:example.com", "gopher://example.com", "http://example.com\x00/",
	} {
		if err := fails(t, local(), address); err.Type != event.ErrorInvalidArgs || strings.Contains(err.Message, "secret") || !err.NothingCame {
			t.Errorf("%.60q: %s: %s", address, err.Type, err.Message)
		}
	}
	if _, err := fetch(t, local(), map[string]any{"url": "http://example.com", "max_chars": -1}); err == nil {
		t.Error("less than no characters: accepted")
	}
}

// world answers for names and machines that do not exist.
type world struct {
	mu sync.Mutex
	// names gives the addresses of a name, one list after the other.
	names  map[string][][]string
	dialed []string
}

func (w *world) options(rules egress.Rules, server string) web.Options {
	o := local()
	o.Egress = rules
	o.Lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		lists := w.names[host]
		if len(lists) == 0 {
			return nil, &net.DNSError{Name: host, IsNotFound: true}
		}
		if len(lists) > 1 {
			w.names[host] = lists[1:]
		}
		var out []netip.Addr
		for _, a := range lists[0] {
			out = append(out, netip.MustParseAddr(a))
		}
		return out, nil
	}
	o.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		w.mu.Lock()
		w.dialed = append(w.dialed, address)
		w.mu.Unlock()
		return new(net.Dialer).DialContext(ctx, network, strings.TrimPrefix(server, "http://"))
	}
	return o
}

func TestOnlyAllowedAddressesAreDialed(t *testing.T) {
	server := serve(t, gives("text/plain", "hello"))
	list := egress.Rules{Network: egress.NetworkAllowlist, Hosts: []egress.Pattern{"*.example.com"}}
	for _, tt := range []struct {
		name    string
		rules   egress.Rules
		names   map[string][][]string
		address string
		dialed  []string
	}{
		{"a public machine by its name", egress.Rules{}, map[string][][]string{"example.com": {{"93.184.216.34"}}}, "http://Example.com./x", []string{"93.184.216.34:80"}},
		{"a public machine by its address", egress.Rules{}, nil, "http://93.184.216.34:8080/x", []string{"93.184.216.34:8080"}},
		{"this machine", egress.Rules{}, nil, "http://127.0.0.1/", nil},
		{"this machine under its cover", egress.Rules{}, nil, "http://[::ffff:127.0.0.1]/", nil},
		{"a name of this machine", egress.Rules{}, map[string][][]string{"localhost": {{"127.0.0.1"}}}, "http://localhost/", nil},
		{"credentials of a cloud", egress.Rules{}, map[string][][]string{"metadata.test": {{"169.254.169.254"}}}, "http://metadata.test/", nil},
		{"credentials behind a gateway", egress.Rules{}, map[string][][]string{"nat.test": {{"64:ff9b::a9fe:a9fe"}}}, "http://nat.test/", nil},
		{"a name that leads to both", egress.Rules{}, map[string][][]string{"both.test": {{"93.184.216.34", "10.0.0.1"}}}, "http://both.test/", nil},
		{"a name that leads elsewhere the second time", egress.Rules{}, map[string][][]string{"rebind.test": {{"93.184.216.34"}, {"127.0.0.1"}}}, "http://rebind.test/", []string{"93.184.216.34:80"}},
		{"a private machine that is named", egress.Rules{Private: []egress.Pattern{"intranet.test"}}, map[string][][]string{"intranet.test": {{"10.0.0.1"}}}, "http://intranet.test/", []string{"10.0.0.1:80"}},
		{"a named machine that leads to credentials", egress.Rules{Private: []egress.Pattern{"intranet.test"}}, map[string][][]string{"intranet.test": {{"169.254.169.254"}}}, "http://intranet.test/", nil},
		{"on the list", list, map[string][][]string{"www.example.com": {{"93.184.216.34"}}}, "http://www.example.com/", []string{"93.184.216.34:80"}},
		{"not on the list", list, map[string][][]string{"example.org": {{"93.184.216.34"}}}, "http://example.org/", nil},
		{"no network", egress.Rules{Network: egress.NetworkNone}, map[string][][]string{"example.com": {{"93.184.216.34"}}}, "http://example.com/", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := world{names: tt.names}
			o := w.options(tt.rules, server)
			if tt.dialed == nil {
				if err := fails(t, o, tt.address); err.Type != event.ErrorDenied || !strings.Contains(err.Message, "may not be reached") || !err.NothingCame {
					t.Errorf("got %s: %s (nothing came: %t)", err.Type, err.Message, err.NothingCame)
				}
			} else if got := get(t, o, tt.address); got != "hello" {
				t.Errorf("got %q", got)
			}
			if diff := cmp.Diff(tt.dialed, w.dialed); diff != "" {
				t.Errorf("dialed (-want +got)\n%s", diff)
			}
		})
	}
	w := world{}
	if err := fails(t, w.options(egress.Rules{}, server), "http://nowhere.test/"); err.Type != event.ErrorNotFound || !err.NothingCame {
		t.Errorf("a name that nobody has: %s: %s", err.Type, err.Message)
	}
}

func TestAMachineThatIsNotReachedHasSaidNothing(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	address := gone.URL
	gone.Close()
	if err := fails(t, local(), address); !err.NothingCame || !strings.Contains(err.Message, "127.0.0.1 could not be reached") {
		t.Errorf("refused (nothing came: %t): %s", err.NothingCame, err.Message)
	}
	broken := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 obey\r\n\r\n")
		_ = conn.Close()
	})
	if err := fails(t, local(), broken); err.NothingCame {
		t.Errorf("what a machine answers counts as nothing: %s", err.Message)
	}
}

func TestARedirectIsFollowedOnTheSameMachineOnly(t *testing.T) {
	var asked []string
	var mu sync.Mutex
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.Host+r.URL.Path)
		mu.Unlock()
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		gives("text/plain", "arrived")(w, r)
	})
	start := func(to string) string { return "http://a.test/start?to=" + url.QueryEscape(to) }
	names := map[string][][]string{"a.test": {{"93.184.216.34"}}, "b.test": {{"93.184.216.35"}}, "in.test": {{"10.0.0.1"}}}
	for _, tt := range []struct {
		name, to, want string
		asked          []string
	}{
		{"within the machine", "/end", "arrived", []string{"a.test/start", "a.test/end"}},
		{"by its other spelling", "http://A.test./end", "arrived", []string{"a.test/start", "a.test/end"}},
		{"to another machine", "http://b.test/end", "http://b.test/end\nCall web.fetch with that address", []string{"a.test/start"}},
		{"to another port", "http://a.test:8080/end", "moved to another port and was not followed there. Its address is now:\nhttp://a.test:8080/end", []string{"a.test/start"}},
		{"to an encrypted port that is another", "https://a.test:8443/end", "moved to another port", []string{"a.test/start"}},
		{"to a private machine", "http://in.test/end", "http://in.test/end\nCall web.fetch", []string{"a.test/start"}},
		{"to a private address", "http://127.0.0.1/end", "http://127.0.0.1/end\nCall web.fetch", []string{"a.test/start"}},
		{"to a file", "file:///etc/passwd", "!its scheme is \"file\"", []string{"a.test/start"}},
		{"to an address with credentials", "http://u:p@a.test/", "!carries credentials", []string{"a.test/start"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked = nil
			w := world{names: names}
			r, err := fetch(t, w.options(egress.Rules{}, server), map[string]any{"url": start(tt.to)})
			if why, refused := strings.CutPrefix(tt.want, "!"); refused {
				// It names where the page leads, so the page speaks in it.
				var e *tool.Error
				if !errors.As(err, &e) || !strings.Contains(e.Message, why) || e.NothingCame {
					t.Errorf("got %q, %v", r.Output, err)
				}
			} else if err != nil || !strings.Contains(r.Output, tt.want) {
				t.Errorf("got %q, %v", r.Output, err)
			}
			if !slices.Equal(asked, tt.asked) {
				t.Errorf("asked %v", asked)
			}
		})
	}
	t.Run("in a circle", func(t *testing.T) {
		loop := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path+"x", http.StatusFound) })
		if err := fails(t, local(), loop); !strings.Contains(err.Message, "more than 5 times") {
			t.Errorf("got %s", err.Message)
		}
	})
	t.Run("each step is judged by its port", func(t *testing.T) {
		w := world{names: names}
		rules := egress.Rules{Network: egress.NetworkAllowlist, Hosts: []egress.Pattern{"a.test:80"}}
		if err := fails(t, w.options(rules, server), start("https://a.test/end")); err.Type != event.ErrorDenied {
			t.Errorf("got %s: %s", err.Type, err.Message)
		}
	})
}

func TestAnEncryptedPageDoesNotSendTheReaderToAnOpenOne(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/end" {
			gives("text/plain", "arrived")(w, r)
			return
		}
		http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusFound)
	}))
	defer s.Close()
	o := local()
	o.TLS = s.Client().Transport.(*http.Transport).TLSClientConfig
	if got := get(t, o, s.URL+"/?to=/end"); got != "arrived" {
		t.Errorf("got %q", got)
	}
	open := strings.Replace(s.URL, "https", "http", 1)
	if err := fails(t, o, s.URL+"/?to="+open); !strings.Contains(err.Message, "not encrypted") {
		t.Errorf("got %s", err.Message)
	}
}

func TestNothingIsSentButTheAddress(t *testing.T) {
	var headers []http.Header
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		headers = append(headers, r.Header)
		http.SetCookie(w, &http.Cookie{Name: "id", Value: "1"})
		if r.URL.Path != "/end" {
			http.Redirect(w, r, "/end", http.StatusFound)
		}
	})
	if _, err := fetch(t, local(), map[string]any{"url": address + "/start#fragment"}); err != nil {
		t.Fatal(err)
	}
	if len(headers) != 2 {
		t.Fatalf("%d requests", len(headers))
	}
	for _, h := range headers {
		var names []string
		for name := range h {
			names = append(names, name)
		}
		slices.Sort(names)
		if want := []string{"Accept", "Accept-Encoding", "Connection", "User-Agent"}; !slices.Equal(names, want) || h.Get("User-Agent") != "pawl" {
			t.Errorf("sent %v", h)
		}
	}
}

func TestServerErrorsAreReported(t *testing.T) {
	code, wait := 0, ""
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if wait != "" {
			w.Header().Set("Retry-After", wait)
		}
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, "why")
	})
	for c, kind := range map[int]event.ErrorType{404: event.ErrorNotFound, 410: event.ErrorNotFound, 403: event.ErrorTool, 500: event.ErrorTool} {
		code = c
		r, err := fetch(t, local(), map[string]any{"url": address})
		if err != nil || !r.IsError || r.ErrorType != kind || !strings.HasSuffix(r.Output, "\nwhy") {
			t.Errorf("%d: %+v, %v", c, r, err)
		}
	}
	code, wait = 503, "7"
	_, err := fetch(t, local(), map[string]any{"url": address})
	busy, ok := errors.AsType[*tool.TransientError](err)
	if !ok || busy.RetryAfter == nil || *busy.RetryAfter != 7*time.Second {
		t.Errorf("503: %v", err)
	}
	for _, c := range []int{429, 502, 504} {
		code, wait = c, ""
		if _, err := fetch(t, local(), map[string]any{"url": address}); !errors.As(err, &busy) {
			t.Errorf("%d: %v", c, err)
		}
	}
}

func TestAProxyIsAskedForWhatMayBeReached(t *testing.T) {
	var asked []string
	proxy := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.String())
		gives("text/plain", "by proxy")(w, r)
	})
	w := world{names: map[string][][]string{"a.test": {{"93.184.216.34"}}, "in.test": {{"10.0.0.1"}}}}
	o := w.options(egress.Rules{}, proxy)
	o.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse(proxy) }
	if got := get(t, o, "http://a.test/x"); got != "by proxy" {
		t.Errorf("got %q", got)
	}
	if err := fails(t, o, "http://in.test/x"); err.Type != event.ErrorDenied {
		t.Errorf("got %s: %s", err.Type, err.Message)
	}
	if !slices.Equal(asked, []string{"http://a.test/x"}) {
		t.Errorf("the proxy was asked for %v", asked)
	}
}

// rows: HAR-63
func TestTheToolDeclaresThatItIsAWayOut(t *testing.T) {
	set, err := tool.NewSet(web.New(web.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	c := set.Resolve("c", llm.ToolCall{Name: web.Name, Args: json.RawMessage(`{"url":"https://Bücher.example./a?b"}`)})
	if c.Problem != nil || c.Effect != event.EffectIdempotent || !c.ReadOnly || !c.Concurrent || c.Labels != (event.Labels{Untrusted: true, Outgoing: true}) {
		t.Errorf("declared as %+v", c)
	}
	if diff := cmp.Diff(&event.Facts{Hosts: []string{"xn--bcher-kva.example"}, Ports: []uint16{443}, Risk: event.RiskSend}, c.Facts); diff != "" {
		t.Errorf("facts (-want +got)\n%s", diff)
	}
	if len(c.Access) != 1 || c.Access[0].Key != "host:xn--bcher-kva.example" || c.Access[0].Write {
		t.Errorf("it touches %+v", c.Access)
	}
	c = set.Resolve("c", llm.ToolCall{Name: web.Name, Args: json.RawMessage(`{"url":"http://127.1/"}`)})
	if len(c.Facts.Hosts) != 0 || c.Facts.Risk != event.RiskSend {
		t.Errorf("an address that cannot be read has the facts %+v", c.Facts)
	}
}
