package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/host/attach"
	"github.com/pawlrun/pawl/journal"
)

func (a *app) inputCommand() *cobra.Command {
	var f verbFlags
	var files []string
	c := &cobra.Command{
		Use:   "input RUN [TEXT]",
		Short: "Send a message to a run",
		Long: `Sends a message to a run: text, files, or both. The run reads it before its next model call. TEXT may
be "-" for stdin. A file that the run's model is known not to accept is refused.`,
		Example: `  pawl runs input k7x2 "Leave the tests alone"
  pawl runs input k7x2 "Yes, use port 8080" --resume
  pawl runs input k7x2 "It looks like this" --attach screenshot.png`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			message, err := a.message(args[1:], files)
			if err != nil {
				return err
			}
			return a.withOpenRun(c.Context(), args[0], func(s *session, r journal.Run) error {
				if err := s.readable(c.Context(), r, message); err != nil {
					return err
				}
				return s.deliverAndResume(c.Context(), r, message, f)
			})
		},
	}
	attachFlag(c, &files, "give an image, a PDF or a text `FILE` with the message (may be repeated)")
	f.resumable(c, &a.recordPath)
	return c
}

func attachFlag(c *cobra.Command, files *[]string, usage string) {
	c.Flags().StringArrayVar(files, "attach", nil, usage)
}

// message returns the command with the message of the command line.
func (a *app) message(text, files []string) (journal.Command, error) {
	c := journal.Command{Kind: journal.Input}
	var err error
	if c.Media, err = attach.Files(files...); err != nil {
		return c, usageError(err)
	}
	if c.Text, err = a.input("TEXT", text); err != nil {
		return c, err
	}
	switch {
	case strings.TrimSpace(c.Text) != "":
	case len(text) > 0:
		return c, usagef("TEXT is empty")
	case len(files) == 0:
		return c, usagef("there is no message: give TEXT, or a file with --attach")
	}
	return c, nil
}

// readable rejects files that the run's models do not accept.
func (s *session) readable(ctx context.Context, r journal.Run, message journal.Command) error {
	if len(message.Media) == 0 {
		return nil
	}
	config, err := s.app.config()
	if err != nil {
		return err
	}
	m, err := s.engine.Inspect(ctx, r.ID)
	if err != nil {
		return err
	}
	if err := launch.Readable(m, message.Media, launch.Options{Host: launch.Host{Config: config}}); err != nil {
		return usageError(err)
	}
	return nil
}
