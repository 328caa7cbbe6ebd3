package view

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/flow"
	"github.com/pawlrun/pawl/internal/machine/process"
	"github.com/pawlrun/pawl/internal/view/terminal"
	"github.com/pawlrun/pawl/llm"
)

// Brief returns a line or two about an event for a person who watches the run.
func Brief(e *event.Event) []Part {
	switch d := e.Data.(type) {
	case event.RunStarted:
		return Started(e.Run, d, nil)
	case event.RunResumed:
		return resumed(e.Run, d)
	case event.CycleStart:
		return []Part{line(Strong, Position(d))}
	case event.ModelResponse:
		if d.Purpose != "" {
			return nil
		}
		parts := Hosted(llm.Parts(d.Parts))
		if text := firstLine(llm.Parts(d.Parts).Text(), 100); text != "" {
			parts = append(parts, line(Plain, "  "+text))
		}
		return parts
	case event.ModelAttemptFailed:
		return []Part{line(Wait, fmt.Sprintf("  %s failed (%s): %s%s", d.Model, d.Class, firstLine(d.Message, 300), Request(d.RequestID)))}
	case event.ModelRetrying:
		return []Part{line(Wait, retrying(d))}
	case event.Nudge:
		return []Part{line(Quiet, "  nudge: "+firstLine(d.Text, 100))}
	case event.Stuck:
		return []Part{line(Wait, fmt.Sprintf("  stuck: %s (%s)", firstLine(d.Pattern, 80), d.Action))}
	case event.BudgetWarning:
		return []Part{line(Wait, fmt.Sprintf("  %d %% of %s is used up", d.Percent, d.Setting))}
	case event.BudgetRaised:
		return []Part{line(Quiet, "  "+raised(d))}
	case event.BudgetOverrun:
		return []Part{line(Bad, fmt.Sprintf("  a call exceeded its budget reservation: %g of %g of %s; nothing starts until the limit is raised", d.Used, d.Limit, d.Setting))}
	case event.CacheBreak:
		return []Part{line(Wait, "  "+CacheBreak(d))}
	case event.RunPlaced:
		return []Part{line(Quiet, "  works in "+strings.TrimPrefix(d.Host+":", ":")+d.Workspace)}
	case event.InputReceived:
		return []Part{line(Quiet, "  input: "+firstLine(InputText(d), 100))}
	case event.MessageSent:
		return []Part{line(Quiet, "  "+message(d))}
	case event.MessageDropped:
		return []Part{line(Wait, fmt.Sprintf("  a message to %s is dropped: %s", firstLine(d.To, 60), d.Reason))}
	case event.HistoryCompressed:
		return []Part{line(Quiet, "  history compressed: "+Leaving(d))}
	case event.CancelRequested:
		return []Part{line(Wait, "  cancel requested")}
	case event.RunTerminatedBy:
		if d.Detail != "" {
			return []Part{line(Wait, "  ends because "+firstLine(d.Detail, 300))}
		}
	}
	return briefTool(e)
}

// Skipped returns a line about elapsed time that does not count for the run.
func Skipped(e *event.Event) []Part {
	if e.SkippedMs == 0 {
		return nil
	}
	return []Part{line(Quiet, "  the machine slept or its clock changed: "+Lasting(float64(e.SkippedMs)/1000)+" not counted")}
}

func resumed(run string, d event.RunResumed) []Part {
	parts := []Part{line(Quiet, "run "+run+" resumed")}
	if d.Unread > 0 {
		parts = append(parts, line(Wait, "warning: secret input sent to the process that has died is lost ("+
			Plural(d.Unread, "command")+"); send it again"))
	}
	return parts
}

// message returns a message between a step and the coordinator.
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

func briefTool(e *event.Event) []Part {
	switch d := e.Data.(type) {
	case event.HookResult:
		if text := HookLine(d); text != "" {
			return []Part{line(Wait, "  "+firstLine(text, 160))}
		}
	case event.ToolCall:
		return []Part{line(Plain, "  → "+firstLine(terminal.Marked(Label(d)), 100))}
	case event.ToolResult:
		if d.IsError {
			return []Part{line(Bad, "  ✗ "+firstLine(d.Tool, 60)+" "+firstLine(Complaint(d.Output), 200))}
		}
		return []Part{line(Good, "  ✓ "+d.Tool+" "+firstLine(d.Output, 80))}
	case event.ToolAttemptFailed:
		return []Part{line(Wait, "  "+d.Result.Tool+" failed: "+firstLine(Complaint(d.Result.Output), 300))}
	case event.ToolRetrying:
		return []Part{line(Wait, fmt.Sprintf("  retry in %d ms", d.DelayMs))}
	case event.Asking:
		q := d.Question()
		needs := "an approval"
		switch {
		case q.Message:
			needs = "an answer"
		case q.Kind == event.QuestionForm:
			needs = "input"
		}
		parts := []Part{line(Wait, fmt.Sprintf("  ? %s %s needs %s", q.ID, q.Subject, needs))}
		if why := AskedBy(q); why != "" {
			parts = append(parts, line(Wait, "    "+firstLine(why, 400)))
		}
		return parts
	case event.Resolving:
		r := d.Resolution()
		text := fmt.Sprintf("  %s %s", r.ID, r.Kind)
		if r.Approver != "" { // an expired question has no approver
			text += " by " + firstLine(r.Approver, 60)
		}
		return []Part{line(Quiet, text)}
	case event.PermissionAdded:
		did := "allowed"
		if d.Permission.Deny {
			did = "denied"
		}
		return []Part{line(Quiet, "  "+did+" for this run by "+firstLine(d.By, 60)+": "+firstLine(d.Permission.String(), 200))}
	case event.ServerChanged:
		parts := []Part{line(Quiet, "  the MCP server "+d.Server+" is as it was again")}
		if len(d.Tools) > 0 {
			parts[0] = line(Bad, "  the MCP server "+d.Server+" changed")
		}
		for _, t := range d.Tools {
			parts = append(parts, line(Quiet, "    "+firstLine(t.Name, 60)+": "+firstLine(t.Change, 400)))
		}
		return parts
	case event.RunParked:
		return []Part{parkedFor(d)}
	case event.RunCompleted:
		return Ended(d.Outcome)
	}
	return nil
}

// Complaint returns the message of a failed call, without the JSON for the model around
// it.
func Complaint(output string) string {
	var wire struct {
		Error    string
		Rejected bool
		Reason   string
	}
	if len(output) > 1<<16 || !strings.HasPrefix(output, "{") || json.Unmarshal([]byte(output), &wire) != nil {
		return output
	}
	if wire.Rejected && wire.Error == "" {
		return strings.TrimSuffix("rejected: "+wire.Reason, ": ")
	}
	return cmp.Or(wire.Error, output)
}

// Started describes how a run began. refused returns the settings that this machine
// cannot enforce in a sandbox of a tier; it is nil if no machine is known.
func Started(run string, d event.RunStarted, refused func(tier string) []string) []Part {
	parts := []Part{line(Strong, "run "+run+": "+firstLine(d.Name, 80))}
	if text := limits(d); text != "" {
		parts = append(parts, line(Quiet, "limits: "+text))
	}
	if text := Boundary(d); text != "" && hasCommands(d) {
		parts = append(parts, line(Quiet, text))
		if refused != nil {
			if names := refused(d.Sandbox); len(names) > 0 {
				parts = append(parts, line(Quiet, "refused on this machine: "+strings.Join(names, ", ")+" ('pawl doctor' says what to install)"))
			}
		}
	}
	if text := HiddenText(HiddenOf(d.Config)); text != "" {
		parts = append(parts, line(Quiet, "hidden from the model: "+text))
	}
	return append(parts, Warnings(d)...)
}

// Warnings returns the warnings about a run that starts.
func Warnings(d event.RunStarted) (parts []Part) {
	for _, w := range d.Warnings {
		parts = append(parts, line(Wait, "warning: "+firstLine(w, 300)))
	}
	return parts
}

// hasCommands reports whether a run has the tool that runs commands, or is a workflow,
// which has a sandbox only for its own commands.
func hasCommands(d event.RunStarted) bool {
	var c struct {
		Tools []llm.ToolDef `json:"tools"`
	}
	return d.Machine == flow.Version || json.Unmarshal(d.Config, &c) != nil ||
		slices.ContainsFunc(c.Tools, func(t llm.ToolDef) bool { return t.Name == machine.CommandTool })
}

// Boundary describes what the commands of a run can access.
func Boundary(d event.RunStarted) string {
	switch c := d.Confinement; {
	case d.Sandbox == noSandbox:
		return "sandbox: none, commands run with your permissions ('pawl doctor' says why)"
	case c != nil && c.OnDemand:
		return fmt.Sprintf("sandbox: %s, for the calls that a rule puts there; other commands run with your permissions", d.Sandbox)
	case c != nil:
		return fmt.Sprintf("sandbox: %s, network %s, files %s", d.Sandbox, cmp.Or(strings.Join(c.Hosts, " "), c.Network), c.Filesystem)
	}
	return ""
}

// noSandbox is the tier without a sandbox.
const noSandbox = "none"

// limits returns what stops a run, from the configuration in its first event, so
// that a default cap is no surprise. The limits of the parent bound the cost and
// the time of a child as well.
func limits(d event.RunStarted) string {
	var c struct {
		Limits budget.Limits `json:"limits"`
	}
	if json.Unmarshal(d.Config, &c) != nil {
		return ""
	}
	var parts []string
	agents := d.Machine == flow.Version || d.Machine == process.Version // these have no cycles and calls of their own
	switch n := c.Limits.MaxCycles; {
	case agents:
	case n > 0:
		parts = append(parts, Plural(n, "cycle"))
	default:
		parts = append(parts, "no cycle limit")
	}
	if usd, _ := c.Limits.CostCap(); usd > 0 {
		parts = append(parts, "USD "+Dollars(usd))
	} else if d.Parent == "" {
		parts = append(parts, "no cost limit (--no-budget)")
	}
	if s := c.Limits.MaxWallSeconds; s > 0 {
		parts = append(parts, Lasting(s))
	} else if d.Parent == "" {
		parts = append(parts, "no time limit")
	}
	switch n := c.Limits.MaxToolCalls; {
	case agents:
	case n > 0:
		parts = append(parts, Plural(n, "tool call"))
	default:
		parts = append(parts, "no tool call limit")
	}
	return strings.Join(append(parts, rarer(&c.Limits)...), ", ")
}

// rarer returns the limits that only an owner sets.
func rarer(l *budget.Limits) []string {
	var parts []string
	for _, s := range budget.Table() {
		if n, _ := s.Value(*l); n > 0 && s.Default == 0 && s.Kind != budget.Money {
			parts = append(parts, Bound(s, n)...)
		}
	}
	return parts
}

// Bound returns a limit in words, empty if there is none.
func Bound(s budget.Setting, n float64) []string {
	unit := s.Unit
	switch {
	case unit == "":
		return nil
	case s.Kind == budget.Idle:
		return []string{Lasting(n) + " " + unit}
	case n == 1:
		unit = strings.TrimSuffix(unit, "s")
	}
	return []string{fmt.Sprintf("%.0f %s", n, unit)}
}

func Position(d event.CycleStart) string {
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

func parkedFor(d event.RunParked) Part {
	text := "parked: " + string(d.Reason)
	if d.Detail != "" {
		text += ", " + firstLine(d.Detail, 200)
	}
	return line(Wait, text)
}

// CacheBreak describes input that the provider's cache should have contained.
func CacheBreak(d event.CacheBreak) string {
	text := fmt.Sprintf("prompt cache missed at %s: %d tokens charged again, USD %.4f", d.Segment, d.TokensRewritten, d.USD)
	if d.Guess != "" {
		text += " (" + firstLine(d.Guess, 200) + ")"
	}
	return text
}

// Ended describes how a run ended.
func Ended(o event.Outcome) []Part {
	tone := Bad
	switch {
	case o.OK:
		tone = Good
	case o.Status != event.StatusFailed:
		tone = Wait
	}
	parts := []Part{line(tone, Summary(o))}
	if o.Error != nil {
		text := "error: "
		if o.Step != "" {
			text = "step " + o.Step + " failed: "
		}
		parts = append(parts, line(Bad, text+harmless(o.Error.Message)+Request(o.Error.RequestID)))
	}
	if o.NextSafeAction != "" {
		parts = append(parts, line(Plain, "next: "+o.NextSafeAction))
	}
	return parts
}

// Request returns the id by which a provider's support finds a call, if there is one.
func Request(id string) string {
	if id == "" {
		return ""
	}
	return " (request " + firstLine(id, 100) + ")"
}

// Summary returns an outcome in one line.
func Summary(o event.Outcome) string {
	most := ""
	if o.Usage.Estimated {
		most = "at most " // unreported usage counts as its upper bound
	}
	did := Plural(o.Cycles, "cycle")
	if o.Iterations > 0 {
		did = Plural(o.Iterations, "iteration")
	}
	if n := o.Steps; n != nil {
		did = Plural(n.Completed, "step")
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
		o.Status, Reason(o), did, most, o.Usage.Input, o.Usage.Output, Money(o.Cost, o.Usage))
}
