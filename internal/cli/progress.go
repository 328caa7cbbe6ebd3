package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/sandbox"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/machine/flow"
	"github.com/pawlrun/pawl/internal/machine/process"
	"github.com/pawlrun/pawl/llm"
)

// note is one line of progress.
type note struct {
	style style
	text  string
}

// progress is what an event means to somebody who watches the run. What has
// stopped names the next step.
func progress(e event.Event, next *nextStep) []note {
	switch d := e.Data.(type) {
	case event.RunStarted:
		return started(e.Run, d)
	case event.RunResumed:
		return resumed(e.Run, d)
	case event.CycleStart:
		return []note{{bold, position(d)}}
	case event.ModelResponse:
		if d.Purpose != "" {
			return nil
		}
		notes := hosted(llm.Parts(d.Parts))
		if text := firstLine(llm.Parts(d.Parts).Text(), 100); text != "" {
			notes = append(notes, note{plain, "  " + text})
		}
		return notes
	case event.ModelAttemptFailed:
		return []note{{yellow, fmt.Sprintf("  %s failed (%s): %s%s", d.Model, d.Class, firstLine(d.Message, 300), request(d.RequestID))}}
	case event.ModelRetrying:
		return []note{{yellow, retrying(d)}}
	case event.Nudge:
		return []note{{faint, "  nudge: " + firstLine(d.Text, 100)}}
	case event.Stuck:
		return []note{{yellow, fmt.Sprintf("  stuck: %s (%s)", firstLine(d.Pattern, 80), d.Action)}}
	case event.BudgetWarning:
		return []note{{yellow, fmt.Sprintf("  %d %% of %s is used up", d.Percent, d.Setting)}}
	case event.BudgetRaised:
		return []note{{faint, "  " + raised(d)}}
	case event.BudgetOverrun:
		return []note{{red, "  " + overrun(d)}}
	case event.CacheBreak:
		return []note{{yellow, "  " + cacheBreak(d)}}
	case event.InputReceived:
		return []note{{faint, "  input: " + firstLine(said(d), 100)}}
	case event.MessageSent:
		return []note{{faint, "  " + message(d)}}
	case event.MessageDropped:
		return []note{{yellow, fmt.Sprintf("  a message to %s is dropped: %s", firstLine(d.To, 60), d.Reason)}}
	case event.HistoryCompressed:
		return []note{{faint, "  history compressed: " + leaving(d)}}
	case event.CancelRequested:
		return []note{{yellow, "  cancel requested"}}
	case event.RunTerminatedBy:
		if d.Detail != "" {
			return []note{{yellow, "  ends because " + firstLine(d.Detail, 300)}}
		}
	}
	return toolProgress(e, next)
}

// skipped says what does not count of the time that the clock shows.
func skipped(e event.Event) []note {
	if e.SkippedMs == 0 {
		return nil
	}
	return []note{{faint, "  the machine slept or its clock changed: " + lasting(float64(e.SkippedMs)/1000) + " not counted"}}
}

func resumed(run string, d event.RunResumed) []note {
	notes := []note{{faint, "run " + run + " resumed"}}
	if d.Unread > 0 {
		notes = append(notes, note{yellow, "warning: secret input sent to the process that has died is lost (" +
			plural(d.Unread, "command") + "); send it again"})
	}
	return notes
}

// message is what a step or the coordinator says to the other, or to who watches.
func message(d event.MessageSent) string {
	to := ""
	if d.To != "" {
		to = " to " + d.To
	}
	return d.From + to + ": " + firstLine(d.Text, 200)
}

func raised(d event.BudgetRaised) string {
	if d.Value == budget.None {
		return d.Setting + " is removed"
	}
	return fmt.Sprintf("%s is now %g", d.Setting, d.Value)
}

func toolProgress(e event.Event, next *nextStep) []note {
	switch d := e.Data.(type) {
	case event.HookResult:
		if line := hookLine(d); line != "" {
			return []note{{yellow, "  " + firstLine(line, 160)}}
		}
	case event.ToolCall:
		return []note{{plain, "  → " + firstLine(label(d), 100)}}
	case event.ToolResult:
		if d.IsError {
			return []note{{red, "  ✗ " + firstLine(d.Tool, 60) + " " + firstLine(complaint(d.Output), 200)}}
		}
		return []note{{green, "  ✓ " + d.Tool + " " + firstLine(d.Output, 80)}}
	case event.ToolAttemptFailed:
		return []note{{yellow, "  " + d.Result.Tool + " failed: " + firstLine(complaint(d.Result.Output), 300)}}
	case event.ToolRetrying:
		return []note{{yellow, fmt.Sprintf("  retry in %d ms", d.DelayMs)}}
	case event.Asking:
		q := d.Question()
		needs := "an approval"
		if q.Message {
			needs = "an answer"
		}
		notes := []note{{yellow, fmt.Sprintf("  ? %s %s needs %s", q.ID, q.Subject, needs)}}
		if why := askedBy(q); why != "" {
			notes = append(notes, note{yellow, "    " + firstLine(why, 400)})
		}
		return notes
	case event.Resolving:
		r := d.Resolution()
		text := fmt.Sprintf("  %s %s", r.ID, r.Kind)
		if r.Approver != "" { // nobody is, of a question that expired
			text += " by " + firstLine(r.Approver, 60)
		}
		return []note{{faint, text}}
	case event.PermissionAdded:
		return []note{{faint, "  allowed for this run by " + firstLine(d.By, 60) + ": " + firstLine(d.Permission.String(), 200)}}
	case event.RunParked:
		return []note{parkedFor(d), {plain, next.parked(e.Run, d)}}
	case event.RunCompleted:
		return completed(e, d.Outcome, next)
	}
	return nil
}

// complaint is what a failed call says, without the JSON around it that is for
// the model.
func complaint(output string) string {
	var said struct {
		Error    string
		Rejected bool
		Reason   string
	}
	if len(output) > 1<<16 || !strings.HasPrefix(output, "{") || json.Unmarshal([]byte(output), &said) != nil {
		return output
	}
	if said.Rejected && said.Error == "" {
		return strings.TrimSuffix("rejected: "+said.Reason, ": ")
	}
	return cmp.Or(said.Error, output)
}

func started(run string, d event.RunStarted) []note {
	notes := []note{{bold, "run " + run + ": " + firstLine(d.Name, 80)}}
	if text := limits(d); text != "" {
		notes = append(notes, note{faint, "limits: " + text})
	}
	if text := boundary(d); text != "" && hasCommands(d) {
		notes = append(notes, note{faint, text})
		if refused := notHeld(sandbox.Tier(d.Sandbox), "network", "filesystem"); len(refused) > 0 {
			notes = append(notes, note{faint, "refused on this machine: " + strings.Join(refused, ", ") + " ('pawl doctor' says what to install)"})
		}
	}
	if text := hiddenText(hiddenOf(d.Config)); text != "" {
		notes = append(notes, note{faint, "hidden from the model: " + text})
	}
	for _, w := range d.Warnings {
		notes = append(notes, note{yellow, "warning: " + firstLine(w, 300)})
	}
	return notes
}

// hasCommands reports whether a run has the tool that runs commands, or is a
// workflow, which has a sandbox only for its own commands.
func hasCommands(d event.RunStarted) bool {
	var c struct {
		Tools []llm.ToolDef `json:"tools"`
	}
	return d.Machine == flow.Version || json.Unmarshal(d.Config, &c) != nil ||
		slices.ContainsFunc(c.Tools, func(t llm.ToolDef) bool { return t.Name == machine.CommandTool })
}

// boundary says what the commands of a run can reach.
func boundary(d event.RunStarted) string {
	switch c := d.Confinement; {
	case d.Sandbox == string(sandbox.None):
		return "sandbox: none, commands run with your permissions ('pawl doctor' says why)"
	case c != nil && c.OnDemand:
		return fmt.Sprintf("sandbox: %s, for the calls that a rule puts there; other commands run with your permissions", d.Sandbox)
	case c != nil:
		return fmt.Sprintf("sandbox: %s, network %s, files %s", d.Sandbox, cmp.Or(strings.Join(c.Hosts, " "), c.Network), c.Filesystem)
	}
	return ""
}

// limits says what stops a run, from the configuration that its first event
// pins: a cap that nobody set is not a surprise then. What a run that another
// started may cost and last is bounded by that one's limits as well.
func limits(d event.RunStarted) string {
	var c struct {
		Limits budget.Limits `json:"limits"`
	}
	if json.Unmarshal(d.Config, &c) != nil {
		return ""
	}
	var parts []string
	agents := d.Machine == flow.Version || d.Machine == process.Version // these have no cycles and calls themselves
	switch n := c.Limits.MaxCycles; {
	case agents:
	case n > 0:
		parts = append(parts, plural(n, "cycle"))
	default:
		parts = append(parts, "no cycle limit")
	}
	if usd, _ := c.Limits.CostCap(); usd > 0 {
		parts = append(parts, "USD "+dollars(usd))
	} else if d.Parent == "" {
		parts = append(parts, "no cost limit (--no-budget)")
	}
	if s := c.Limits.MaxWallSeconds; s > 0 {
		parts = append(parts, lasting(s))
	} else if d.Parent == "" {
		parts = append(parts, "no time limit")
	}
	switch n := c.Limits.MaxToolCalls; {
	case agents:
	case n > 0:
		parts = append(parts, plural(n, "tool call"))
	default:
		parts = append(parts, "no tool call limit")
	}
	return strings.Join(append(parts, rarer(&c.Limits)...), ", ")
}

// rarer are the limits that a run has only where its owner set them.
func rarer(l *budget.Limits) []string {
	var parts []string
	for _, s := range budget.Table() {
		if n, _ := s.Value(*l); n > 0 && s.Default == 0 && s.Kind != budget.Money {
			parts = append(parts, bound(s, n)...)
		}
	}
	return parts
}

// bound is a limit in words, where it has any.
func bound(s budget.Setting, n float64) []string {
	unit := s.Unit
	switch {
	case unit == "":
		return nil
	case s.Kind == budget.Idle:
		return []string{lasting(n) + " " + unit}
	case n == 1:
		unit = strings.TrimSuffix(unit, "s")
	}
	return []string{fmt.Sprintf("%.0f %s", n, unit)}
}

func position(d event.CycleStart) string {
	if d.MaxCycles == 0 {
		return fmt.Sprintf("cycle %d", d.Cycle)
	}
	return fmt.Sprintf("cycle %d/%d", d.Cycle, d.MaxCycles)
}

func retrying(d event.ModelRetrying) string {
	s := fmt.Sprintf("  retry in %d ms", d.DelayMs)
	if d.ToModel != d.FromModel {
		s += " with " + d.ToModel
	}
	return s
}

func parkedFor(d event.RunParked) note {
	text := "parked: " + string(d.Reason)
	if d.Detail != "" {
		text += ", " + firstLine(d.Detail, 200)
	}
	return note{yellow, text}
}

// waits reports whether calls of a run wait in its process until somebody decides.
func waits(config json.RawMessage) bool {
	var c struct {
		Approve agent.ApproveMode `json:"approve"`
	}
	return json.Unmarshal(config, &c) == nil && c.Approve == agent.ApproveWait
}

// waitingNote says until when a question waits, and how it is decided.
func waitingNote(run string, q event.Question, pawl string) string {
	text := "    it waits"
	if q.ExpiresAt != nil {
		text += " until " + clock(*q.ExpiresAt)
	}
	return fmt.Sprintf("%s; decide with: %s runs approve %s %s, or reject it with a --reason", text, pawl, run, q.ID)
}

func overrun(d event.BudgetOverrun) string {
	return fmt.Sprintf("a call exceeded its budget reservation: %g of %g of %s; nothing starts until the limit is raised", d.Used, d.Limit, d.Setting)
}

// cacheBreak says what the provider should have had in its cache and had not.
func cacheBreak(d event.CacheBreak) string {
	text := fmt.Sprintf("prompt cache missed at %s: %d tokens charged again, USD %.4f", d.Segment, d.TokensRewritten, d.USD)
	if d.Guess != "" {
		text += " (" + firstLine(d.Guess, 200) + ")"
	}
	return text
}

func completed(e event.Event, o event.Outcome, next *nextStep) []note {
	st := red
	switch {
	case o.OK:
		st = green
	case o.Status != event.StatusFailed:
		st = yellow
	}
	notes := []note{{st, summary(o)}}
	if o.Error != nil {
		text := "error: "
		if o.Step != "" {
			text = "step " + o.Step + " failed: "
		}
		notes = append(notes, note{red, text + harmless(o.Error.Message) + request(o.Error.RequestID)})
	}
	if o.NextSafeAction != "" {
		notes = append(notes, note{plain, "next: " + o.NextSafeAction})
	}
	if step := next.ended(e.Run, o); step != "" {
		notes = append(notes, note{plain, step})
	}
	return append(notes, note{faint, "journal checksum: " + headOf(&e)})
}

// request is the id by which a provider's support finds a call, if there is one.
func request(id string) string {
	if id == "" {
		return ""
	}
	return " (request " + firstLine(id, 100) + ")"
}

// summary is an outcome in one line.
func summary(o event.Outcome) string {
	most := ""
	if o.Usage.Estimated {
		most = "at most " // what nobody reported is counted as the most that it can be
	}
	did := plural(o.Cycles, "cycle")
	if o.Iterations > 0 {
		did = plural(o.Iterations, "iteration")
	}
	if n := o.Steps; n != nil {
		did = plural(n.Completed, "step")
		for _, c := range []struct {
			n    int
			what string
		}{{n.Failed, "failed"}, {n.Skipped, "skipped"}, {n.Cancelled, "cancelled"}} {
			if c.n > 0 {
				did += fmt.Sprintf(" (%d %s)", c.n, c.what)
			}
		}
	}
	return fmt.Sprintf("%s: %s after %s, %s%d tokens in, %d out, %s",
		o.Status, reason(o), did, most, o.Usage.Input, o.Usage.Output, money(o.Cost, o.Usage))
}

func reason(o event.Outcome) string {
	if o.Kind == "" {
		return string(o.Reason)
	}
	return string(o.Reason) + " (" + o.Kind + ")"
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// money is what calls with that usage cost.
func money(c *llm.Cost, u llm.Usage) string {
	switch {
	case c == nil:
		return "no model call"
	case !c.Priced && u.Estimated:
		return fmt.Sprintf("about USD %.4f (some calls have no known price, of some the usage is not known)", c.USD)
	case !c.Priced:
		return fmt.Sprintf("at least USD %.4f (some calls have no known price)", c.USD)
	}
	return usd(c.USD, u)
}

// usd is an amount as it is shown. What a call cost that was never answered is
// counted as the most that it can be.
func usd(amount float64, u llm.Usage) string {
	if u.Estimated && amount > 0 {
		return fmt.Sprintf("at most USD %.4f", amount)
	}
	return fmt.Sprintf("USD %.4f", amount)
}

// headOf is the hash of the run's last event: kept elsewhere, it lets verify
// find a journal that was rewritten.
func headOf(e *event.Event) string {
	body, err := event.Encode(e)
	if err != nil {
		return ""
	}
	return event.Hash(body)
}

func label(d event.ToolCall) string {
	if by := d.EditedBy; by != "" {
		d.EditedBy = ""
		return label(d) + " (edited by " + by + ")"
	}
	if d.Describe != "" {
		return d.Describe
	}
	return d.Tool + " " + string(d.Args) + d.ArgsText
}
