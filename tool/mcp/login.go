package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
)

// Login is where the requests to a server get their tokens.
type Login struct {
	// Token returns the token of a request. refused is one that the server did not
	// take, empty for none. The error is an [ErrLoginNeeded] if a person must log in.
	Token func(ctx context.Context, refused string) (string, error)
	// Command is what a person runs to log in. The flag --scope, which may be repeated,
	// asks for a further scope.
	Command string
}

// ErrLoginNeeded is returned for a request that cannot be made before a person has
// logged in.
var ErrLoginNeeded = errors.New("a login is needed")

// loginNeeded says how to log in.
type loginNeeded struct {
	command string
	err     error
}

func (e *loginNeeded) Error() string { return e.err.Error() + "; log in with: " + e.command }
func (e *loginNeeded) Unwrap() error { return e.err }

// carry sends a request with a token, and once more with another one if the server
// refuses the first. A status of 401 says that the request was not applied (RFC 9110,
// 15.5.2), so a call that it refuses had no effect, and neither did one that 403 refuses
// for want of a scope.
func (l *Login) carry(base http.RoundTripper, r *http.Request) (*http.Response, error) {
	if l == nil {
		return base.RoundTrip(r)
	}
	refused := ""
	for {
		token, err := l.Token(r.Context(), refused)
		if err != nil {
			if r.Body != nil {
				_ = r.Body.Close()
			}
			return nil, l.failed(err)
		}
		next := r.Clone(r.Context())
		if refused != "" && r.GetBody != nil {
			if next.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
		next.Header.Set("Authorization", "Bearer "+token)
		answer, err := base.RoundTrip(next)
		if err != nil {
			return nil, err
		}
		wanted := scopes(answer)
		again := answer.StatusCode == http.StatusUnauthorized && (r.Body == nil || r.GetBody != nil)
		if !again && wanted == nil {
			return answer, nil
		}
		noteRefused(r.Context())
		_, _ = io.CopyN(io.Discard, answer.Body, maxRefusal)
		_ = answer.Body.Close()
		switch {
		case wanted != nil:
			return nil, l.needed(fmt.Errorf("%w with further scopes", ErrLoginNeeded), wanted)
		case refused != "":
			return nil, l.needed(fmt.Errorf("%w: the server refuses a new token", ErrLoginNeeded), nil)
		}
		refused = token
	}
}

// maxRefusal bounds what is read of a refusal, whose connection is used again then.
const maxRefusal = 64 << 10

func (l *Login) failed(err error) error {
	if errors.Is(err, ErrLoginNeeded) {
		return l.needed(err, nil)
	}
	return err
}

func (l *Login) needed(err error, scopes []string) error {
	command := l.Command
	for _, s := range scopes {
		command += " --scope " + s
	}
	return &loginNeeded{command: command, err: err}
}

// plainScope is a scope that may stand in a command as it is. The server chooses it.
var plainScope = regexp.MustCompile(`^[A-Za-z0-9_:/.][A-Za-z0-9_:/.-]{0,99}$`)

// maxScopes bounds the scopes that a server may ask for.
const maxScopes = 20

// scopes are those that a server wants a token to have, nil where it does not say so.
func scopes(answer *http.Response) []string {
	if answer.StatusCode != http.StatusForbidden {
		return nil
	}
	challenges, err := oauthex.ParseWWWAuthenticate(answer.Header.Values("WWW-Authenticate"))
	if err != nil {
		return nil
	}
	for _, c := range challenges {
		if c.Scheme == "bearer" && c.Params["error"] == "insufficient_scope" {
			all := slices.DeleteFunc(strings.Fields(c.Params["scope"]), func(s string) bool { return !plainScope.MatchString(s) })
			return slices.Clip(append([]string{}, all[:min(len(all), maxScopes)]...))
		}
	}
	return nil
}

// login returns the question of a call that needs a login, nil for any other error.
func (s *Server) login(x exchange, err error) error {
	needed, is := errors.AsType[*loginNeeded](err)
	if !is {
		return nil
	}
	x.Login = true
	state, err := json.Marshal(x)
	if err != nil {
		return err
	}
	return &tool.InputRequired{Form: event.Form{
		Message: fmt.Sprintf("Log in at the MCP server %s, with: %s", s.o.Server, needed.command), Command: needed.command,
		Schema: json.RawMessage(`{"type":"object","properties":{}}`), State: state,
	}}
}

// loggedIn is an exchange that goes on after a login.
func (x exchange) loggedIn(in *event.FormAnswer) (exchange, error) {
	x.Login = false
	if in.Kind != event.ApprovalAnswered {
		return x, &tool.Error{Type: event.ErrorRejected, NothingCame: true, Message: "the call was not made: it needs a login at the MCP server, which the person declined"}
	}
	return x, nil
}
