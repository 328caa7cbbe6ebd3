package view

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/view/terminal"
	"github.com/pawlrun/pawl/llm"
)

// HookLine returns what a hook did in one line, empty for a hook that only let things
// continue.
func HookLine(d event.HookResult) string {
	did := ""
	switch {
	case d.Failed && d.Decision == event.HookBlock:
		did = "failed, and so blocks"
	case d.Failed:
		did = "failed"
	case d.Decision == event.HookBlock && d.Stage == event.HookAfterTool:
		did = "withheld the result"
	case d.Decision == event.HookBlock:
		did = "blocked"
	case d.Decision == event.HookRewrite && d.Stage == event.HookAfterTool:
		did = "replaced the output"
	case d.Decision == event.HookRewrite:
		did = "changed the arguments to " + string(d.Args)
	case d.Decision == event.HookAsk:
		did = "asks for a decision"
	default:
		return ""
	}
	line := "hook " + d.Hook + " " + did
	if d.Reason != "" {
		line += ": " + d.Reason
	}
	if d.CallID != "" {
		line = d.CallID + " " + line
	}
	return line
}

// Leaving describes in one line what a compaction removed and what remained.
func Leaving(d event.HistoryCompressed) string {
	var parts []string
	if d.Dropped > 0 {
		parts = append(parts, Plural(d.Dropped, "message")+" left ("+places(d.Removed)+")")
	}
	for _, of := range []struct {
		n    int
		what string
	}{{len(d.Cleared), "cleared"}, {len(d.Clamped), "shortened"}, {len(d.Repeated), "dropped as repeated"}} {
		if of.n > 0 {
			parts = append(parts, Plural(of.n, "result")+" "+of.what)
		}
	}
	kept := fmt.Sprintf("%d kept", d.Kept)
	if d.Summary != "" {
		kept += " with the summary"
		if d.Usage != nil {
			kept += fmt.Sprintf(", which took %d tokens in, %d out", d.Usage.Input, d.Usage.Output)
		}
		if d.Cost != nil {
			kept += ", " + Money(d.Cost, *cmp.Or(d.Usage, &llm.Usage{}))
		}
	}
	return strings.Join(append(parts, kept), ", ")
}

// places names ranges of messages, counted from 1.
func places(ranges []event.MessageRange) string {
	parts := make([]string, len(ranges))
	for i, r := range ranges {
		if parts[i] = fmt.Sprint(r.From + 1); r.To > r.From+1 {
			parts[i] += fmt.Sprintf(" to %d", r.To)
		}
	}
	return strings.Join(parts, ", ")
}

// CheckpointHead returns a checkpoint in one line.
func CheckpointHead(d event.Checkpoint) string {
	head := d.Label
	if d.Number > 0 {
		head += fmt.Sprintf(" after iteration %d", d.Number)
	}
	if d.Verdict != "" {
		head += ": " + string(d.Verdict)
	}
	return firstLine(head, 200)
}

// AskedBy returns the setting of the agent file, or the rule of Pawl, that makes a call
// wait for a decision, and the reason.
func AskedBy(d event.Question) string {
	var parts []string
	if d.Rule != "" {
		parts = append(parts, "asked by "+d.Rule)
	}
	if d.Reason != "" {
		parts = append(parts, "because "+d.Reason)
	}
	return strings.ReplaceAll(terminal.Marked(strings.Join(parts, ", ")), "\n", " ")
}

// InputText returns a message that arrived during the run: its text and the names of
// its files.
func InputText(d event.InputReceived) string {
	words := make([]string, 0, 1+len(d.Media))
	if d.Text != "" {
		words = append(words, d.Text)
	}
	for _, f := range d.Media {
		words = append(words, "["+strings.TrimSpace(f.MediaType+" "+f.Name)+"]")
	}
	if d.Mode != "" {
		words = append(words, "[mode: "+d.Mode+"]")
	}
	return strings.Join(words, " ")
}

func NamesOf(files []llm.Media) []string {
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSpace(f.MediaType+" "+f.Name))
	}
	return names
}

// HiddenOf returns the tools that a run does not offer, from the configuration in its
// first event.
func HiddenOf(config json.RawMessage) []agent.HiddenTool {
	var c struct {
		Hidden []agent.HiddenTool `json:"hidden"`
	}
	if json.Unmarshal(config, &c) != nil {
		return nil
	}
	return c.Hidden
}

func HiddenText(hidden []agent.HiddenTool) string {
	parts := make([]string, len(hidden))
	for i, h := range hidden {
		parts[i] = h.Tool + " (" + h.Rule + ")"
	}
	return strings.Join(parts, ", ")
}

// Dollars formats a price with cents, and with more digits below one dollar.
func Dollars(usd float64) string {
	if text := trimZeros(fmt.Sprintf("%.4f", usd)); len(text)-strings.IndexByte(text+".", '.') > 3 {
		return text
	}
	return fmt.Sprintf("%.2f", usd)
}

func trimZeros(s string) string { return strings.TrimRight(strings.TrimRight(s, "0"), ".") }

// Lasting formats a duration: to a tenth of a second below a minute, to a second above.
func Lasting(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(time.Second / 10).String()
	}
	return d.Round(time.Millisecond).String()
}

// HeadAndTail returns the first and the last lines of a text.
func HeadAndTail(text string, head, tail int) []string {
	text = strings.TrimRight(strings.TrimLeft(text, "\r\n"), " \t\r\n")
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	left := len(lines) - head - tail
	if left < 2 { // a line about omitted lines takes up a line too
		return lines
	}
	between := "… " + Plural(left, "line") + " …"
	return append(append(lines[:head:head], between), lines[len(lines)-tail:]...)
}

func Reason(o event.Outcome) string {
	if o.Kind == "" {
		return string(o.Reason)
	}
	return string(o.Reason) + " (" + o.Kind + ")"
}

func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Money returns the cost of calls with a usage.
func Money(c *llm.Cost, u llm.Usage) string {
	switch {
	case c == nil:
		return "no model call"
	case !c.Priced && u.Estimated:
		return fmt.Sprintf("about USD %.4f (some calls have no known price, of some the usage is not known)", c.USD)
	case !c.Priced:
		return fmt.Sprintf("at least USD %.4f (some calls have no known price)", c.USD)
	}
	return USD(c.USD, u)
}

// USD returns an amount. The amount of a call without an answer is an upper bound.
func USD(amount float64, u llm.Usage) string {
	if u.Estimated && amount > 0 {
		return fmt.Sprintf("at most USD %.4f", amount)
	}
	return fmt.Sprintf("USD %.4f", amount)
}

// Checksum returns the hash of the run's last event: kept elsewhere, it lets verify
// detect a rewritten journal.
func Checksum(e *event.Event) string {
	body, err := event.Encode(e)
	if err != nil {
		return ""
	}
	return event.Hash(body)
}

func Label(d event.ToolCall) string {
	if by := d.EditedBy; by != "" {
		d.EditedBy = ""
		return Label(d) + " (edited by " + by + ")"
	}
	if d.Describe != "" {
		return d.Describe
	}
	return d.Tool + " " + string(d.Args) + d.ArgsText
}
