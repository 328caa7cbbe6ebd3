package acpserver

import (
	"fmt"
	"strings"

	"github.com/coder/acp-go-sdk"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/view/terminal"
	"github.com/pawlrun/pawl/tool"
)

// terminalOutput is the _meta key of terminals that a client displays but does not run. In
// the client's capabilities it declares support; in an update it carries output. It is a
// convention of clients, not a part of the protocol, whose own terminals run commands in the
// client.
const terminalOutput = "terminal_output"

// sentCall is a call that the client was sent.
type sentCall struct {
	kind acp.ToolKind
	// terminal reports that a terminal of the client shows the output.
	terminal bool
	// text is the end of what the attempt has printed, and next the place behind it. shown
	// is the length of text that a terminal was sent.
	text    string
	attempt int
	next    int64
	shown   int
}

// maxShown bounds the output that is sent again with each piece.
const maxShown = 16 << 10

// print adds a piece of the output.
func (c *sentCall) print(d *event.ToolOutput) {
	if d.Attempt != c.attempt {
		c.attempt, c.text, c.next, c.shown = d.Attempt, "", 0, 0
	}
	if missing := d.At - c.next; missing > 0 {
		c.text += fmt.Sprintf("\n[… %d bytes left out …]\n", missing)
	}
	c.text += d.Text
	c.next = d.At + int64(len(d.Text))
	if over := len(c.text) - 2*maxShown; over > 0 {
		c.text, c.shown = strings.ToValidUTF8(c.text[over:], ""), max(0, c.shown-over)
	}
}

// pending returns the output that a terminal was not sent yet. A line that a program may
// still overwrite waits for its end, so that no escape sequence is divided.
func (c *sentCall) pending(ended bool) string {
	text := c.text[c.shown:]
	if line := strings.LastIndexByte(text, '\n') + 1; !ended && strings.ContainsAny(text[line:], "\r\b\x1b") {
		text = text[:line]
	}
	c.shown += len(text)
	return harmless(text)
}

// harmless returns what a terminal would show of an output.
func harmless(output string) string {
	text, _ := tool.Screen(output)
	return terminal.Harmless(text)
}

// printed returns the update with a piece of the output of a command that runs: what its
// terminal does not show yet, or the end of the output so far.
func (t *translator) printed(d *event.ToolOutput) []acp.SessionUpdate {
	c := t.calls[d.CallID]
	if c == nil || c.kind != acp.ToolKindExecute {
		return nil
	}
	c.print(d)
	u := acp.UpdateToolCall(acp.ToolCallId(d.CallID), acp.WithUpdateStatus(acp.ToolCallStatusInProgress))
	if !c.terminal {
		text := harmless(c.text)
		text = strings.ToValidUTF8(text[max(0, len(text)-maxShown):], "")
		u.ToolCallUpdate.Content = []acp.ToolCallContent{acp.ToolContent(acp.TextBlock(fenced(text)))}
		return []acp.SessionUpdate{u}
	}
	text := c.pending(false)
	if text == "" {
		return nil
	}
	u.ToolCallUpdate.Meta = inTerminal(d.CallID, text)
	return []acp.SessionUpdate{u}
}

// inTerminal returns the output of a terminal as the client reads it.
func inTerminal(id, text string) map[string]any {
	return map[string]any{terminalOutput: map[string]any{"terminal_id": id, "data": text}}
}

// result returns the update that ends a call. A successful edit keeps the difference that
// the client already shows.
func (t *translator) result(d *event.ToolResult) acp.SessionUpdate {
	c := t.calls[d.CallID]
	if c == nil {
		c = &sentCall{}
	}
	status, edits := acp.ToolCallStatusCompleted, c.kind == acp.ToolKindEdit
	if d.IsError {
		status, edits = acp.ToolCallStatusFailed, false
	}
	u := acp.UpdateToolCall(acp.ToolCallId(d.CallID), acp.WithUpdateStatus(status))
	text := terminal.Harmless(d.Output)
	switch {
	case c.terminal:
		u.ToolCallUpdate.Meta = inTerminal(d.CallID, c.rest(text))
		u.ToolCallUpdate.Meta["terminal_exit"] = map[string]any{"terminal_id": d.CallID, "exit_code": d.ExitCode, "signal": nil}
	case d.Output == "" || edits:
	case c.kind == acp.ToolKindExecute:
		u.ToolCallUpdate.Content = []acp.ToolCallContent{acp.ToolContent(acp.TextBlock(fenced(text)))}
	default:
		u.ToolCallUpdate.Content = []acp.ToolCallContent{acp.ToolContent(acp.TextBlock(text))}
	}
	return u
}

// rest returns what a terminal does not show yet of a result: all of it if nothing was
// printed live, otherwise the rest of the output and a last line that the program did not
// print, such as why a call was stopped.
func (c *sentCall) rest(result string) string {
	if c.text == "" {
		return result
	}
	rest := c.pending(true)
	last := strings.TrimRight(result, "\n")
	if last = last[strings.LastIndexByte(last, '\n')+1:]; !strings.Contains(harmless(c.text), last) {
		rest += "\n" + last
	}
	return rest
}

// fenced returns the output of a command as a block of code, because clients show text as
// Markdown.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "console\n" + strings.TrimRight(text, "\n") + "\n" + fence
}
