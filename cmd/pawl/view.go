package main

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// view shows a run's events.
type view interface{ show(event.Event) error }

// jsonView prints one event a line.
type jsonView struct{ out io.Writer }

func (v *jsonView) show(e event.Event) error {
	b, err := json.Marshal(&e)
	if err != nil {
		return err
	}
	_, err = v.out.Write(append(b, '\n'))
	return err
}

// textView prints progress to stderr and the answer to stdout.
type textView struct{ out, err io.Writer }

func (v *textView) show(e event.Event) error {
	switch d := e.Data.(type) {
	case event.RunStarted:
		v.line("run %s: %s", e.Run, d.Name)
		for _, w := range d.Warnings {
			v.line("warning: %s", w)
		}
	case event.CycleStart:
		v.line("cycle %d/%d", d.Cycle, d.MaxCycles)
	case event.ModelResponse:
		if text := firstLine(llm.Parts(d.Parts).Text(), 100); text != "" {
			v.line("  %s", text)
		}
	case event.ModelRetrying:
		v.line("  retrying in %d ms: %s", d.DelayMs, firstLine(d.Reason, 100))
	case event.ToolCall:
		v.line("  → %s", firstLine(label(d), 100))
	case event.ToolResult:
		mark := "✓"
		if d.IsError {
			mark = "✗"
		}
		v.line("  %s %s %s", mark, d.Tool, firstLine(d.Output, 80))
	case event.ToolPendingApproval:
		v.line("  ? %s %s needs an approval", d.CallID, d.Tool)
	case event.RunParked:
		v.line("parked: %s %s", d.Reason, d.Detail)
		v.line("go on with: pawl runs resume %s", e.Run)
	case event.RunCompleted:
		return v.end(e, d.Outcome)
	}
	return nil
}

func (v *textView) end(e event.Event, o event.Outcome) error {
	cost := "no model call"
	if o.Cost != nil {
		cost = fmt.Sprintf("USD %.4f", o.Cost.USD)
		if !o.Cost.Priced {
			cost += " (some calls have no known price)"
		}
	}
	v.line("%s: %s after %d cycle(s), %d tokens in, %d out, %s", o.Status, o.Reason, o.Cycles, o.Usage.Input, o.Usage.Output, cost)
	if o.Error != nil {
		v.line("error: %s", o.Error.Message)
	}
	if o.NextSafeAction != "" {
		v.line("next: %s", o.NextSafeAction)
	}
	v.line("head: %s", headOf(&e))
	if o.FinalOutput == "" {
		return nil
	}
	_, err := fmt.Fprintln(v.out, o.FinalOutput)
	return err
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

func (v *textView) line(format string, args ...any) {
	fmt.Fprintf(v.err, format+"\n", args...)
}

func label(d event.ToolCall) string {
	if d.Describe != "" {
		return d.Describe
	}
	return d.Tool + " " + string(d.Args)
}

func parseTimeout(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("--timeout is %q; it must be a duration like 90s or 10m", s)
	}
	return d, nil
}
