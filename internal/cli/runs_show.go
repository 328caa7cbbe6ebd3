package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
)

func (a *app) showCommand() *cobra.Command {
	var asJSON, extract bool
	var compression int64
	var step string
	c := &cobra.Command{
		Use:   "show RUN",
		Short: "Show the state, outcome, cost and cycles of a run",
		Long: `Shows a run: its state, outcome, cost, each cycle, and where its history was compressed.
With --compression it shows one compression: which messages were removed, which were kept, and what
replaced them. A fork before that event has all messages.
With --extract it prints what evaluators see of an ended run, as JSON: text, finalToolResult, cycles
and terminatedBy.
With --step it shows one step of a workflow: how it ended, its command or run, and all of its output.`,
		Example: "  pawl runs show k7x2\n  pawl runs show k7x2 --step 'check[3]'\n  pawl runs show k7x2 --json\n  pawl runs show k7x2 --extract\n  pawl runs show k7x2 --compression 211",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withRun(c.Context(), toRead, args[0], func(s *session, r journal.Run) error {
				if extract {
					x, err := pawl.ExtractOf(c.Context(), s.store, r.ID)
					if err != nil {
						return fmt.Errorf("run %s: %w", r.ID, err)
					}
					return a.printJSON(x)
				}
				if step != "" {
					shown, err := s.step(c.Context(), r, step)
					if err != nil {
						return err
					}
					return a.show(asJSON, shown, func() error { return a.printStep(shown) })
				}
				if c.Flags().Changed("compression") {
					shown, err := s.compression(c.Context(), r, compression)
					if err != nil {
						return err
					}
					return a.show(asJSON, shown, func() error { return a.printCompression(shown) })
				}
				p, err := s.page(c.Context(), r)
				if err != nil {
					return err
				}
				inbox, err := s.store.Inbox(c.Context(), r.ID)
				if err != nil {
					return err
				}
				p.sent(inbox)
				if err := s.asks(c.Context(), &p); err != nil {
					return err
				}
				if p.RunStatus, err = s.controller.RunStatus(c.Context(), r); err != nil {
					return err
				}
				s.folded(c.Context(), &p)
				return a.show(asJSON, p, func() error { return a.printPage(p) })
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	c.Flags().BoolVar(&extract, "extract", false, "print what evaluators see of the run, as JSON")
	c.Flags().StringVar(&step, "step", "", "show the step of this `ID` with its whole output")
	c.Flags().Int64Var(&compression, "compression", 0, "show what this history.compressed event removed")
	return c
}

// page is a run at a glance: its row, and a digest of its events.
type page struct {
	control.RunStatus
	Source    string             `json:"source,omitempty"`
	Workspace string             `json:"workspace,omitempty"`
	Input     string             `json:"input,omitempty"`
	From      string             `json:"from,omitempty"`
	Usage     llm.Usage          `json:"usage"`
	Cost      *llm.Cost          `json:"cost,omitempty"`
	Inherited *view.Inherited    `json:"inherited,omitempty"`
	Hidden    []agent.HiddenTool `json:"hidden,omitempty"`
	Pending   []control.Call     `json:"pending,omitempty"`
	// Waiting holds the open questions, and after them the commands that wait to be
	// taken up.
	Waiting   []any            `json:"waiting,omitempty"`
	Parked    *event.RunParked `json:"parked,omitempty"`
	unread    []waitingRef
	questions []control.Pending
	// Allowed lists what people allowed for the rest of the run.
	Allowed  []event.PermissionAdded `json:"allowed,omitempty"`
	Because  string                  `json:"because,omitempty"`
	Taint    event.Taint             `json:"taint,omitzero"`
	PerCycle []view.CycleLine        `json:"perCycle"`
	view.Account
	// ActiveSeconds is how long the run has been active, IdleSeconds the time since
	// its last progress.
	ActiveSeconds float64 `json:"activeSeconds"`
	IdleSeconds   float64 `json:"idleSeconds"`
	origin
	// Steps are those of a workflow, Iterations those of a refinement loop.
	Steps      []stepLine       `json:"steps,omitempty"`
	Iterations []*iterationLine `json:"iterations,omitempty"`
	ledger     *view.Ledger
	// Checkpoints are those of a goal.
	Checkpoints []event.Checkpoint `json:"checkpoints,omitempty"`
	// Children lists the child runs in the order of their start.
	Children []*view.ChildRun `json:"children,omitempty"`
	// Compactions lists where the conversation became shorter.
	Compactions []view.Compaction `json:"compactions,omitempty"`
	// Hooks lists the hooks of the run as a whole.
	Hooks []event.HookResult `json:"hooks,omitempty"`
}

// page returns the page of a run.
func (s *session) page(ctx context.Context, r journal.Run) (page, error) {
	var d drive.Digested
	if err := d.Read(ctx, s.store, r.ID); err != nil {
		return page{}, err
	}
	p := digestPage(r, &d.Digest)
	for e, err := range drive.AsStored(ctx, s.store, r.ID, event.TypeRunStarted, event.TypeToolInputRequired, event.TypeRunForked) {
		if err != nil {
			return p, err
		}
		p.origin.add(e.Data)
	}
	return p, nil
}

func digestPage(r journal.Run, d *view.Digest) page {
	p := page{RunStatus: control.RunStatus{Run: r}}
	p.Source, p.Workspace, p.Hidden = d.Started.Source, d.Started.Workspace, view.HiddenOf(d.Started.Config)
	if in := d.Started.Input; in != nil {
		p.Input = in.Parts.Text()
	}
	if from := d.Started.From; from != nil {
		p.From = from.Run
	}
	p.Usage, p.Cost, p.Inherited, p.Account = d.Run().Usage, d.Run().Cost, d.Inherited(), d.Account
	p.Parked, p.Allowed, p.Because = d.Parked, d.Allowed, d.Because
	p.PerCycle, p.Children = d.Cycles(), d.Children()
	p.Checkpoints, p.Compactions, p.Hooks = d.Checkpoints, d.Compactions, d.Hooks
	if p.ledger = d.Steps.Ledger; p.ledger != nil {
		p.Iterations = p.ledger.Lines
	} else {
		p.Steps = d.Steps.All()
	}
	for _, e := range d.Unread {
		p.unread = append(p.unread, unread(e))
	}
	windows(p.PerCycle)
	return p
}
