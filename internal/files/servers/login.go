package servers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/host/login"
	"github.com/pawlrun/pawl/tool/mcp"
)

// Login is a user's login at an MCP server of a file.
type Login struct {
	// Server is the name of the server in the file, and Command the command that logs
	// in.
	Server, Command string
	*login.Login
}

// loginNeeded converts a login's error for package mcp.
type loginNeeded struct{ error }

func (loginNeeded) Is(target error) bool { return target == mcp.ErrLoginNeeded }

// loginOf returns the source of the tokens for requests to a server, nil for a server
// without a login. value returns the value of a secret.
func loginOf(server spec.MCPServer, a *spec.Agent, value func(name string) string, learn func(token string)) *mcp.Login {
	if server.OAuth == nil {
		return nil
	}
	l, wrong := loginAt(server, a, value, learn)
	return &mcp.Login{Command: l.Command, Token: func(ctx context.Context, refused string) (string, error) {
		if wrong != nil {
			return "", wrong
		}
		token, err := l.Token(ctx, refused)
		if errors.Is(err, login.ErrNeeded) {
			err = loginNeeded{err}
		}
		return token, err
	}}
}

// unauthorized returns what to do if a server without a login answers 401.
func unauthorized(server spec.MCPServer, a *spec.Agent) string {
	for name := range server.Headers {
		if strings.EqualFold(name, "Authorization") {
			return fmt.Sprintf("it refuses the header %s of the server %s in %s", name, server.Server, a.Path())
		}
	}
	return fmt.Sprintf("to log in, add 'oauth: {}' to the server %s in %s and run: %s", server.Server, a.Path(), loginCommand(server, a))
}

func loginCommand(server spec.MCPServer, a *spec.Agent) string {
	return "pawl mcp login " + word(spec.Absolute(a.Path())) + " " + server.Server
}

func loginAt(server spec.MCPServer, a *spec.Agent, value func(name string) string, learn func(token string)) (Login, error) {
	dir, err := login.Dir()
	l := &login.Login{Dir: dir, Learn: learn, Server: login.Server{URL: server.URL, Scopes: server.OAuth.Scopes, ClientID: server.OAuth.ClientID}}
	if name := server.OAuth.Secret(); name != "" {
		l.ClientSecret = value(name)
	}
	return Login{Server: server.Server, Command: loginCommand(server, a), Login: l}, err
}

// word quotes a path as a word of a command line.
func word(path string) string {
	if quoted, err := syntax.Quote(path, syntax.LangBash); err == nil {
		return quoted
	}
	return path
}

// Logins returns the logins at the MCP servers of agents, one for each name of a server.
// value returns the value of an agent's secret, and learn, which may be nil, receives
// the tokens.
func Logins(agents []*spec.Agent, value func(a *spec.Agent, name string) (string, error), learn func(token string)) ([]Login, error) {
	var all []Login
	for _, a := range agents {
		for _, server := range a.Tools.MCP {
			if server.OAuth == nil || slices.ContainsFunc(all, func(l Login) bool { return l.Server == server.Server }) {
				continue
			}
			var unread error
			l, err := loginAt(server, a, func(name string) (text string) {
				text, unread = value(a, name)
				return text
			}, learn)
			if err = cmp.Or(err, unread); err != nil {
				return nil, fmt.Errorf("launch: the login at the MCP server %s: %w", server.Server, err)
			}
			all = append(all, l)
		}
	}
	return all, nil
}
