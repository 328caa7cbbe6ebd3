package agent

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/tree"
	"github.com/pawlrun/pawl/internal/rules/fence"
	"github.com/pawlrun/pawl/internal/rules/history"
	"github.com/pawlrun/pawl/llm"
)

// turn is what is remembered of answers beyond their cycle: the text that the
// run would end with, and how often in a row something odd has happened.
type turn struct {
	// answer is the text of the last answer with what it went on from, said
	// the last one that is not blank.
	answer string
	said   string
	// all is the text of all answers, where the run's output is that.
	all string
	// resultAsked reports whether the model was asked for its result.
	resultAsked bool
	// unfinished: the next answer goes on where this one stopped.
	unfinished bool

	nudges      int
	empties     int
	truncations int
	malformed   int
	pauses      int

	// checked is what became of this cycle's answer when it was held against the
	// run's schema, nil before that; invalid counts those that did not fit.
	checked *event.AnswerChecked
	invalid int
}

// answered takes in an answer's text. An answer that was cut off or paused is one
// text with what follows it; a JSON value that was cut off is given again, whole.
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

// settled counts the answers in a row that were odd, once their cycle is over.
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

// malformed reports whether the model meant to call a tool and did not manage to. A
// finish "tool" without a call is that, too: it is no final answer (ALF-13).
func malformed(f llm.Finish, calls int) bool {
	return f == llm.FinishMalformed || f == llm.FinishTool && calls == 0
}

// runnable reports whether the calls of an answer with this finish may run: what
// counts is that they are there, not what the provider called it.
func runnable(f llm.Finish) bool {
	return f == llm.FinishTool || f == llm.FinishEnd || f == llm.FinishPause
}

// spoken reports whether an answer holds something: text, a call, or an item.
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

// sentence joins what a reason or a message is made of, skipping what is empty.
func sentence(parts ...string) string {
	kept := parts[:0]
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, ": ")
}

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

// applyForked continues another run's events as a run of its own. The other
// run's spending and its pending requests do not belong to this run; the count
// of cycles and the prefix of the requests continue.
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
		// What was reported of another prompt bounds nothing.
		m.messages.size = size{fixed: m.messages.fixedSize(&m.run.cfg)}
		m.compaction.begin()
	}
	m.model.attempt = attempt{number: 1, target: target}
	m.run.Parked, m.run.Cancel, m.run.pause, m.calls.stopBudget = nil, nil, false, ""
	return nil
}
