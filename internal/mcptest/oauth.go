package mcptest

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
)

// OAuth is an MCP server at /mcp that wants a login, and its authorization server.
type OAuth struct {
	*httptest.Server
	// MCP answers the requests that carry a good token.
	MCP http.Handler
	// Lifetime is that of tokens in seconds; 0 is an hour. Documents says that clients
	// may be addresses of metadata, Issuer is the iss of answers in the place of the
	// right one, and NoRefresh gives no refresh tokens. Open lets everybody begin a session,
	// and RevokeAt is where tokens are revoked in the place of the right address.
	Lifetime  int
	Documents bool
	Issuer    string
	NoRefresh bool
	Open      bool
	RevokeAt  string

	mu      sync.Mutex
	codes   map[string]url.Values
	good    map[string]bool
	refresh map[string]bool
	// log has a line for each request of a client.
	log []string
}

// NewOAuth starts one.
func NewOAuth(mcp http.Handler) *OAuth {
	o := &OAuth{MCP: mcp, codes: map[string]url.Values{}, good: map[string]bool{}, refresh: map[string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/mcp", o.resource)
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
		write(w, map[string]any{"resource": o.URL + "/mcp", "authorization_servers": []string{o.URL}, "scopes_supported": []string{"read", "write"}})
	})
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		write(w, map[string]any{
			"issuer": o.URL, "authorization_endpoint": o.URL + "/authorize", "token_endpoint": o.URL + "/token", "registration_endpoint": o.URL + "/register", "revocation_endpoint": cmp.Or(o.RevokeAt, o.URL+"/revocation"),
			"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"},
			"authorization_response_iss_parameter_supported": true, "client_id_metadata_document_supported": o.Documents,
		})
	})
	mux.HandleFunc("/register", func(w http.ResponseWriter, r *http.Request) {
		var about map[string]any
		_ = json.NewDecoder(r.Body).Decode(&about)
		o.note("register")
		about["client_id"] = "registered"
		w.WriteHeader(http.StatusCreated)
		write(w, about)
	})
	mux.HandleFunc("/authorize", o.authorize)
	mux.HandleFunc("/token", o.token)
	mux.HandleFunc("/revocation", func(_ http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		token := r.PostForm.Get("token")
		o.note("revoke %s %s", r.PostForm.Get("token_type_hint"), clientOf(r))
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.good, token)
		delete(o.refresh, token)
	})
	o.Server = httptest.NewServer(mux)
	return o
}

func write(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func (o *OAuth) note(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.log = append(o.log, fmt.Sprintf(format, args...))
}

// Log has a line for each request of a client that was taken.
func (o *OAuth) Log() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.log)
}

// Set changes the fields of a server that has begun.
func (o *OAuth) Set(change func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change()
}

// Revoke makes all access tokens void, and with all the refresh tokens, too.
func (o *OAuth) Revoke(all bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.good)
	if all {
		clear(o.refresh)
	}
}

func (o *OAuth) resource(w http.ResponseWriter, r *http.Request) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	o.mu.Lock()
	good := o.good[token] || o.Open && bytes.Contains(body, []byte(`"initialize"`))
	o.mu.Unlock()
	if !good {
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+o.URL+`/.well-known/oauth-protected-resource/mcp"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	o.MCP.ServeHTTP(w, r)
}

// authorize agrees at once, as a user would.
func (o *OAuth) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	back, err := url.Parse(q.Get("redirect_uri"))
	if err != nil || q.Get("code_challenge_method") != "S256" || q.Get("resource") != o.URL+"/mcp" || back.Hostname() != "127.0.0.1" {
		http.Error(w, "such a request is not taken", http.StatusBadRequest)
		return
	}
	scopes := strings.Fields(q.Get("scope")) // a set
	slices.Sort(scopes)
	o.note("authorize %s %s", q.Get("client_id"), strings.Join(scopes, " "))
	code := rand.Text()
	o.mu.Lock()
	issuer := cmp.Or(o.Issuer, o.URL)
	o.codes[code] = q
	o.mu.Unlock()
	back.RawQuery = url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {issuer}}.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

func (o *OAuth) token(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	kind := r.PostForm.Get("grant_type")
	o.mu.Lock()
	asked, known := o.codes[r.PostForm.Get("code")]
	delete(o.codes, r.PostForm.Get("code"))
	ok := o.refresh[r.PostForm.Get("refresh_token")]
	delete(o.refresh, r.PostForm.Get("refresh_token")) // each is good once
	o.mu.Unlock()
	if kind == "authorization_code" {
		sum := sha256.Sum256([]byte(r.PostForm.Get("code_verifier")))
		ok = known && base64.RawURLEncoding.EncodeToString(sum[:]) == asked.Get("code_challenge") && r.PostForm.Get("redirect_uri") == asked.Get("redirect_uri")
	}
	if !ok || r.PostForm.Get("resource") != o.URL+"/mcp" {
		w.WriteHeader(http.StatusBadRequest)
		write(w, map[string]any{"error": "invalid_grant"})
		return
	}
	o.note("token %s %s", kind, clientOf(r))
	access, refresh, lifetime := "access-"+rand.Text(), "refresh-"+rand.Text(), o.lifetime()
	o.mu.Lock()
	o.good[access] = true
	o.refresh[refresh] = true
	o.mu.Unlock()
	answer := map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": lifetime}
	if !o.NoRefresh {
		answer["refresh_token"] = refresh
	}
	write(w, answer)
}

// clientOf is the client that makes a request.
func clientOf(r *http.Request) string {
	client, _, basic := r.BasicAuth()
	if !basic {
		return r.PostForm.Get("client_id")
	}
	if name, err := url.QueryUnescape(client); err == nil {
		return name
	}
	return client
}

// OAuthMain is an [OAuth] as a program. It writes its address into the file address of
// its directory. /log is what clients asked for, /revoke makes the access tokens void,
// /revoke-all the refresh tokens too, and /lifetime?s=1 sets the lifetime of tokens.
func OAuthMain() {
	o := NewOAuth(&Server{Ledger: os.Getenv(LedgerVariable)})
	plain := o.Config.Handler
	o.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/log":
			fmt.Fprintln(w, strings.Join(o.Log(), "\n"))
		case "/revoke", "/revoke-all":
			o.Revoke(r.URL.Path == "/revoke-all")
		case "/lifetime":
			o.Set(func() { _, _ = fmt.Sscan(r.URL.Query().Get("s"), &o.Lifetime) })
		default:
			plain.ServeHTTP(w, r)
		}
	})
	if err := errors.Join(os.WriteFile("address.new", []byte(o.URL), 0o600), os.Rename("address.new", "address")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	select {}
}

// Browse opens a page and follows its redirects, as a browser would.
func Browse(page string) error {
	resp, err := http.Get(page)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", resp.Status, text)
	}
	return nil
}

// BrowserMain opens the page that its last argument names and follows it, as a browser
// would. With --stop it follows none, and prints where the page sends it.
func BrowserMain() {
	var client http.Client
	if os.Args[1] == "--stop" {
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	resp, err := client.Get(os.Args[len(os.Args)-1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer resp.Body.Close()
	if to := resp.Header.Get("Location"); to != "" {
		fmt.Println(to)
		return
	}
	_, _ = io.Copy(os.Stdout, resp.Body)
	if resp.StatusCode != http.StatusOK {
		os.Exit(1)
	}
}

func (o *OAuth) lifetime() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return cmp.Or(o.Lifetime, 3600)
}
