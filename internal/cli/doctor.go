package cli

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/internal/files/kinds"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/host/sandbox"
)

// health is the state of one thing.
type health string

const (
	healthOK health = "ok"
	// healthLacks: Pawl works, but without some features.
	healthLacks health = "warn"
	// healthBroken: runs will fail until it is fixed.
	healthBroken health = "fail"
)

// finding is the doctor's result about one thing.
type finding struct {
	Name   string `json:"name"`
	Health health `json:"health"`
	Detail string `json:"detail"`
	// Help is what to do about it.
	Help string `json:"help,omitempty"`
}

// diagnosis is the doctor's whole result.
type diagnosis struct {
	// OK: everything that is required works.
	OK       bool              `json:"ok"`
	Version  build             `json:"version"`
	Findings []finding         `json:"findings"`
	Sandbox  []sandbox.Finding `json:"sandbox"`
	// Permissions lists what agent files may demand here.
	Permissions []permission `json:"permissions"`
}

func (a *app) doctorCommand() *cobra.Command {
	var asJSON bool
	var temporal string
	c := &cobra.Command{
		Use:   "doctor [FILE...]",
		Short: "Check what this machine supports",
		Long: `Checks what this machine supports: whether the journal can be written and how long a durable write
takes, which sandbox the commands of a run get and why no stronger one, which models can be called, and
what else runs need. Each check does the real thing and leaves nothing behind. The exit code is 0 when
nothing required is broken, else 1. Of each FILE it names the programs that are not on this machine: those
of MCP servers, of tools.commands and of hooks, and the logins that are missing. It starts none of them.

$PAWL_SANDBOX names the strongest sandbox that runs may use: bubblewrap, namespaces, landlock or none.`,
		Example: "  pawl doctor\n  pawl doctor agent.yaml\n  pawl doctor --json\n  pawl doctor --journal /srv/agents/journal.db",
		Args:    cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, files []string) error {
			d, err := a.diagnose(c.Context(), files, temporal)
			if err != nil {
				return err
			}
			err = a.show(asJSON, d, func() error { return a.printDiagnosis(d) })
			if err == nil && !d.OK {
				return &exitError{code: exitFailed}
			}
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	c.Flags().StringVar(&temporal, "temporal", "", "HOST:PORT of a Temporal server, which is checked too")
	c.Flags().Lookup("temporal").Hidden = a.build.Examine == nil
	return c
}

func (a *app) diagnose(ctx context.Context, files []string, temporal string) (diagnosis, error) {
	d := diagnosis{OK: true, Version: thisBuild(a.build.Version)}
	machine, err := a.sandbox(ctx)
	if err != nil {
		return d, err
	}
	if err := a.placeJournal(machine); err != nil {
		return d, err
	}
	d.Permissions = permissions(machine.Tier())
	d.Sandbox = sandbox.Detect(ctx, a.shim).Findings()
	d.Findings = append(d.Findings, a.journalHealth(ctx), sandboxHealth(machine), a.configHealth(), a.modelHealth(), a.terminalHealth(), gitHealth(ctx), a.clockHealth(), serverHealth())
	if temporal != "" {
		d.Findings = append(d.Findings, a.temporalHealth(ctx, temporal))
	}
	host, _, err := a.host(ctx)
	if err != nil && len(files) > 0 {
		return d, err
	}
	for _, path := range files {
		f, err := kinds.Read(path)
		if err != nil {
			return d, fileError([]string{path}, err)
		}
		d.Findings = append(d.Findings, programHealth(f, launch.Options{Host: host}))
		d.Findings = append(d.Findings, loginHealth(f, launch.Options{Host: host})...)
	}
	for _, f := range d.Findings {
		d.OK = d.OK && f.Health != healthBroken
	}
	return d, nil
}

func (a *app) printDiagnosis(d diagnosis) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", d.Version)
	marks := map[health]note{healthOK: {green, "✓"}, healthLacks: {yellow, "!"}, healthBroken: {red, "✗"}}
	s := screenOf(a.out, os.Getenv)
	for _, f := range d.Findings {
		mark := marks[f.Health]
		fmt.Fprintf(&b, "%s %-9s %s\n", s.paint(mark.style, mark.text), f.Name, f.Detail)
		if f.Help != "" {
			fmt.Fprintf(&b, "%12s%s\n", "", f.Help)
		}
	}
	b.WriteString("\nsandbox tiers, the strongest first:\n")
	for _, f := range d.Sandbox {
		b.WriteString(tierLine(f))
	}
	b.WriteString(permissionLines(d.Permissions))
	return a.printf("%s", b.String())
}

func tierLine(f sandbox.Finding) string {
	switch {
	case f.Tier == sandbox.None && f.Why != "":
		return fmt.Sprintf("  none        commands run with your permissions, and background processes are not ended: there is no supervisor (%s)\n", f.Why)
	case f.Tier == sandbox.None:
		return "  none        commands run with your permissions: a hostile one can escape, kill its run and approve calls;\n" +
			"              so a command asks unless it is known only to read or edit, or the file has tools.approvals: {shell.exec: never}\n"
	case f.Works:
		return fmt.Sprintf("  %-11s works, a command starts in %d ms\n", f.Tier, f.StartMs)
	}
	line := fmt.Sprintf("  %-11s does not work: %s\n", f.Tier, f.Why)
	if f.Help != "" {
		line += fmt.Sprintf("%14s%s\n", "", f.Help)
	}
	return line
}

// sandboxHealth reports which sandbox runs get.
func sandboxHealth(m *sandbox.Machine) finding {
	f := finding{Name: "sandbox", Health: healthOK, Detail: "commands run in " + string(m.Tier())}
	if m.Tier().AtLeast(sandbox.Namespaces) {
		return f
	}
	f.Health, f.Detail = healthLacks, f.Detail+" ("+m.Why()+")"
	for _, found := range m.Findings() {
		if found.Help != "" {
			f.Help = found.Help
			break
		}
	}
	return f
}
