package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/host/tokens"
)

// startedDir returns the directory of the tokens of servers that were started
// without a file of tokens. Each journal has one, so that a command that finds the
// journal finds the token of its server.
func (a *app) startedDir() (string, error) {
	state, err := launch.StateDir()
	if err != nil {
		return "", err
	}
	journal, err := a.absoluteJournal()
	if err != nil {
		return "", err
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(journal)); err == nil {
		journal = filepath.Join(dir, filepath.Base(journal))
	}
	sum := sha256.Sum256([]byte(journal))
	return filepath.Join(state, "servers", hex.EncodeToString(sum[:8])), nil
}

// keepToken stores the token of this server where 'pawl token show' finds it, until
// release is called.
func (a *app) keepToken(s tokens.Started) (release func(), err error) {
	dir, err := a.startedDir()
	if err == nil {
		var remove func() error
		if remove, err = s.Keep(dir); err == nil {
			return func() {
				if err := remove(); err != nil {
					fmt.Fprintln(a.err, "warning: the token of this start is left behind:", err)
				}
			}, nil
		}
	}
	return nil, fmt.Errorf("%w; name a directory of yours with $XDG_STATE_HOME, or give --tokens FILE", err)
}

// tokenShow prints the token of a server of the journal.
func (a *app) tokenShow() *cobra.Command {
	var addr string
	c := &cobra.Command{
		Use:   "show",
		Short: "Print the token of a server that was started without a file of tokens",
		Long: `Prints the token of the server of this journal that was started without a file of tokens. It is an admin's, and
counts until that server stops. Name the journal as for 'pawl serve': by the directory, or with --journal.`,
		Example: `  curl -H "Authorization: Bearer $(pawl token show)" 127.0.0.1:3001/v1/runs
  pawl token show --addr 127.0.0.1:8080`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.tokensByPerson(c.Context()); err != nil {
				return err
			}
			s, err := a.startedServer(addr)
			if err != nil {
				return err
			}
			return a.printf("%s\n", s.Token)
		},
	}
	c.Flags().StringVar(&addr, "addr", "", "address of the server, where the journal has several")
	return c
}

// startedServer returns the server at an address, or the only one.
func (a *app) startedServer(addr string) (s tokens.Started, err error) {
	dir, err := a.startedDir()
	if err != nil {
		return s, usageError(err)
	}
	all, err := tokens.ReadStarted(dir)
	if err != nil {
		return s, failure(err)
	}
	if addr != "" {
		all = slices.DeleteFunc(all, func(s tokens.Started) bool { return s.Addr != addr })
	}
	switch len(all) {
	case 0:
		at := ""
		if addr != "" {
			at = " at " + addr
		}
		return s, usagef("no server of the journal %s was started without a file of tokens and is running%s; name its journal with --journal, start one with 'pawl serve', or make a token with 'pawl token create'", a.journalPath, at)
	case 1:
		return all[0], nil
	}
	var addrs []string
	for _, s := range all {
		addrs = append(addrs, s.Addr)
	}
	return s, usagef("the journal %s has several servers; name one with --addr: %s", a.journalPath, strings.Join(addrs, ", "))
}

// openPage opens a page whose address contains a token in the browser. Other
// processes can read a program's arguments, so the browser receives a file that
// redirects to the page.
func (a *app) openPage(ctx context.Context, page string) (forget func(), err error) {
	dir, err := a.startedDir()
	if err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(dir, "page-*.html")
	if err != nil {
		return nil, err
	}
	forget = func() { _ = os.Remove(f.Name()) }
	_, err = fmt.Fprintf(f, "<!doctype html><meta charset=utf-8><title>Pawl</title><meta http-equiv=refresh content=\"0; url=%s\">\n", html.EscapeString(page))
	if err = errors.Join(err, f.Close()); err == nil {
		err = openInBrowser(ctx, "file://"+f.Name())
	}
	if err != nil {
		forget()
		return nil, err
	}
	return forget, nil
}
