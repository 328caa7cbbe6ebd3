package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/machine/agent"
	"github.com/pawlrun/pawl/sandbox"
)

// note is one line of progress.
type note struct {
	style style
	text  string
}

// progress is what an event means to somebody who watches the run. The commands
// that it names begin with pawl, see invocation.
func progress(e event.Event, pawl string) []note {
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
	case event.HistoryCompressed:
		return []note{{faint, "  history compressed: " + leaving(d)}}
	case event.CancelRequested:
		return []note{{yellow, "  cancel requested"}}
	case event.RunTerminatedBy:
		if d.Detail != "" {
			return []note{{yellow, "  ends because " + firstLine(d.Detail, 300)}}
		}
	}
	return toolProgress(e, pawl)
}

// skipped says what does not count of the time that the clock shows.
func skipped(e event.Event) []note {
	if e.SkippedMs == 0 {
		return nil
	}
	return []note{{faint, "  the machine slept, or its clock was set forward: " + lasting(float64(e.SkippedMs)/1000) + " are not the run's time"}}
}

func resumed(run string, d event.RunResumed) []note {
	notes := []note{{faint, "run " + run + " goes on"}}
	if d.Unread > 0 {
		notes = append(notes, note{yellow, "warning: what was sent in confidence to the process that is gone is lost (" +
			plural(d.Unread, "command") + "); send it again"})
	}
	return notes
}

func raised(d event.BudgetRaised) string {
	if d.Value == budget.None {
		return d.Setting + " is taken away"
	}
	return fmt.Sprintf("%s is now %g", d.Setting, d.Value)
}

func toolProgress(e event.Event, pawl string) []note {
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
		return []note{{yellow, fmt.Sprintf("  trying again in %d ms", d.DelayMs)}}
	case event.ToolPendingApproval:
		notes := []note{{yellow, fmt.Sprintf("  ? %s %s needs an approval", d.CallID, d.Tool)}}
		if why := askedBy(d); why != "" {
			notes = append(notes, note{yellow, "    " + firstLine(why, 400)})
		}
		return notes
	case event.ToolApprovalResolved:
		text := fmt.Sprintf("  %s %s", d.CallID, d.Kind)
		if d.Approver != "" { // nobody is, of a question that expired
			text += " by " + firstLine(d.Approver, 60)
		}
		return []note{{faint, text}}
	case event.RunParked:
		return parked(e.Run, d, pawl)
	case event.RunCompleted:
		return completed(e, d.Outcome)
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
	if text := limits(d.Config); text != "" {
		notes = append(notes, note{faint, "limits: " + text})
	}
	if text := boundary(d); text != "" && hasCommands(d.Config) {
		notes = append(notes, note{faint, text})
	}
	if text := hiddenText(hiddenOf(d.Config)); text != "" {
		notes = append(notes, note{faint, "hidden from the model: " + text})
	}
	for _, w := range d.Warnings {
		notes = append(notes, note{yellow, "warning: " + firstLine(w, 300)})
	}
	return notes
}

// hasCommands says that a run has the tool that runs commands, which is what a
// sandbox is for.
func hasCommands(config json.RawMessage) bool {
	var c struct {
		Tools []llm.ToolDef `json:"tools"`
	}
	return json.Unmarshal(config, &c) != nil ||
		slices.ContainsFunc(c.Tools, func(t llm.ToolDef) bool { return t.Name == "shell.exec" })
}

// boundary says what the commands of a run can reach.
func boundary(d event.RunStarted) string {
	switch c := d.Confinement; {
	case d.Sandbox == string(sandbox.None):
		return "sandbox: none, commands run with your own permissions ('pawl doctor' says why)"
	case c != nil && c.OnDemand:
		return fmt.Sprintf("sandbox: %s, for the calls that a rule puts there; other commands run with your own permissions", d.Sandbox)
	case c != nil:
		return fmt.Sprintf("sandbox: %s, network %s, files %s", d.Sandbox, cmp.Or(strings.Join(c.Hosts, " "), c.Network), c.Filesystem)
	}
	return ""
}

// limits says what stops a run, from the configuration that its first event
// pins: a cap that nobody set is not a surprise then.
func limits(config json.RawMessage) string {
	var c struct {
		Limits budget.Limits `json:"limits"`
	}
	if json.Unmarshal(config, &c) != nil {
		return ""
	}
	var parts []string
	if n := c.Limits.MaxCycles; n > 0 {
		parts = append(parts, plural(n, "cycle"))
	} else {
		parts = append(parts, "no cap on cycles")
	}
	if usd, _ := c.Limits.CostCap(); usd > 0 {
		parts = append(parts, "USD "+dollars(usd))
	} else {
		parts = append(parts, "no cap in USD")
	}
	if s := c.Limits.MaxWallSeconds; s > 0 {
		parts = append(parts, lasting(s))
	} else {
		parts = append(parts, "no limit on time")
	}
	if n := c.Limits.MaxToolCalls; n > 0 {
		parts = append(parts, plural(n, "tool call"))
	} else {
		parts = append(parts, "no limit on tool calls")
	}
	return strings.Join(append(parts, rarer(&c.Limits)...), ", ")
}

// rarer are the limits that a run has only where its owner set them.
func rarer(l *budget.Limits) []string {
	var parts []string
	for _, limit := range []struct {
		n    float64
		text string
	}{
		{float64(l.MaxModelTurns), plural(l.MaxModelTurns, "answer")},
		{float64(l.MaxInputTokens), fmt.Sprintf("%d tokens in", l.MaxInputTokens)},
		{float64(l.MaxOutputTokens), fmt.Sprintf("%d tokens out", l.MaxOutputTokens)},
		{l.MaxIdleSeconds, lasting(l.MaxIdleSeconds) + " without progress"},
		{float64(l.MaxRequestTokens), fmt.Sprintf("%d tokens a request", l.MaxRequestTokens)},
	} {
		if limit.n > 0 {
			parts = append(parts, limit.text)
		}
	}
	return parts
}

func position(d event.CycleStart) string {
	if d.MaxCycles == 0 {
		return fmt.Sprintf("cycle %d", d.Cycle)
	}
	return fmt.Sprintf("cycle %d/%d", d.Cycle, d.MaxCycles)
}

func retrying(d event.ModelRetrying) string {
	s := fmt.Sprintf("  trying again in %d ms", d.DelayMs)
	if d.ToModel != d.FromModel {
		s += " with " + d.ToModel
	}
	return s
}

func parked(run string, d event.RunParked, pawl string) []note {
	notes := []note{parkedFor(d)}
	for _, id := range d.CallIDs {
		notes = append(notes, note{plain, decideWith(run, id, pawl)})
	}
	return append(notes, note{plain, "go on with: " + pawl + " " + goingOn(run, d)})
}

func parkedFor(d event.RunParked) note {
	text := "parked: " + string(d.Reason)
	if d.Detail != "" {
		text += ", " + firstLine(d.Detail, 200)
	}
	return note{yellow, text}
}

// notGoingOn is said of a replay that ended early: its record was with its process.
func notGoingOn(replays, pawl string) string {
	return "a replay is not taken up again; begin it anew with: " + pawl + " runs replay " + replays + " --live-model"
}

// decideWith is how a call is decided about from another command line.
func decideWith(run, call, pawl string) string {
	return fmt.Sprintf("decide with: %s runs approve %s %s, or reject it with a --reason", pawl, run, call)
}

// waits says that calls of a run wait in its process until somebody decides.
func waits(config json.RawMessage) bool {
	var c struct {
		Approve agent.ApproveMode `json:"approve"`
	}
	return json.Unmarshal(config, &c) == nil && c.Approve == agent.ApproveWait
}

// waitingNote says until when a call waits, and how it is decided about.
func waitingNote(run string, d event.ToolPendingApproval, pawl string) string {
	text := "    it waits"
	if d.ExpiresAt != nil {
		text += " until " + clock(*d.ExpiresAt)
	}
	return text + "; " + decideWith(run, d.CallID, pawl)
}

// goingOn is the command of Pawl that takes a parked run up again.
func goingOn(run string, d event.RunParked) string {
	switch {
	case d.Limit != "":
		return fmt.Sprintf("runs budget %s %s VALUE --resume", run, d.Limit)
	case d.Reason == event.ParkInput:
		return fmt.Sprintf("runs input %s \"MESSAGE\" --resume", run)
	}
	return "runs resume " + run
}

func overrun(d event.BudgetOverrun) string {
	return fmt.Sprintf("a call used more than was set aside for it: %g of %g of %s; nothing starts until it is raised", d.Used, d.Limit, d.Setting)
}

// cacheBreak says what the provider should have had in its cache and had not.
func cacheBreak(d event.CacheBreak) string {
	text := fmt.Sprintf("cache missed at %s: %d tokens paid anew, USD %.4f", d.Segment, d.TokensRewritten, d.USD)
	if d.Guess != "" {
		text += " (" + firstLine(d.Guess, 200) + ")"
	}
	return text
}

func completed(e event.Event, o event.Outcome) []note {
	st := red
	switch {
	case o.OK:
		st = green
	case o.Status != event.StatusFailed:
		st = yellow
	}
	notes := []note{{st, summary(o)}}
	if o.Error != nil {
		notes = append(notes, note{red, "error: " + harmless(o.Error.Message) + request(o.Error.RequestID)})
	}
	if o.NextSafeAction != "" {
		notes = append(notes, note{plain, "next: " + o.NextSafeAction})
	}
	return append(notes, note{faint, "head: " + headOf(&e)})
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
	return fmt.Sprintf("%s: %s after %s, %s%d tokens in, %d out, %s",
		o.Status, reason(o), plural(o.Cycles, "cycle"), most, o.Usage.Input, o.Usage.Output, money(o.Cost))
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

func money(c *llm.Cost) string {
	switch {
	case c == nil:
		return "no model call"
	case !c.Priced:
		return fmt.Sprintf("at least USD %.4f (some calls have no known price)", c.USD)
	}
	return fmt.Sprintf("USD %.4f", c.USD)
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
