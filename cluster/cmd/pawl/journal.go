package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/cluster/internal/transfer"
	"github.com/pawlrun/pawl/cluster/journal/postgres"
	"github.com/pawlrun/pawl/internal/cli"
	"github.com/pawlrun/pawl/internal/host/published"
)

func journalCommand(e cli.Environment) *cobra.Command {
	c := &cobra.Command{
		Use:   "journal",
		Short: "Migrate a journal on PostgreSQL, copy runs into it, or publish files in it",
		Args:  cobra.NoArgs,
	}
	c.AddCommand(migrateCommand(e), copyCommand(e), publishCommand(e))
	return c
}

func migrateCommand(e cli.Environment) *cobra.Command {
	var dry, asJSON bool
	c := &cobra.Command{
		Use:   "migrate",
		Short: "Bring the schema of the journal to this version",
		Long: `Brings the schema of the journal to this version, in one transaction, and makes it where there is none. Stop the
processes of older versions before; they refuse the new schema when they start again.`,
		Example: "  pawl --journal postgres://pawl@db/pawl journal migrate --dry-run",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if !strings.HasPrefix(e.Journal(), "postgres") || !strings.Contains(e.Journal(), "://") {
				return cli.Usage(fmt.Errorf("%s is a file, which is migrated when it is opened; name a database with --journal postgres://USER@HOST/DATABASE", e.Journal()))
			}
			m, err := postgres.Migrate(c.Context(), e.Journal(), dry)
			switch {
			case err != nil:
				return err
			case asJSON:
				return e.Print(m)
			case len(m.Statements) == 0:
				return e.Printf("the schema has version %d; there is nothing to do\n", m.To)
			case dry:
				return e.Printf("%s\n", strings.Join(m.Statements, ";\n"))
			}
			return e.Printf("the schema went from version %d to %d\n", m.From, m.To)
		},
	}
	c.Flags().BoolVar(&dry, "dry-run", false, "print the statements and change nothing")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

func publishCommand(e cli.Environment) *cobra.Command {
	var tokens string
	var asJSON bool
	c := &cobra.Command{
		Use:   "publish [DIR]",
		Short: "Publish a directory of agent files, or tokens, for all servers of the journal",
		Long: `Publishes the files of a directory in the journal. All its servers offer those alone, within a second, and no longer
the files of their own --agents. NAME@VERSION names a version of the files or of an earlier publication. Hidden files are
left out. With --tokens it publishes a file of tokens ('pawl token create --tokens FILE' makes one), as hashes; servers
that start afterwards, without --tokens and --no-auth, accept those tokens, and take later changes at once.`,
		Example: "  pawl --journal postgres://pawl@db/pawl journal publish ./agents\n  pawl --journal postgres://pawl@db/pawl journal publish --tokens tokens.yaml",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) (err error) {
			if len(args) == 0 && tokens == "" {
				return cli.Usage(errors.New("name a directory of agent files, or a file of tokens with --tokens"))
			}
			var s published.Set
			if len(args) > 0 {
				if s.Files, err = published.Read(args[0]); err != nil {
					return cli.Usage(err)
				}
			}
			if tokens != "" {
				if s.Tokens, err = published.ReadTokens(tokens); err != nil {
					return cli.Usage(err)
				}
			}
			store, err := e.Open(c.Context(), e.Journal(), cli.Use{Create: true})
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, store.Close()) }()
			n, err := published.Publish(c.Context(), store, s)
			if err != nil {
				return err
			}
			digest, err := s.Digest()
			if err != nil {
				return err
			}
			if asJSON {
				return e.Print(map[string]any{"number": n, "files": len(s.Files), "digest": digest, "tokens": s.Tokens != ""})
			}
			if s.Files == nil {
				return e.Printf("publication %d: tokens\n", n)
			}
			return e.Printf("publication %d: %d files, %s\n", n, len(s.Files), digest[:12])
		},
	}
	c.Flags().StringVar(&tokens, "tokens", "", "file of tokens")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

func copyCommand(e cli.Environment) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "copy FROM TO",
		Short: "Copy all runs of a journal into another",
		Long: `Copies all runs of a journal into another, in whole trees: events with their hashes, contents, states and commands
that wait. No process may drive a run of FROM. A tree that TO has already is left alone, and one of which a copy
that was cut left a part is copied again. What servers keep beside the runs is not copied, and FROM stays as it is.`,
		Example: "  pawl journal copy .pawl/journal.db postgres://pawl@db/pawl",
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) (err error) {
			if args[0] == args[1] {
				return cli.Usage(errors.New("FROM and TO are the same journal"))
			}
			from, err := e.Open(c.Context(), args[0], cli.Use{ReadOnly: true})
			if err != nil {
				return err
			}
			defer from.Close()
			to, err := e.Open(c.Context(), args[1], cli.Use{Create: true})
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, to.Close()) }()
			host, _ := os.Hostname()
			done, err := transfer.Copy(c.Context(), from, to, fmt.Sprintf("pawl journal copy, process %d of %s", os.Getpid(), host))
			if err != nil {
				return err
			}
			if asJSON {
				return e.Print(done)
			}
			return e.Printf("copied %d trees with %d runs, %d events, %d contents and %d commands; %d trees were there already\n",
				done.Trees, done.Runs, done.Events, done.Blobs, done.Commands, done.Present)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}
