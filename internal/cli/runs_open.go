package cli

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/internal/host/tokens"
	"github.com/pawlrun/pawl/journal"
)

// pageCommand opens the page of a run that a server of the journal shows.
func (a *app) pageCommand() *cobra.Command {
	var addr string
	c := &cobra.Command{
		Use:   "open RUN",
		Short: "Open the page of a run in the browser",
		Long: `Prints the address of a run's page, and opens it in the browser. It needs a server of this journal that was started
without a file of tokens and is running. The address has the token of that server after #: do not pass it on.`,
		Example: "  pawl serve &\n  pawl runs open k7x2\n  pawl runs open k7x2 --addr 127.0.0.1:8080",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.tokensByPerson(c.Context()); err != nil {
				return err
			}
			return a.withRun(c.Context(), toRead, args[0], func(_ *session, r journal.Run) error {
				s, err := a.startedServer(addr)
				if err != nil {
					return err
				}
				page, err := pageOfServer(s)
				if err != nil {
					return err
				}
				page += "#" + s.Token + "/runs/" + r.ID
				if err := a.printf("%s\n", page); err != nil {
					return err
				}
				// The file that leads the browser there is beside the token, and goes with it.
				if _, err := a.openPage(c.Context(), page); err != nil {
					fmt.Fprintln(a.err, "warning:", err)
				}
				return nil
			})
		},
	}
	c.Flags().StringVar(&addr, "addr", "", "address of the server, where the journal has several")
	return c
}

// pageOfServer returns the address of a started server's page.
func pageOfServer(s tokens.Started) (string, error) {
	at, err := netip.ParseAddrPort(s.Addr)
	if err != nil {
		return "", fmt.Errorf("the address of the server is %q: %w", s.Addr, err)
	}
	scheme := "http"
	if s.TLS {
		scheme = "https"
	}
	return pageOf(scheme, net.TCPAddrFromAddrPort(at)), nil
}

// showAddress prints the address of a run's page if a server of the journal is up. It
// is without the server's token, because this output may be kept in a log.
func (a *app) showAddress(run string) {
	dir, err := a.startedDir()
	if err != nil {
		return
	}
	if all, err := tokens.ReadStarted(dir); err == nil && len(all) > 0 {
		if page, err := pageOfServer(all[0]); err == nil {
			fmt.Fprintf(a.err, "page: %s#/runs/%s\n", page, run)
		}
	}
}
