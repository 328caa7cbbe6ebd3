package agent

import (
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/rules/fence"
	"github.com/pawlrun/pawl/internal/rules/history"
	"github.com/pawlrun/pawl/llm"
)

// messages are the conversation, as requests hold it.
type messages struct {
	// system is the owner's text, and what the model must know of fences.
	system  string
	history history.History
	// unread are those that came while the run went, and join the conversation with
	// its next cycle.
	unread []*llm.Message
	fence  fence.Fence
	// workload is the first of the runs that continue one another, or share
	// events as forks do: their requests have a prefix in common.
	workload string
	size     size
}

// received takes in a message that came while the run went.
func (m *messages) received(d event.InputReceived) {
	if said := d.Message(); said != nil {
		m.unread = append(m.unread, said)
	}
}

// read lets what came join the conversation.
func (m *messages) read() {
	m.history.Append(m.unread...)
	m.unread = nil
}

// unreadSize is that of the messages that came, in bytes.
func (m *messages) unreadSize() (n int64) {
	for _, said := range m.unread {
		n += messageSize(said)
	}
	return n
}

// toldResults are the results of calls as the model sees them.
func (m *messages) toldResults(calls []*call) []llm.ToolResult {
	results := make([]llm.ToolResult, len(calls))
	for i, c := range calls {
		results[i] = llm.ToolResult{
			CallID: c.ref.CallID, Name: c.ref.Name,
			Output: c.told(m.shown(c.result)), IsError: c.result.IsError, Media: c.result.Media, Tools: c.result.Tools, Pin: c.result.Pin,
		}
	}
	return results
}

// withoutTask parks a run that has nothing to answer yet.
func (m *messages) withoutTask(cycle int) machine.Action {
	if cycle > 0 || len(m.unread) > 0 || m.history.AwaitsAnswer() {
		return nil
	}
	return record(event.RunParked{Reason: event.ParkInput, Detail: "the run has no task yet"})
}

// measure looks at the messages that are new: how large they are, and whether a
// provider would take them.
func (m *messages) measure(tools []llm.ToolDef) {
	_, _ = m.history.Messages() // says so again to who would send them
	m.size.measure(m.history.All(), tools)
}

func (m *messages) fixedSize(cfg *Config) int64 {
	n := int64(len(m.system)) + hostedTokens*int64(len(cfg.ProviderTools))
	if len(cfg.Schema) > 0 {
		n += schemaOverhead + int64(len(cfg.Schema))
	}
	if len(cfg.Tools) > 0 {
		n += toolWords
	}
	for _, t := range cfg.Tools {
		n += toolSize(t)
	}
	return n
}

// shown is a result's text as the model sees it.
func (m *messages) shown(d *event.ToolResult) string {
	if !d.Untrusted {
		return d.Output
	}
	text := d.Output
	if len(d.Media) > 0 && m.fence.Active() {
		// What an image says has no place between two marks: they say that it is there.
		text = strings.TrimPrefix(text+"\n"+besideText, "\n")
	}
	return m.fence.Wrap(d.Tool, text)
}

const besideText = "[The images and files of this result come from outside, too.]"

// quoted is what a note of the loop repeats of a call. Once a run has taken in
// text of strangers, the model's arguments, and what policy says of them, may be
// their words: they stand behind the fence, or, where there is none, nowhere.
func (m *messages) quoted(taint event.Taint, tool, text string) string {
	switch {
	case taint.Untrusted == nil:
		return text
	case !m.fence.Active():
		return "[…]"
	}
	return m.fence.Wrap(tool, text)
}

// instead is an output in the place of another one: it stands behind the fence
// that the other one stood behind.
func (m *messages) instead(output string) func(before llm.ToolResult) string {
	return func(before llm.ToolResult) string {
		if m.fence.Wraps(before.Output) {
			return m.fence.Wrap(before.Name, output)
		}
		return output
	}
}
