package cli

import (
	"context"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/journal/sqlite"
)

// otherProgram is a program that opens journals at shelf://NAME, files of a
// directory that only its opener knows, and has a command of its own.
func otherProgram() {
	open := func(ctx context.Context, at string, use Use) (Opened, error) {
		if use.Create {
			if err := os.MkdirAll("shelf", 0o700); err != nil {
				return Opened{}, err
			}
		}
		s, err := sqlite.Open(ctx, "shelf/"+strings.TrimPrefix(at, "shelf://"), sqlite.Options{ReadOnly: use.ReadOnly})
		if err != nil {
			return Opened{}, err
		}
		return Opened{Store: s, Secrets: []secret.Secret{{Name: "SHELF", Value: "the key of the shelf"}}}, nil
	}
	newest := func(e Environment) *cobra.Command {
		return &cobra.Command{
			Use: "newest", Short: "Print the newest position", Args: cobra.NoArgs,
			RunE: func(c *cobra.Command, _ []string) error {
				s, err := e.Open(c.Context(), e.Journal(), Use{ReadOnly: true})
				if err != nil {
					return err
				}
				defer s.Close()
				last, err := s.Last(c.Context())
				if err != nil {
					return err
				}
				return e.Printf("%d\n", last)
			},
		}
	}
	os.Exit(Main(Build{
		Version: "shelf 1", Journals: map[string]OpenJournal{"shelf": open},
		Commands: []func(Environment) *cobra.Command{newest},
	}))
}
