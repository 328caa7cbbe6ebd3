package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/internal/host/tokens"
	"github.com/pawlrun/pawl/internal/rules/access"
	"github.com/pawlrun/pawl/internal/server"
)

// tokensFile is the file of tokens beside the journal.
func (a *app) tokensFile() string { return filepath.Join(a.beside(), "tokens.yaml") }

func (a *app) tokenCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "token",
		Short: "Show, make, list and revoke the tokens of 'pawl serve'",
		Long: `A token says who asks a server, and in which role. A viewer reads runs. An editor also starts runs of the
files that the server has, and decides about them. An admin also sends files, which may allow a run everything.
The file holds hashes; 'pawl serve' takes changes of it at once. Without a file 'pawl serve' makes one token for
each start, an admin's, which 'pawl token show' prints.`,
		Args: cobra.NoArgs,
	}
	var file string
	c.PersistentFlags().StringVar(&file, "tokens", "", "file of the tokens (tokens.yaml beside the journal)")
	path := func() string { return cmp.Or(file, a.tokensFile()) }
	c.AddCommand(a.tokenShow(), a.tokenCreate(path), a.tokenList(path), a.tokenRevoke(path))
	return c
}

func (a *app) tokenCreate(path func() string) *cobra.Command {
	var role, expires, tenant string
	var budget tokens.Budget
	var placing tokens.Placing
	c := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a token and print it, once",
		Long: `Makes a token and prints it, once. With --usd and --per the runs that the token starts, and all runs below them, spend no
more than that in a day or a month (UTC). Then a start is refused with 402, and a run that needs another model call ends with the
reason tenant-budget-exhausted. Tokens with the same --tenant share one budget. Change it in the file; the server reads it at once.`,
		Example: "  pawl token create ann --role editor --expires 30d\n  pawl token create bot --role editor --tenant team-a --usd 20 --per day",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.tokensByPerson(c.Context()); err != nil {
				return err
			}
			e := tokens.Entry{Name: args[0], Role: access.Role(role), Tenant: tenant, MaxRunning: placing.MaxRunning, Weight: placing.Weight}
			if c.Flags().Changed("usd") {
				e.Budget = &budget
			} else if c.Flags().Changed("per") || budget.Soft {
				return usagef("--per and --soft belong to a budget; give it with --usd")
			}
			if expires != "" {
				age, err := parseAge(expires)
				if err != nil {
					return err
				}
				at := time.Now().Add(age).UTC().Truncate(time.Second)
				e.Expires = &at
			}
			if err := os.MkdirAll(filepath.Dir(path()), 0o700); err != nil {
				return err
			}
			token, err := tokens.Create(path(), e)
			if err != nil {
				return usageError(err)
			}
			if err := a.audit(c.Context(), "token create "+e.Name+" --role "+string(e.Role)); err != nil {
				return err
			}
			fmt.Fprintf(a.err, "The token of %s (%s) is in %s as a hash; it is shown only here:\n", e.Name, e.Role, path())
			return a.printf("%s\n", token)
		},
	}
	c.Flags().StringVar(&role, "role", string(access.Viewer), "viewer, editor or admin")
	c.Flags().StringVar(&tenant, "tenant", "", "`NAME` of the tenant whose budget the token shares; without, the token alone")
	c.Flags().Float64Var(&budget.USD, "usd", 0, "what the runs of the tenant may spend in a period, in USD")
	c.Flags().StringVar(&budget.Per, "per", "day", "the period of --usd: day or month")
	c.Flags().BoolVar(&budget.Soft, "soft", false, "count what is spent and refuse nothing")
	c.Flags().IntVar(&placing.MaxRunning, "max-running", 0, "with 'serve --temporal', how many runs of the tenant are driven at once; 0 for any number")
	c.Flags().Float64Var(&placing.Weight, "weight", 0, "with 'serve --temporal', the tenant's share of the workers beside other tenants (default 1)")
	c.Flags().StringVar(&expires, "expires", "", "for how long it counts, like 30d or 12h; without, until it is revoked")
	return c
}

func (a *app) tokenList(path func() string) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "list",
		Short:   "List the tokens, without what they are",
		Example: `  pawl token list --json`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			all, err := tokens.Read(path())
			if err != nil {
				return usageError(err)
			}
			if asJSON {
				return a.printJSON(map[string][]tokens.Entry{"tokens": append([]tokens.Entry{}, all...)})
			}
			w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
			for _, e := range all {
				until := "until it is revoked"
				if e.Expires != nil {
					until = "until " + clock(*e.Expires)
				}
				if e.Expired(time.Now()) {
					until = "expired"
				}
				spends := ""
				if b := e.Spending(); b != nil {
					spends = fmt.Sprintf("%s: $%g a %s", b.Tenant, b.USD, b.Per)
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", e.Name, e.Role, until, spends)
			}
			return w.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

func (a *app) tokenRevoke(path func() string) *cobra.Command {
	return &cobra.Command{
		Use:     "revoke NAME",
		Short:   "Make a token count no more, also for what is open with it",
		Example: "  pawl token revoke ann",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.tokensByPerson(c.Context()); err != nil {
				return err
			}
			if err := tokens.Revoke(path(), args[0]); err != nil {
				return usageError(err)
			}
			if err := a.audit(c.Context(), "token revoke "+args[0]); err != nil {
				return err
			}
			return a.printf("the token of %s is revoked\n", args[0])
		},
	}
}

// audit records in the journal, if there is one, what the user did outside a run.
func (a *app) audit(ctx context.Context, operation string) error {
	if a.noJournal() {
		return nil
	}
	s, err := a.open(ctx, toWrite)
	if err != nil {
		return err
	}
	defer s.close()
	return server.Audit{Principal: itsUser(), Operation: operation}.Keep(ctx, s.store)
}

// tokensByPerson rejects a process that a run has started.
func (a *app) tokensByPerson(ctx context.Context) error {
	if a.noJournal() {
		return nil // there is no run
	}
	s, err := a.open(ctx, toRead)
	if err != nil {
		return err
	}
	defer s.close()
	return s.notOfRun(ctx, "a run cannot give or take rights; a person must")
}
