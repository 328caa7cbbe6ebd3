package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/journal"
)

func (a *app) verifyCommand() *cobra.Command {
	var asJSON, all bool
	var head string
	c := &cobra.Command{
		Use:   "verify RUN | --all",
		Short: "Verify the journal checksum of a run",
		Long: `Recomputes the hash chain over a run's events and the digests of stored results and attachments. This
finds damage and simple edits. The runs below it are checked too. With --head, the journal checksum that was printed at the end of the run,
it also finds a rewritten journal. With --all it checks every run and the journal file itself.`,
		Example: "  pawl runs verify k7x2 --head 3f0c…\n  pawl runs verify --all",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case all && len(args) > 0, !all && len(args) == 0:
				return usagef("name one run, or --all of them")
			case all && head != "":
				return usagef("--head is the hash of one run and cannot go with --all")
			case head != "" && !isHash(head):
				return usagef("--head is %q; it must be 32 hex digits, as a run prints them at its end", head)
			}
			return a.verify(c.Context(), args, head, asJSON)
		},
	}
	c.Flags().BoolVar(&all, "all", false, "check every run of the journal")
	c.Flags().StringVar(&head, "head", "", "the journal checksum that a run printed at its end")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

// isHash reports whether a text has the form of [event.Hash].
func isHash(s string) bool {
	return len(s) == len(event.Hash(nil)) && strings.Trim(s, "0123456789abcdef") == ""
}

func (a *app) verify(ctx context.Context, args []string, head string, asJSON bool) error {
	s, err := a.open(ctx, toRead)
	if err != nil {
		return err
	}
	defer s.close()
	var results []control.Verified
	problem := ""
	if len(args) == 0 {
		results, err = s.verifyAll(ctx)
		unlisted := control.Damaged(err)
		if err == nil || unlisted {
			listing := err
			if problem, err = s.checkFile(ctx); err == nil && problem == "" && unlisted {
				problem = control.Plain(listing)
			}
		}
	} else {
		r, found := s.find(ctx, args[0])
		if found != nil {
			return found
		}
		results = make([]control.Verified, 1)
		results[0], err = s.controller.Verify(ctx, r.ID, head)
	}
	if err != nil {
		return err
	}
	if err := a.printVerified(results, problem, len(args) == 0, asJSON); err != nil {
		return err
	}
	unsound := func(v control.Verified) bool { return !v.OK }
	if slices.ContainsFunc(results, unsound) || problem != "" {
		return &exitError{code: exitFailed}
	}
	return nil
}

// verifyAll skips runs that are removed while it reads.
func (s *session) verifyAll(ctx context.Context) ([]control.Verified, error) {
	rows, err := s.store.Runs(ctx, journal.Filter{})
	if err != nil {
		return nil, err
	}
	results := make([]control.Verified, 0, len(rows))
	for _, r := range rows {
		v, err := s.controller.VerifyOne(ctx, r.ID, "")
		switch {
		case errors.Is(err, journal.ErrNotFound):
		case err != nil:
			return nil, err
		default:
			results = append(results, v)
		}
	}
	return results, nil
}

// checkFile returns what is wrong with the file itself, "" for nothing.
func (s *session) checkFile(ctx context.Context) (string, error) {
	file, ok := s.store.(interface{ Check(context.Context) error })
	if !ok {
		return "", nil
	}
	err := file.Check(ctx)
	if control.Damaged(err) {
		return control.Plain(err), nil
	}
	return "", err
}

func (a *app) printVerified(results []control.Verified, problem string, many, asJSON bool) error {
	if asJSON && many {
		return a.printJSON(struct {
			Items []control.Verified `json:"items"`
			// Problem is what is wrong with the file itself.
			Problem string `json:"problem,omitempty"`
		}{results, problem})
	}
	for _, v := range results {
		var err error
		switch {
		case asJSON:
			err = a.printJSON(v)
		case v.Problem == "":
			err = a.printf("%s: journal checksum ok, %s%s, head %s%s\n", v.Run, plural(int(v.Events), "event"), contents(v.Blobs), v.Head, alsoBelow(v.Below-len(v.Unsound)))
		default:
			err = a.printf("%s: journal checksum does NOT match: %s\n", v.Run, v.Problem)
		}
		for _, below := range v.Unsound {
			if err == nil && !asJSON {
				err = a.printf("%s: journal checksum does NOT match: %s\n", below.Run, below.Problem)
			}
		}
		if err != nil {
			return err
		}
	}
	if problem != "" {
		return a.printf("%s: %s; what 'pawl runs show' can still read, 'pawl runs export' saves\n", a.journalPath, problem)
	}
	return nil
}

// alsoBelow returns a note about the checked descendants, "" if there are none.
func alsoBelow(n int) string {
	if n == 0 {
		return ""
	}
	return " (and " + plural(n, "run") + " below it)"
}

// contents returns a note about the checked results and attachments, "" if there are
// none.
func contents(n int) string {
	if n == 0 {
		return ""
	}
	return ", " + plural(n, "stored content")
}
