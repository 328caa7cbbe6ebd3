package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/journal"
)

// exported is what export prints about the file that it wrote.
type exported struct {
	Run  string `json:"run"`
	File string `json:"file"`
	journal.Exported
}

func (a *app) exportCommand() *cobra.Command {
	var out string
	var asJSON, asCase bool
	c := &cobra.Command{
		Use:   "export RUN",
		Short: "Export a run to one file",
		Long: `Writes a run as JSON lines, with the runs that it started and the runs that it is a fork of: their
events as they are stored, with their hash chain, and the contents that the events refer to.
'pawl runs verify' checks a run in its journal.`,
		Example: "  pawl runs export k7x2 --out run.jsonl\n  pawl runs export k7x2 | gzip > run.jsonl.gz\n  pawl runs export k7x2 --eval --out suite.yaml",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if asJSON && out == "" {
				return usagef("--json needs --out: without it the export itself is on stdout")
			}
			return a.withRun(c.Context(), toRead, args[0], func(s *session, r journal.Run) error {
				if asCase {
					return s.exportCase(c.Context(), r, out)
				}
				return s.export(c.Context(), r, out, asJSON)
			})
		},
	}
	c.Flags().StringVar(&out, "out", "", "the file to write; it must not exist yet (default: stdout)")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object about the file")
	c.Flags().BoolVar(&asCase, "eval", false, "write a suite for 'pawl eval' instead, whose case is this run")
	c.MarkFlagsMutuallyExclusive("json", "eval")
	return c
}

func (s *session) export(ctx context.Context, r journal.Run, path string, asJSON bool) error {
	if path == "" {
		_, err := s.exportTo(ctx, r, s.app.out)
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return usagef("--out: %w", err)
	}
	got, err := s.exportTo(ctx, r, f)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(path)) // half an export is useless
	}
	if asJSON {
		return s.app.printJSON(exported{Run: r.ID, File: path, Exported: got})
	}
	return s.app.printf("%s: %s, %s, %s\n", path, plural(got.Runs, "run"), plural(got.Events, "event"), plural(got.Blobs, "blob"))
}

func (s *session) exportTo(ctx context.Context, r journal.Run, w io.Writer) (journal.Exported, error) {
	b := bufio.NewWriter(w)
	got, err := journal.Export(ctx, s.store, r.ID, b)
	if err == nil {
		err = b.Flush()
	}
	if err != nil {
		return got, fmt.Errorf("export run %s: %w", r.ID, err)
	}
	return got, nil
}
