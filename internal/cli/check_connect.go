package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/internal/files/kinds"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/files/servers"
)

// connectServers prints what the MCP servers of a file offer. It fails if one of them
// cannot be used.
func (a *app) connectServers(ctx context.Context, files []string, o launch.Options, asJSON bool) error {
	if len(files) != 1 {
		return usagef("--connect takes one file")
	}
	f, err := kinds.Read(files[0])
	if err != nil {
		return usagef("%v", err)
	}
	found, warnings, err := launch.ConnectServers(ctx, f.File, o)
	if err != nil {
		return a.cannotCall(f, err, asJSON)
	}
	broken := false
	for _, s := range found {
		broken = broken || s.Broken()
	}
	if asJSON {
		err = a.printJSON(struct {
			OK       bool             `json:"ok"`
			Servers  []servers.Report `json:"servers"`
			Warnings []string         `json:"warnings"`
		}{!broken, found, append([]string{}, warnings...)})
	} else {
		err = a.printf("%s", harmless(reportOfServers(found, warnings)))
	}
	if err == nil && broken {
		err = withCode(exitFailed)
	}
	return err
}

func (a *app) mcpPinCommand() *cobra.Command {
	var workspace string
	c := &cobra.Command{
		Use:   "pin FILE [SERVER]",
		Short: "Write down what the tools of an agent file's MCP servers are",
		Long: `Starts the MCP servers of an agent file and writes what each is, and its tools with their definitions, into the file
that its key pins names. From then on a run of the agent does not start if anything of it is different. Read the file
before you commit it: it is what the model is shown.`,
		Example: "  pawl mcp pin agent.yaml\n  pawl mcp pin agent.yaml github",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			host, _, err := a.host(c.Context())
			if err != nil {
				return err
			}
			f, err := kinds.Read(args[0])
			if err != nil {
				return fileError(args, err)
			}
			o := launch.Options{Flags: launch.Flags{Workspace: workspace}, Host: host}
			found, warnings, err := launch.ConnectServers(c.Context(), f.File, o)
			for _, w := range warnings {
				fmt.Fprintf(a.err, "pawl: %s\n", harmless(w))
			}
			if err != nil {
				return a.cannotCall(f, err, false)
			}
			written, err := servers.WritePins(found, f.Path, strings.Join(args[1:], ""))
			if err != nil {
				return a.cannotCall(f, err, false)
			}
			return a.printf("%s\n", harmless(strings.Join(written, "\n")))
		},
	}
	c.Flags().StringVar(&workspace, "workspace", ".", "directory that the servers work in")
	return c
}

func reportOfServers(found []servers.Report, warnings []string) string {
	var b strings.Builder
	if len(found) == 0 {
		b.WriteString("the file has no MCP servers\n")
	}
	for _, s := range found {
		if s.Problem != "" {
			fmt.Fprintf(&b, "%s\n", s.Problem)
			continue
		}
		if s.Different != "" {
			fmt.Fprintf(&b, "%s\n", s.Different)
		}
		fmt.Fprintf(&b, "%s  %s %s, MCP %s\n", s.Server, s.Name, s.Version, s.Protocol)
		for _, t := range s.Offered {
			fmt.Fprintf(&b, "  %s  %s, risk %s, %s, about %d tokens", t.Name, t.Effect, t.Risk, cmp.Or(labelNames(t.Labels), "no labels"), t.Tokens)
			if t.Hints != "" {
				fmt.Fprintf(&b, " (the server says %s)", t.Hints)
			}
			b.WriteString("\n")
		}
		if s.Sampling != "" {
			fmt.Fprintf(&b, "  sampling: answered by %s\n", s.Sampling)
		}
		if len(s.Refused) > 0 {
			fmt.Fprintf(&b, "  not allowed by the file: %s\n", strings.Join(s.Refused, ", "))
		}
	}
	for _, w := range warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	return b.String()
}
