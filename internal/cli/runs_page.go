package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/engine/holder"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/journal"
)

// printPage prints a run for a person.
func (a *app) printPage(p page) error {
	var b strings.Builder
	p.head(&b, a.invocation())
	p.stepLines(&b)
	p.checkpointLines(&b)
	p.cycles(&b, inkFor(screenOf(a.out, os.Getenv)))
	p.compactions(&b, a.invocation())
	if err := p.outcome(&b); err != nil {
		return err
	}
	_, err := io.WriteString(a.out, b.String())
	return err
}

func (p *page) head(b *strings.Builder, pawl string) {
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(b, "%-10s%s\n", name, value)
		}
	}
	row("run", p.ID)
	row("name", firstLine(p.Name, 80))
	row("state", stateText(p.Run)+stateNote(p.RunStatus))
	if p.State == journal.Running || p.State == journal.Waiting {
		row("driver", p.driver(time.Now(), pawl))
	}
	row("parent", p.Parent)
	row("from", p.From)
	row("file", onOneLine(p.Source))
	row("workspace", onOneLine(p.Workspace))
	row("input", firstLine(p.Input, 100))
	row("created", clock(p.Created))
	row("updated", clock(p.Updated))
	did := plural(p.Cycles, "cycle")
	if len(p.Steps) > 0 {
		did = plural(len(p.Steps), "step")
	} else if p.ledger != nil {
		did = plural(p.ledger.Ended(), "iteration")
	}
	row("usage", fmt.Sprintf("%s, %d tokens in (%d cached), %d out, %s",
		did, p.Usage.Input, p.Usage.CacheRead, p.Usage.Output, money(p.Cost, p.Usage)))
	row("limits", p.used())
	if in := p.Inherited; in != nil {
		row("fork of", fmt.Sprintf("%s at event %d", p.ForkOf, p.ForkSeq))
		row("changed", strings.Join(in.Changed, ", "))
		row("inherited", fmt.Sprintf("%d tokens in, %d out, %s, not counted here", in.Usage.Input, in.Usage.Output, money(in.Cost, in.Usage)))
	}
	for _, c := range p.Children {
		// A workflow shows its steps, which may be thousands of runs, and a loop
		// its iterations.
		if len(p.Steps)+len(p.Iterations) == 0 || c.Parked != nil {
			row("child", childLine(c))
		}
	}
	row("untrusted", tookIn(p.Taint.Untrusted))
	row("private", tookIn(p.Taint.Private))
	if p.Taint.Untrusted != nil && p.Taint.Private != nil {
		row("taint", "the run has untrusted text and private data: calls that can send need an approval and the provider's own tools are withheld, unless tools.rule_of_two or tools.may_send says otherwise")
	}
	row("hidden", view.HiddenText(p.Hidden))
	for _, d := range p.Allowed {
		name := "allowed"
		if d.Permission.Deny {
			name = "denied"
		}
		row(name, fmt.Sprintf("%s (by %s, with call %s)", firstLine(d.Permission.String(), 200), firstLine(d.By, 60), d.CallID))
	}
	row("checksum", p.Head)
	for _, h := range p.Hooks {
		row("hook", firstLine(hookText(h), 200))
	}
	if d := p.Parked; d != nil && len(p.questions) == 0 {
		row("because", firstLine(d.Detail, 200))
		if p.Answered || p.Expired {
			d = &event.RunParked{}
		}
		row("continue", p.goingOn(*d, pawl))
	}
	p.waiting(row)
	for _, q := range p.questions {
		questionRows(q, p.Run, time.Now(), pawl, row)
	}
}

// goingOn returns the command that resumes the run.
func (p *page) goingOn(d event.RunParked, pawl string) string {
	if p.Parent != "" && d.Limit == "" && !p.ofProgram && p.replays == "" {
		return pawl + " runs resume " + toResume(p.Run)
	}
	return (&nextStep{pawl: pawl, view: &view.View{Account: p.Account}, origin: p.origin}).resumeText(p.ID, d)
}

func (p *page) driver(now time.Time, pawl string) string {
	goOn := "continue with '" + pawl + " runs resume " + toResume(p.Run) + "'"
	switch {
	case p.replays != "":
		goOn = notGoingOn(p.replays, pawl)
	case p.ofProgram:
		goOn = "it continues " + inProgram
	}
	switch {
	case control.Driven(p.Run, now) && holder.Gone(p.Owner):
		return control.Driver(p.Owner) + ", which has died; " + goOn
	case control.Driven(p.Run, now):
		return control.Driver(p.Owner)
	}
	return "none; " + goOn
}

// stepLines lists the steps of a workflow, or the iterations of a loop.
func (p *page) stepLines(b *strings.Builder) {
	for i, it := range p.Iterations {
		if i == 0 {
			b.WriteString("\n")
		}
		b.WriteString(strings.Join(it.Text(fmt.Sprintf("%3d", it.Iteration)), "\n") + "\n")
	}
	for i, l := range p.Steps {
		if i == 0 {
			b.WriteString("\n")
		}
		b.WriteString(l.Text() + "\n")
	}
}

func (p *page) cycles(b *strings.Builder, k ink) {
	if len(p.PerCycle) == 0 {
		return
	}
	largest := p.largest()
	fmt.Fprintf(b, "\n%s\n", k.legend())
	for i := range p.PerCycle {
		c := &p.PerCycle[i]
		fmt.Fprintf(b, "cycle %-3d %s %7d in (%6d cached) %6d out  %s  %s  %s\n",
			c.Cycle, k.bar(c.Usage, largest), c.Usage.Input, c.Usage.CacheRead, c.Usage.Output, usd(c.USD, c.Usage), share(c), cycleDid(c))
		for _, h := range c.Hooks {
			fmt.Fprintf(b, "          %s\n", firstLine(hookText(h), 200))
		}
		for _, d := range c.CacheBreaks {
			fmt.Fprintf(b, "          %s\n", cacheBreak(d))
		}
	}
}

// hookText returns what a hook did, even if that was nothing.
func hookText(d event.HookResult) string {
	return cmp.Or(view.HookLine(d), strings.TrimSpace(d.CallID+" hook "+d.Hook+" ran"))
}

// cycleDid returns what a cycle did in one line.
func cycleDid(c *view.CycleLine) string {
	var parts []string
	if c.Text != "" {
		parts = append(parts, firstLine(c.Text, 60))
	}
	for _, call := range c.Calls {
		parts = append(parts, "→ "+firstLine(call, 40))
	}
	if c.Errors > 0 {
		parts = append(parts, plural(c.Errors, "failed call"))
	}
	if c.Retries > 0 {
		parts = append(parts, plural(c.Retries, "further attempt"))
	}
	return strings.Join(parts, "  ")
}

func (p *page) outcome(b *strings.Builder) error {
	if p.Outcome == nil {
		return nil
	}
	var o event.Outcome
	if err := json.Unmarshal(p.Outcome, &o); err != nil {
		return fmt.Errorf("read the outcome of %s: %w", p.ID, err)
	}
	fmt.Fprintf(b, "\noutcome   %s, %s, ok %t, completed %t\n", o.Status, reason(o), o.OK, o.Completed)
	if p.Because != "" {
		fmt.Fprintf(b, "because   %s\n", firstLine(p.Because, 300))
	}
	if o.Error != nil {
		fmt.Fprintf(b, "error     %s\n", harmless(o.Error.Message)+request(o.Error.RequestID))
	}
	if o.NextSafeAction != "" {
		fmt.Fprintf(b, "next      %s\n", o.NextSafeAction)
	}
	if o.FinalOutput != "" {
		fmt.Fprintf(b, "\n%s\n", harmless(o.FinalOutput))
	}
	return nil
}
