package agent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/tree"
	"github.com/pawlrun/pawl/internal/rules/fence"
	"github.com/pawlrun/pawl/internal/rules/history"
	"github.com/pawlrun/pawl/llm"
)

// turn is state about answers that outlives their cycle: the text that the run would
// end with, and counts of odd answers in a row.
type turn struct {
	// answer is the text of the last answer with the parts that it continues, and said
	// the last one that is not blank.
	answer string
	said   string
	// all is the text of all answers, if that is the run's output.
	all string
	// resultAsked reports whether the model was asked for its result.
	resultAsked bool
	// unfinished reports whether the next answer continues this one.
	unfinished bool

	nudges      int
	empties     int
	truncations int
	malformed   int
	pauses      int

	// checked is the result of validating this cycle's answer against the run's schema,
	// nil before that; invalid counts the answers that failed.
	checked *event.AnswerChecked
	invalid int
}

// answered folds an answer's text. A truncated or paused answer is one text with its
// continuation; a truncated JSON value is requested again, whole.
func (t *turn) answered(d *event.ModelResponse, calls int, value, all bool) {
	text := llm.Parts(d.Parts).Text()
	t.appendAll(text, all)
	if t.unfinished {
		text = t.answer + text
	}
	t.answer = text
	if strings.TrimSpace(text) != "" {
		t.said = text
	}
	t.unfinished = calls == 0 && (d.FinishReason == llm.FinishLength && !value || d.FinishReason == llm.FinishPause)
}

func (t *turn) appendAll(text string, all bool) {
	if !all || strings.TrimSpace(text) == "" {
		return
	}
	if t.all != "" && !t.unfinished {
		t.all += "\n\n"
	}
	t.all += text
}

// settled counts the odd answers in a row, once their cycle is over.
func (t *turn) settled(d *event.ModelResponse, calls int, truncated bool) {
	count := func(n *int, hit bool) {
		if hit {
			*n++
		} else {
			*n = 0
		}
	}
	f := d.FinishReason
	count(&t.empties, f == llm.FinishEnd && calls == 0 && !spoken(llm.Parts(d.Parts)))
	count(&t.truncations, truncated)
	count(&t.pauses, f == llm.FinishPause)
	count(&t.malformed, malformed(f, calls))
	if calls > 0 {
		t.nudges = 0
	}
}

// malformed reports whether the model tried to call a tool and failed. That includes a
// finish "tool" without a call: it is no final answer.
func malformed(f llm.Finish, calls int) bool {
	return f == llm.FinishMalformed || f == llm.FinishTool && calls == 0
}

// runnable reports whether the calls of an answer with this finish may run: their
// presence counts, not the provider's name for the finish.
func runnable(f llm.Finish) bool {
	return f == llm.FinishTool || f == llm.FinishEnd || f == llm.FinishPause
}

// spoken reports whether an answer has content: text, a call, or an item.
func spoken(parts llm.Parts) bool {
	for _, p := range parts {
		switch p := p.(type) {
		case llm.Text:
			if strings.TrimSpace(p.Text) != "" {
				return true
			}
		case llm.Reasoning:
		default:
			return true
		}
	}
	return false
}

// sentence joins the parts of a reason or a message, skipping empty ones.
func sentence(parts ...string) string {
	kept := parts[:0]
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, ": ")
}

// messages is the conversation, as requests contain it.
type messages struct {
	// system is the owner's text, and the explanation of fences.
	system  string
	history history.History
	// unread are messages that arrived during the run. They join the conversation with
	// its next cycle, or at its end.
	unread []unread
	fence  fence.Fence
	// workload is the first of the runs that continue one another, or share events as
	// forks do: their requests have a common prefix.
	workload string
	size     size
}

// unread is a message that arrived during the run.
type unread struct {
	message *llm.Message
	// command is the command that brought it, and later as in [event.InputReceived].
	command int64
	later   bool
}

// received adds a message that arrived during the run, in the place of the one that it
// replaces.
func (m *messages) received(d event.InputReceived) {
	said := unread{message: d.Message(), command: d.Command, later: d.Later}
	at := slices.IndexFunc(m.unread, func(u unread) bool { return d.Replaces != 0 && u.command == d.Replaces })
	switch {
	case at >= 0 && said.message == nil:
		m.unread = slices.Delete(m.unread, at, at+1)
	case at >= 0:
		m.unread[at] = said
	case said.message != nil:
		m.unread = append(m.unread, said)
	}
}

// due returns the unread messages that the next cycle reads.
func (m *messages) due() (due []*llm.Message) {
	for _, u := range m.unread {
		if !u.later {
			due = append(due, u.message)
		}
	}
	return due
}

// read moves the messages that are due into the conversation; at the end of the run all
// of them.
func (m *messages) read(end bool) {
	m.history.Append(m.due()...)
	m.unread = slices.DeleteFunc(m.unread, func(u unread) bool { return !u.later })
	if end {
		for _, u := range m.unread {
			m.history.Append(u.message)
		}
		m.unread = nil
	}
}

// unreadSize returns the size of the unread messages in bytes.
func (m *messages) unreadSize() (n int64) {
	for _, said := range m.due() {
		n += messageSize(said)
	}
	return n
}

// modelResults returns the results of calls as the model sees them.
func (m *messages) modelResults(calls []*call) []llm.ToolResult {
	results := make([]llm.ToolResult, len(calls))
	for i, c := range calls {
		results[i] = llm.ToolResult{
			CallID: c.ref.CallID, Name: cmp.Or(c.said, c.ref.Name),
			Output: c.modelOutput(m.resultText(c.result)), IsError: c.result.IsError, Media: c.result.Media, Tools: c.result.Tools, Pin: c.result.Pin,
		}
	}
	return results
}

// withoutTask parks a run that has no task yet.
func (m *messages) withoutTask(cycle int) machine.Action {
	if cycle > 0 || len(m.due()) > 0 || m.history.AwaitsAnswer() {
		return nil
	}
	return record(event.RunParked{Reason: event.ParkInput, Detail: "the run has no task yet"})
}

// measure measures the new messages, and checks whether a provider would accept them.
func (m *messages) measure(tools []llm.ToolDef) {
	_, _ = m.history.Messages() // the caller that sends them gets the error again
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
	for _, t := range cfg.namedTools() {
		n += toolSize(t)
	}
	return n
}

// resultText returns a result's text as the model sees it.
func (m *messages) resultText(d *event.ToolResult) string {
	if !d.Untrusted {
		return d.Output
	}
	text := d.Output
	if len(d.Media) > 0 && m.fence.Active() {
		// Text in an image cannot be placed between markers, so they mention the image.
		text = strings.TrimPrefix(text+"\n"+besideText, "\n")
	}
	return m.fence.Wrap(d.Tool, text)
}

const besideText = "[The images and files of this result come from outside, too.]"

// quoted returns the part of a call that a note of the loop repeats. Once a run has
// read untrusted text, the model's arguments, and policy's reasons about them, may
// contain it: they are fenced, or left out without a fence.
func (m *messages) quoted(taint event.Taint, tool, text string) string {
	switch {
	case taint.Untrusted == nil:
		return text
	case !m.fence.Active():
		return "[…]"
	}
	return m.fence.Wrap(tool, text)
}

// instead replaces an output, inside the same fence.
func (m *messages) instead(output string) func(before llm.ToolResult) string {
	return func(before llm.ToolResult) string {
		if m.fence.Wraps(before.Output) {
			return m.fence.Wrap(before.Name, output)
		}
		return output
	}
}

// applyForked continues another run's events as a run of its own. The other run's
// spending and its pending requests do not belong to this run; the count of cycles and
// the prefix of the requests continue.
func (m *Machine) applyForked(e *event.Event, d event.RunForked) error {
	if m.run.phase == phaseTools || m.run.phase == phaseEnding || m.model.inFlight {
		return fmt.Errorf("%w: run %s forks amid an open call of cycle %d", ErrMisfit, e.Run, m.run.cycle)
	}
	target := m.model.target
	if len(d.Config) > 0 {
		m.run.cfg, target = Config{}, 0
		if err := json.Unmarshal(d.Config, &m.run.cfg); err != nil {
			return fmt.Errorf("agent: decode config of fork %s: %w", e.Run, err)
		}
		m.permissions.policy = m.run.cfg.Policy.Version()
		if len(m.run.cfg.Targets) == 0 {
			return fmt.Errorf("agent: fork %s names no model", e.Run)
		}
		if m.run.cycle == 0 {
			m.hooks.before = hooks{due: m.run.cfg.hookAfter(nil, event.HookBeforeRun, "")}
		}
	}
	m.messages.system = prompt(m.run.cfg.System, m.messages.fence.Active())
	for _, r := range d.Results {
		if !m.messages.history.Replace(r.CallID, m.messages.instead(r.Output)) {
			return fmt.Errorf("%w: fork %s changes the result of %s, which has none", ErrMisfit, e.Run, r.CallID)
		}
		if c := m.calls.touch(r.CallID); c != nil && c.result != nil {
			c.result = &event.ToolResult{CallID: c.result.CallID, Tool: c.result.Tool, Output: r.Output, Untrusted: c.result.Untrusted, Private: c.result.Private}
		}
	}
	m.run.Account = tree.Account{Spent: budget.Spent{Cycles: m.run.cycle}}
	m.account, m.permissions.added, m.permissions.redefined = account{}, nil, nil
	if len(d.Config) > 0 || len(d.Results) > 0 {
		// A count that was reported for another prompt bounds nothing.
		m.messages.size = size{fixed: m.messages.fixedSize(&m.run.cfg)}
		m.compaction.begin()
	}
	m.model.attempt = attempt{number: 1, target: target}
	m.run.Parked, m.run.Cancel, m.run.pause, m.calls.stopBudget = nil, nil, false, ""
	return nil
}
