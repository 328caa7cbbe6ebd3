package cli

import (
	"fmt"
	"time"

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
				p := page{RunStatus: control.RunStatus{Run: r}}
				for e, err := range drive.AsStored(c.Context(), s.store, r.ID) {
					if err != nil {
						return err
					}
					p.add(e)
				}
				inbox, err := s.store.Inbox(c.Context(), r.ID)
				if err != nil {
					return err
				}
				p.sent(inbox)
				if l := p.steps.Ledger; l != nil {
					p.Iterations = l.Lines
				} else {
					p.Steps = p.steps.All()
				}
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
	Inherited *inherited         `json:"inherited,omitempty"`
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
	PerCycle []cycleLine             `json:"perCycle"`
	account
	origin
	// Steps are those of a workflow.
	Steps []stepLine `json:"steps,omitempty"`
	steps steps
	// Iterations are those of a refinement loop.
	Iterations []*iterationLine `json:"iterations,omitempty"`
	// Checkpoints are those of a goal.
	Checkpoints []event.Checkpoint `json:"checkpoints,omitempty"`
	// Children lists the child runs in the order of their start.
	Children []childRef `json:"children,omitempty"`
	// childAt maps runs to their index there; childFor maps each step to its last
	// run; skipped holds the steps that did not run.
	childAt  map[string]int
	childFor map[string]string
	skipped  []event.StepSkipped
	// Compactions lists where the conversation became shorter.
	Compactions []compaction `json:"compactions,omitempty"`
	// Hooks lists the hooks of the run as a whole.
	Hooks []hookRef `json:"hooks,omitempty"`
}

// inherited is what the runs before a fork had spent up to it; it does not count
// against the fork.
type inherited struct {
	Usage   llm.Usage `json:"usage"`
	Cost    *llm.Cost `json:"cost,omitempty"`
	Changed []string  `json:"changed,omitempty"`
}

// cycleLine is what one cycle did.
type cycleLine struct {
	Cycle int       `json:"cycle"`
	Start time.Time `json:"start"`
	Model string    `json:"model,omitempty"`
	Text  string    `json:"text,omitempty"`
	Calls []string  `json:"calls,omitempty"`
	Hooks []hookRef `json:"hooks,omitempty"`
	// CacheBreaks lists input that was paid again although it should have been
	// cached.
	CacheBreaks []event.CacheBreak `json:"cacheBreaks,omitempty"`
	// Errors counts the failed calls, Retries the attempts.
	Errors  int       `json:"errors,omitempty"`
	Retries int       `json:"retries,omitempty"`
	Usage   llm.Usage `json:"usage"`
	USD     float64   `json:"usd"`
	// Context is the input of the cycle's last answer, in tokens; Window is the
	// model's, 0 if unknown; WindowShare is how much of it the context filled.
	Context     int64   `json:"context"`
	Window      int64   `json:"window,omitempty"`
	WindowShare float64 `json:"windowShare,omitempty"`
}

func (p *page) add(e *event.Event) {
	p.account.add(e.Data)
	p.origin.add(e.Data)
	p.child(e.Data)
	p.steps.Add(e)
	switch d := e.Data.(type) {
	case event.RunStarted:
		p.started(d)
	case event.RunForked:
		p.forked(d)
	case event.Checkpoint:
		p.Checkpoints = append(p.Checkpoints, d)
	case event.CycleStart:
		p.PerCycle = append(p.PerCycle, cycleLine{Cycle: d.Cycle, Start: e.Time})
	case event.ModelResponse:
		p.spend(d.Usage, d.Cost)
		if c := p.cycle(); c != nil && d.Purpose == "" {
			c.Model, c.Text = d.Model, llm.Parts(d.Parts).Text()
			c.fill(d.Usage, p.window)
		}
	case event.ModelAttemptFailed:
		p.spend(d.Usage, d.Cost)
	case event.ModelRetrying, event.ToolRetrying:
		if c := p.cycle(); c != nil {
			c.Retries++
		}
	case event.HookResult:
		p.hook(d)
	case event.ToolCall:
		if c := p.cycle(); c != nil {
			c.Calls = append(c.Calls, label(d))
		}
	case event.RunParked:
		p.Parked = &d
	case event.RunResumed:
		p.Parked = nil
	case event.RunTerminatedBy:
		p.Parked, p.Because = nil, d.Detail
	case event.CacheBreak:
		if c := p.cycle(); c != nil {
			c.CacheBreaks = append(c.CacheBreaks, d)
		}
	case event.HistoryCompressed:
		p.Compactions = append(p.Compactions, compaction{Seq: e.Seq, Cycle: e.Cycle, UndoSeq: e.Seq - 1, HistoryCompressed: d})
	case event.PermissionAdded:
		p.Allowed = append(p.Allowed, d)
	case event.ToolResult:
		if c := p.cycle(); c != nil && d.IsError {
			c.Errors++
		}
	}
	p.told(e)
}

// hookRef is the result of one hook.
type hookRef struct {
	event.HookResult
	line string
}

func (p *page) hook(d event.HookResult) {
	ref := hookRef{d, view.HookLine(d)}
	if c := p.cycle(); c != nil && d.Stage != event.HookAfterRun {
		c.Hooks = append(c.Hooks, ref)
		return
	}
	p.Hooks = append(p.Hooks, ref)
}

func (p *page) started(d event.RunStarted) {
	p.Source, p.Workspace, p.Hidden = d.Source, d.Workspace, view.HiddenOf(d.Config)
	if d.Input != nil {
		p.Input = d.Input.Parts.Text()
	}
	if d.From != nil {
		p.From = d.From.Run
	}
	p.PerCycle = []cycleLine{}
}

// forked assigns what was spent so far to the runs that spent it.
func (p *page) forked(d event.RunForked) {
	p.Allowed = nil
	if p.Inherited == nil {
		p.Inherited = &inherited{}
	}
	in := p.Inherited
	in.Usage = in.Usage.Add(p.Usage)
	switch {
	case in.Cost == nil:
		in.Cost = p.Cost
	case p.Cost != nil:
		in.Cost = &llm.Cost{USD: in.Cost.USD + p.Cost.USD, Priced: in.Cost.Priced && p.Cost.Priced}
	}
	in.Changed = d.Changed
	for _, r := range d.Results {
		in.Changed = append(in.Changed[:len(in.Changed):len(in.Changed)], "result of "+r.CallID)
	}
	p.Usage, p.Cost = llm.Usage{}, nil
}

func (p *page) cycle() *cycleLine {
	if len(p.PerCycle) == 0 {
		return nil
	}
	return &p.PerCycle[len(p.PerCycle)-1]
}

func (p *page) spend(u llm.Usage, c llm.Cost) {
	if p.Cost == nil {
		p.Cost = &llm.Cost{Priced: true}
	}
	p.Usage = p.Usage.Add(u)
	p.Cost.USD += c.USD
	p.Cost.Priced = p.Cost.Priced && c.Priced
	if line := p.cycle(); line != nil {
		line.Usage = line.Usage.Add(u)
		line.USD += c.USD
	}
}
