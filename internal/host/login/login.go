// Package login stores the tokens of servers that require a login (OAuth 2.1) in files
// that only their user can read, and renews them. Any number of processes share the
// tokens of a server. One of them renews an expired token while it holds a lock; the
// others wait and then read the new token.
package login

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/oauth2"
)

// ErrNeeded is returned where a person must log in.
var ErrNeeded = errors.New("a login is needed")

// Server is a server that requires a login.
type Server struct {
	URL string
	// Scopes are requested instead of those that the server names.
	Scopes []string
	// ClientID is the address of a client metadata document, or the id of a client that
	// is registered with the authorization server; ClientSecret is the secret of that
	// client. Without an id, each login registers a client.
	ClientID     string
	ClientSecret string
}

// Login is a user's login at a server. It is safe for concurrent use.
type Login struct {
	Server
	// Dir is the directory of the tokens; see [Dir].
	Dir string
	// Client makes the requests; nil means a client with a timeout.
	Client *http.Client
	// Further are scopes that a login requests in addition, besides those that earlier
	// ones did.
	Further []string
	// Paste returns the address that the browser was redirected to, for a browser that
	// cannot reach this machine; nil waits for the browser only.
	Paste func(ctx context.Context) (string, error)
	// Learn is called with each secret value that is read or received; it may be nil.
	Learn func(value string)
}

// Dir is the directory of a user's tokens.
func Dir() (string, error) {
	config, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("login: %w", err)
	}
	return filepath.Join(config, "pawl", "mcp"), nil
}

// kept is the content of the file of a login.
type kept struct {
	URL           string           `json:"url"`
	Resource      string           `json:"resource"`
	TokenEndpoint string           `json:"token_endpoint"`
	Revocation    string           `json:"revocation_endpoint,omitempty"`
	ClientID      string           `json:"client_id"`
	ClientSecret  string           `json:"client_secret,omitempty"`
	Style         oauth2.AuthStyle `json:"auth_style,omitempty"`
	AccessToken   string           `json:"access_token"`
	RefreshToken  string           `json:"refresh_token,omitempty"`
	Expires       time.Time        `json:"expires,omitzero"`
	// Further are the scopes that logins have requested in addition.
	Further []string `json:"further_scopes,omitempty"`
}

// early is how long before its expiry a token is renewed.
const early = 10 * time.Second

func (k *kept) good(refused string) bool {
	return k.AccessToken != "" && k.AccessToken != refused && (k.Expires.IsZero() || time.Until(k.Expires) > early)
}

// There returns the reason why a person must log in, nil if there is a login that may
// be valid.
func (l *Login) There() error {
	k, err := l.read()
	if err == nil && !k.good("") && k.RefreshToken == "" {
		err = l.expired()
	}
	return err
}

func (l *Login) expired() error {
	return fmt.Errorf("%w at %s: the last one has expired", ErrNeeded, l.URL)
}

// Forget removes the login, and asks the authorization server to revoke its tokens. It
// reports whether there was a login; the error may be that they were not revoked.
func (l *Login) Forget(ctx context.Context) (bool, error) {
	unlock, err := l.lock(ctx)
	if err != nil {
		return false, err
	}
	defer unlock()
	k, unread := l.read()
	switch err := os.Remove(l.file()); {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("login: %w", err)
	case unread != nil:
		return true, nil
	}
	return true, l.revoke(ctx, k)
}

// revoke revokes the tokens of a login, if the authorization server can (RFC 7009).
func (l *Login) revoke(ctx context.Context, k *kept) error {
	if k.Revocation == "" {
		return nil
	}
	for _, token := range [][2]string{{"refresh_token", k.RefreshToken}, {"access_token", k.AccessToken}} {
		if token[1] == "" {
			continue
		}
		resp, _, err := l.post(ctx, k, k.Revocation, url.Values{"token": {token[1]}, "token_type_hint": {token[0]}})
		if err == nil && resp.StatusCode != http.StatusOK {
			err = fmt.Errorf("the authorization server answered %s", resp.Status)
		}
		if err != nil {
			return fmt.Errorf("login: the login was removed, but its tokens were not revoked: %w", err)
		}
	}
	return nil
}

// Since reports whether a login of a directory was made or renewed after a time.
func Since(dir string, at time.Time) bool {
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	return slices.ContainsFunc(files, func(file string) bool {
		info, err := os.Stat(file)
		return err == nil && info.ModTime().After(at)
	})
}

// maxKept bounds the number of logins that [Tokens] reads.
const maxKept = 100

// Tokens returns the tokens of the logins in a directory. It skips files that cannot be
// read.
func Tokens(dir string) []string {
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	var all []string
	for _, file := range files[:min(len(files), maxKept)] {
		var k kept
		text, err := os.ReadFile(file)
		if err != nil || json.Unmarshal(text, &k) != nil {
			continue
		}
		for _, value := range []string{k.AccessToken, k.RefreshToken, k.ClientSecret} {
			if value != "" {
				all = append(all, value)
			}
		}
	}
	return all
}

func (l *Login) file() string {
	sum := sha256.Sum256([]byte(l.URL + "\n" + l.ClientID))
	return filepath.Join(l.Dir, hex.EncodeToString(sum[:16])+".json")
}

// Token returns a token for requests to the server. refused is a token that the server
// rejected, empty for none. The error is [ErrNeeded] if a person must log in.
func (l *Login) Token(ctx context.Context, refused string) (string, error) {
	k, err := l.read()
	if err != nil {
		return "", err
	}
	if k.good(refused) {
		return k.AccessToken, nil
	}
	unlock, err := l.lock(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	if k, err = l.read(); err != nil {
		return "", err
	}
	if k.good(refused) { // renewed by another process
		return k.AccessToken, nil
	}
	if err := l.renew(ctx, k); err != nil {
		return "", err
	}
	return k.AccessToken, l.write(k)
}

func (l *Login) read() (*kept, error) {
	text, err := os.ReadFile(l.file())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w at %s", ErrNeeded, l.URL)
	}
	if err != nil {
		return nil, fmt.Errorf("login: %w", err)
	}
	var k kept
	if err := json.Unmarshal(text, &k); err != nil || k.URL != l.URL {
		return nil, fmt.Errorf("%w at %s: what is kept of the last one cannot be read", ErrNeeded, l.URL)
	}
	l.learn(&k)
	return &k, nil
}

func (l *Login) learn(k *kept) {
	if l.Learn == nil {
		return
	}
	for _, value := range []string{k.AccessToken, k.RefreshToken, k.ClientSecret} {
		if value != "" {
			l.Learn(value)
		}
	}
}

// write replaces the file of the login. The caller holds its lock.
func (l *Login) write(k *kept) error {
	l.learn(k)
	kept := *k
	if l.ClientSecret != "" {
		kept.ClientSecret = "" // the owner configures it
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return fmt.Errorf("login: %w", err)
	}
	f, err := os.CreateTemp(l.Dir, ".new-*") // readable only by its user
	if err != nil {
		return fmt.Errorf("login: %w", err)
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), l.file())
	}
	if err != nil {
		return fmt.Errorf("login: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

// lockPoll is the interval between attempts to get a lock that another process holds.
const lockPoll = 5 * time.Millisecond

// lock waits until no other process renews the login.
func (l *Login) lock(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(l.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("login: %w", err)
	}
	f, err := os.OpenFile(l.file()+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("login: %w", err)
	}
	for {
		switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
		case err == nil, errors.Is(err, errors.ErrUnsupported):
			return func() { _ = f.Close() }, nil
		case !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR):
			return nil, fmt.Errorf("login: lock %s: %w", f.Name(), errors.Join(err, f.Close()))
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), f.Close())
		case <-time.After(lockPoll):
		}
	}
}

func (l *Login) client() *http.Client {
	if l.Client != nil {
		return l.Client
	}
	return &http.Client{Timeout: 30 * time.Second}
}

// maxAnswer bounds a response of an authorization server.
const maxAnswer = 1 << 20

// post makes a request of the client of a login, and returns the response with its text.
func (l *Login) post(ctx context.Context, k *kept, endpoint string, form url.Values) (*http.Response, []byte, error) {
	clientSecret := cmp.Or(l.ClientSecret, k.ClientSecret)
	basic := k.Style == oauth2.AuthStyleInHeader || k.Style == oauth2.AuthStyleAutoDetect && clientSecret != ""
	if !basic {
		form.Set("client_id", k.ClientID)
		if clientSecret != "" {
			form.Set("client_secret", clientSecret)
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	if basic {
		req.SetBasicAuth(url.QueryEscape(k.ClientID), url.QueryEscape(clientSecret))
	}
	resp, err := l.client().Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	return resp, text, err
}

// renew requests new tokens with the refresh token.
func (l *Login) renew(ctx context.Context, k *kept) error {
	if k.RefreshToken == "" {
		return l.expired()
	}
	resp, text, err := l.post(ctx, k, k.TokenEndpoint, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {k.RefreshToken}, "resource": {k.Resource}})
	if err != nil {
		return fmt.Errorf("login: renew the token: %w", err)
	}
	var got struct {
		AccessToken  string  `json:"access_token"`
		RefreshToken string  `json:"refresh_token"`
		ExpiresIn    float64 `json:"expires_in"`
		Error        string  `json:"error"`
	}
	err = json.Unmarshal(text, &got)
	switch {
	case resp.StatusCode == http.StatusBadRequest, resp.StatusCode == http.StatusUnauthorized:
		return fmt.Errorf("%w at %s: the authorization server does not renew the last one (%q)", ErrNeeded, l.URL, got.Error)
	case resp.StatusCode != http.StatusOK || err != nil || got.AccessToken == "":
		return fmt.Errorf("login: renew the token: the authorization server answered %s", resp.Status)
	}
	k.AccessToken, k.Expires = got.AccessToken, time.Time{}
	if got.RefreshToken != "" {
		k.RefreshToken = got.RefreshToken
	}
	if got.ExpiresIn > 0 {
		k.Expires = time.Now().Add(time.Duration(got.ExpiresIn * float64(time.Second)))
	}
	return nil
}
