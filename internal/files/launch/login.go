package launch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/host/login"
	"github.com/pawlrun/pawl/tool/mcp"
)

// ServerLogin is a user's login at an MCP server of a file.
type ServerLogin struct {
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
func (o Options) loginOf(server spec.MCPServer, a *spec.Agent, value func(name string) string) *mcp.Login {
	if server.OAuth == nil {
		return nil
	}
	l, wrong := o.serverLogin(server, a, value)
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
	return "pawl mcp login " + word(absolute(a.Path())) + " " + server.Server
}

func (o Options) serverLogin(server spec.MCPServer, a *spec.Agent, value func(name string) string) (ServerLogin, error) {
	dir, err := login.Dir()
	l := &login.Login{Dir: dir, Learn: o.Learn, Server: login.Server{URL: server.URL, Scopes: server.OAuth.Scopes, ClientID: server.OAuth.ClientID}}
	if name := server.OAuth.Secret(); name != "" {
		l.ClientSecret = value(name)
	}
	return ServerLogin{Server: server.Server, Command: loginCommand(server, a), Login: l}, err
}

// word quotes a path as a word of a command line.
func word(path string) string {
	if quoted, err := syntax.Quote(path, syntax.LangBash); err == nil {
		return quoted
	}
	return path
}

// Logins returns the logins at the MCP servers of a file, or of the agents in it.
func Logins(f File, o Options) ([]ServerLogin, error) {
	agents, err := workers(f, o)
	if err != nil {
		return nil, err
	}
	var all []ServerLogin
	for _, a := range agents {
		for _, server := range a.Tools.MCP {
			if server.OAuth == nil || slices.ContainsFunc(all, func(l ServerLogin) bool { return l.Server == server.Server }) {
				continue
			}
			var unread error
			value := func(name string) (text string) {
				text, unread = valueOf(a.Tools.Secrets[name], a.Dir, o.getenv())
				return text
			}
			l, err := o.serverLogin(server, a, value)
			if err = cmp.Or(err, unread); err != nil {
				return nil, fmt.Errorf("launch: the login at the MCP server %s: %w", server.Server, err)
			}
			all = append(all, l)
		}
	}
	return all, nil
}

// LoginAt returns the login at one MCP server of a file.
func LoginAt(f File, o Options, server string) (ServerLogin, error) {
	all, err := Logins(f, o)
	if err != nil {
		return ServerLogin{}, err
	}
	i := slices.IndexFunc(all, func(l ServerLogin) bool { return l.Server == server })
	if i < 0 {
		return ServerLogin{}, fmt.Errorf("%s has no MCP server %s with a login; add 'oauth: {}' to a server that wants one", filepath.Base(f.Path), server)
	}
	return all[i], nil
}

// workers returns the agents that do the work of a file.
func workers(f File, o Options) ([]*spec.Agent, error) {
	uses := map[string]*spec.Agent{}
	switch heading := spec.ParseHeading(f.Text); {
	case WorkflowFiles().Recognises(heading):
		w, err := parseWorkflow(f, o)
		if err != nil {
			return nil, err
		}
		uses = w.Uses
	case GoalFiles().Recognises(heading):
		g, err := parseGoal(f, o)
		if err != nil {
			return nil, err
		}
		uses = g.Uses
	default:
		a, err := parseWorker(f, o)
		if err != nil {
			return nil, err
		}
		uses[""] = a
	}
	var all []*spec.Agent
	for _, name := range slices.Sorted(maps.Keys(uses)) {
		all = append(all, uses[name])
	}
	return all, nil
}
