package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/internal/files/kinds"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/files/servers"
	"github.com/pawlrun/pawl/internal/host/login"
	"github.com/pawlrun/pawl/internal/host/secret"
)

// maxTokens bounds the tokens that a process remembers.
const maxTokens = 16

// tokenName stands in the place of a token of a login.
const tokenName = "MCP_LOGIN"

// redactors are those of a process. They learn the tokens that its runs renew.
type redactors struct {
	mu  sync.Mutex
	all []*secret.Redactor
	// learned are the newest of those tokens, for a redactor that is made later.
	learned []secret.Secret
}

// add returns a redactor of secrets and of the tokens of the user's logins.
func (r *redactors) add(secrets []secret.Secret) *secret.Redactor {
	one := secret.NewLearner(secrets...)
	if dir, err := login.Dir(); err == nil {
		for _, token := range login.Tokens(dir) {
			one.Learn(secret.Secret{Name: tokenName, Value: token})
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	one.Learn(r.learned...)
	r.all = append(r.all, one)
	return one
}

func (r *redactors) learn(token string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := secret.Secret{Name: tokenName, Value: token}
	if slices.ContainsFunc(r.learned, func(other secret.Secret) bool { return other.Value == token }) {
		return
	}
	r.learned = append(r.learned, s)
	r.learned = r.learned[max(0, len(r.learned)-maxTokens):]
	for _, one := range r.all {
		one.Learn(s)
	}
}

func (a *app) mcpLoginCommand() *cobra.Command {
	var noBrowser bool
	var scopes []string
	c := &cobra.Command{
		Use:   "login FILE SERVER",
		Short: "Log in at an MCP server of a file",
		Long: `Logs in at an MCP server that a file gives the key oauth (OAuth 2.1). The browser opens the page on which you agree, and
comes back to a port of this machine. The tokens are kept in your configuration directory, in a file that only you can
read, for all runs and files that name the server's URL. A run renews them; it parks, or does not start, where
a new login is needed, and prints this command.

With --no-browser open the page yourself, on any machine. If that browser cannot reach this one, paste the
address of the page that it ends on, which begins with http://127.0.0.1.`,
		Example: "  pawl mcp login agent.yaml github\n  pawl mcp login agent.yaml github --no-browser\n  pawl mcp login agent.yaml github --scope issues:write",
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			l, err := a.loginAt(c.Context(), args)
			if err != nil {
				return err
			}
			l.Further = scopes
			open := func(page string) error {
				fmt.Fprintf(a.err, "agree on this page: %s\n", harmless(page))
				if noBrowser {
					return nil
				}
				if err := openInBrowser(c.Context(), page); err != nil {
					fmt.Fprintf(a.err, "pawl: warning: %v\n", err)
				}
				return nil
			}
			if noBrowser {
				fmt.Fprintln(a.err, "Paste the address that the browser ends on, if it shows an error there.")
				l.Paste = a.pasted
			}
			if err := l.Begin(c.Context(), open); err != nil {
				return failure(errors.New(harmless(err.Error())))
			}
			return a.printf("logged in at %s\n", harmless(l.URL))
		},
	}
	c.Flags().BoolVar(&noBrowser, "no-browser", false, "open no browser, and take the address that it ends on from stdin")
	c.Flags().StringArrayVar(&scopes, "scope", nil, "ask for a further `SCOPE`; may be repeated")
	return c
}

func (a *app) mcpLogoutCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "logout FILE SERVER",
		Short:   "Forget the login at an MCP server of a file",
		Long:    `Removes the tokens of a login from this machine, and asks the authorization server to revoke them where it can.`,
		Example: "  pawl mcp logout agent.yaml github",
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			l, err := a.loginAt(c.Context(), args)
			if err != nil {
				return err
			}
			was, err := l.Forget(c.Context())
			switch {
			case err != nil && was:
				fmt.Fprintf(a.err, "pawl: warning: %s\n", harmless(err.Error()))
			case err != nil:
				return failure(err)
			case !was:
				return a.printf("there was no login at %s\n", harmless(l.URL))
			}
			return a.printf("logged out at %s\n", harmless(l.URL))
		},
	}
}

// loginAt returns the login at an MCP server of a file.
func (a *app) loginAt(ctx context.Context, args []string) (servers.Login, error) {
	host, _, err := a.host(ctx)
	if err != nil {
		return servers.Login{}, err
	}
	f, err := kinds.Read(args[0])
	if err != nil {
		return servers.Login{}, fileError(args[:1], err)
	}
	logins, err := launch.Logins(f.File, launch.Options{Host: host})
	if err != nil {
		return servers.Login{}, a.cannotCall(f, err, false)
	}
	i := slices.IndexFunc(logins, func(l servers.Login) bool { return l.Server == args[1] })
	if i < 0 {
		return servers.Login{}, usagef("%s has no MCP server %s with a login; add 'oauth: {}' to a server that wants one", filepath.Base(f.Path), args[1])
	}
	return logins[i], nil
}

// pasted reads a line of stdin. If there is none, it waits for the browser.
func (a *app) pasted(ctx context.Context) (string, error) {
	line, err := bufio.NewReader(a.in).ReadString('\n')
	if line == "" && errors.Is(err, io.EOF) {
		<-ctx.Done()
		return "", ctx.Err()
	}
	return line, nil
}

// loginHealth reports which logins at the MCP servers of a file are missing.
func loginHealth(f kinds.File, o launch.Options) []finding {
	logins, err := launch.Logins(f.File, o)
	if err != nil {
		return nil // programHealth reports a file with errors
	}
	var all []finding
	for _, l := range logins {
		found := finding{Name: "login", Health: healthOK, Detail: fmt.Sprintf("%s: there is a login at the MCP server %s", f.Path, l.Server)}
		if err := l.There(); err != nil {
			found.Health, found.Detail, found.Help = healthBroken, fmt.Sprintf("%s: the MCP server %s: %v", f.Path, l.Server, err), l.Command
		}
		all = append(all, found)
	}
	return all
}
