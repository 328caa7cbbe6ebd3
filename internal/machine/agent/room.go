package agent

import (
	"bytes"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/rules/compact"
	"github.com/pawlrun/pawl/llm"
)

// size tracks the maximum size of the next request: the provider's report on the last
// one, and the bytes since. It counts each message once.
type size struct {
	// fixed is the prompt and the tools, total the messages, in bytes.
	fixed int64
	total int64
	// reported is the last request with its answer, in tokens of model, and since the
	// bytes of the messages from then on.
	reported int64
	model    string
	from     int
	since    int64
	// counted is the number of messages in total.
	counted int
	// least is the next request's minimum size in tokens, learned from a refusal.
	least int64
}

const (
	// messageOverhead and partOverhead allow for what a provider writes around a
	// message and a part.
	messageOverhead = 16
	partOverhead    = 32
	// mediaTokens is more than any provider counts for one image, and
	// documentTokens more than one counts for one document of pages.
	mediaTokens    = 8192
	documentTokens = 300_000
	// hostedTokens allows for a tool that the provider describes itself, and toolWords
	// for its general text about tools.
	hostedTokens = 4096
	toolWords    = 1024
	// schemaOverhead allows for the words around a schema in the system text.
	schemaOverhead = 256
	// bytesPerToken is the average of text; in the worst case it is 1.
	bytesPerToken = 4
)

func toolSize(t llm.ToolDef) int64 {
	return partOverhead + int64(len(t.Name)+len(t.Description)+len(t.Schema))
}

// answered folds a provider's report; next is the first message that the report does
// not cover.
func (s *size) answered(d *event.ModelResponse, next int) {
	if d.Usage.Estimated || d.Usage.Input <= 0 {
		return
	}
	s.reported, s.model = d.Usage.Input+d.Usage.Output+partOverhead*int64(1+len(d.ToolCalls)), d.Model
	s.from, s.since, s.least = next, 0, 0
}

// measure counts the new messages, with the definitions of tools that they contain. A
// history that became shorter is counted again.
func (s *size) measure(messages []*llm.Message, tools []llm.ToolDef) {
	if len(messages) < s.counted {
		s.total, s.since, s.counted, s.reported, s.from, s.least = 0, 0, 0, 0, 0, 0
	}
	for i, m := range messages[s.counted:] {
		n := messageSize(m) + foundSize(m, tools)
		s.total += n
		if s.counted+i >= s.from {
			s.since += n
		}
	}
	s.counted = len(messages)
}

// tokens returns an upper bound of the next request, and the expected size. A token has
// at least one byte. Another model may count the known part twice.
func (s *size) tokens(model string, unread int64) (worst, likely int64) {
	all := s.fixed + s.total + unread
	if s.reported == 0 {
		return all, max(all/bytesPerToken, s.least)
	}
	known := s.reported
	if model != s.model {
		known *= 2
	}
	return min(all, known+s.since+unread), max(s.reported+(s.since+unread)/bytesPerToken, s.least)
}

// foundSize returns the size of the tools that a search in a message found: the
// provider, which deferred them so far, reads them there.
func foundSize(m *llm.Message, tools []llm.ToolDef) int64 {
	n := int64(0)
	for _, p := range m.Parts {
		if r, ok := p.(llm.ToolResult); ok && len(r.Tools) > 0 {
			for _, t := range tools {
				if t.Deferred && slices.Contains(r.Tools, t.Name) {
					n += toolSize(t)
				}
			}
		}
	}
	return n
}

func messageSize(m *llm.Message) int64 {
	n := int64(messageOverhead)
	for _, p := range m.Parts {
		n += partOverhead
		switch p := p.(type) {
		case llm.Text:
			n += int64(max(len(p.Text), len(p.Raw)))
		case llm.Reasoning:
			n += int64(max(len(p.Text)+len(p.Signature), len(p.Raw)))
		case llm.ToolCall:
			n += int64(max(len(p.Name)+len(p.Args)+len(p.ArgsText)+len(p.Signature), len(p.Raw)))
		case llm.ToolResult:
			n += int64(len(p.Output))
			for _, media := range p.Media {
				n += mediaSize(media)
			}
		case llm.Media:
			n += mediaSize(p)
		case llm.Item:
			n += int64(len(p.Raw))
		}
	}
	return n
}

// mediaSize returns the size in tokens: a picture's is unrelated to its bytes, and a
// document may be stored elsewhere.
func mediaSize(m llm.Media) int64 {
	switch {
	case strings.HasPrefix(m.MediaType, "image/"):
		return mediaTokens
	case strings.HasPrefix(m.MediaType, "text/") && len(m.Data) > 0:
		return int64(len(m.Data))
	case len(m.Data) == 0:
		return documentTokens
	}
	return min(int64(len(m.Data)), documentTokens)
}

// contextWindow returns the context window of a model: the file's or the model's own,
// or its provider's report if that is smaller or none was known.
func (r *run) contextWindow(of Target) (tokens int, known bool) {
	tokens, known = r.cfg.Compact.WindowFor(of.ContextWindow)
	if learnt := int(r.rooms[of.Model].Window); learnt > 0 && (!known || learnt < tokens) {
		return learnt, true
	}
	return tokens, known
}

// window returns the window for which the conversation is compacted. A limit on the
// size of single requests counts as one: a run compacts before it ends by it.
func (r *run) window(of Target) (tokens int, known bool) {
	tokens, known = r.contextWindow(of)
	if most := int(r.cfg.Limits.MaxRequestTokens); most > 0 && most < tokens {
		return most, true
	}
	return tokens, known
}

// margin is left free in a window beside input and answer, because the input is an
// estimate.
func margin(window int64) int64 { return max(window/64, 64) }

// mostOutput returns the cap on an answer beside an input of a size in tokens: no more
// than the owner allows, the provider accepts, and the window has room for. If that is
// less than an answer needs, the provider decides: if it refuses the request, the
// conversation becomes shorter.
func (r *run) mostOutput(t Target, input int64) int64 {
	most := r.cfg.mostOutput()
	if n := r.rooms[t.Model].Output; n > 0 {
		most = min(most, n)
	}
	if room, known := r.besides(t, input); known {
		most = min(most, max(room, r.leastOutput(t)))
	}
	return most
}

// besides returns the room of the window beside an input.
func (r *run) besides(t Target, input int64) (room int64, known bool) {
	window, known := r.contextWindow(t)
	_, refused := r.rooms[t.Model]
	return int64(window) - input - margin(int64(window)), known && (r.cfg.WindowCaps || refused)
}

// leastOutput is the smallest cap with which a call is worth making.
func (r *run) leastOutput(t Target) int64 {
	least := min(r.cfg.mostOutput(), budget.MinOutput)
	if window, known := r.contextWindow(t); known {
		least = min(least, max(int64(window)/8, 1))
	}
	return least
}

// learn folds what a provider reported about its room when it refused a call, and its
// consequences for the size of the call.
func (m *Machine) learn(d *event.ModelAttemptFailed) {
	known, now := m.run.rooms[d.Model], *d.Room
	if now.Window == 0 {
		now.Window = known.Window
	}
	if now.Output == 0 {
		now.Output = known.Output
	}
	if m.run.rooms == nil {
		m.run.rooms = map[string]llm.Room{}
	}
	m.run.rooms[d.Model] = llm.Room{Window: now.Window, Output: now.Output}
	if d.Class != llm.ClassContextOverflow {
		return
	}
	least, sent := now.Input, int64(m.account.maxTokens)
	switch {
	case least > 0:
	case now.Requested > sent && sent > 0:
		least = now.Requested - sent
	case now.Window > 0 && sent > 0:
		least = now.Window - min(sent, now.Window)/2 // unknown: try half the cap
	}
	if d.Purpose == event.PurposeSummary {
		m.compaction.summary.least = least
	} else {
		m.messages.size.least = least
	}
}

// lowersCap reports whether a call that was refused for its room may fit once its cap
// is lowered.
func (m *Machine) lowersCap(f *event.ModelAttemptFailed) bool {
	return m.model.failures < m.run.cfg.Limits.ModelCalls() && m.lowers(f, m.messages.pricedCall(&m.run, m.target()))
}

// lowersSummary is lowersCap for the summary that is due.
func (m *Machine) lowersSummary(f *event.ModelAttemptFailed, in *compact.Situation) bool {
	s := &m.compaction.summary
	if s.call.failures >= m.run.cfg.Limits.ModelCalls() {
		return false
	}
	plan := m.run.cfg.Compact.Next(*in)
	return plan.Summary != nil && m.lowers(f, m.messages.pricedSummary(&m.run, m.target(), plan.Summary, s.least))
}

func (m *Machine) lowers(f *event.ModelAttemptFailed, again budget.Call) bool {
	sent, least := int64(m.account.maxTokens), m.run.leastOutput(m.target())
	room, known := m.run.besides(m.target(), again.Likely)
	return f.Room != nil && (sent == 0 || again.Output < sent) && again.Output >= least && (!known || room >= least)
}

// cutShort adds results to the conversation for the calls that the run's end cut short,
// so that a run can continue this one: no provider accepts a call without a result. The
// added results derive from the journal alone, so that every fold computes the same.
func (s *calls) cutShort(r *run, said *messages) error {
	for _, c := range s.list {
		c.cutShort(r)
		if c.resolved != nil || c.given != nil {
			continue
		}
		asked := event.ToolCall{CallID: c.ref.CallID, Args: c.ref.Args, ArgsText: c.ref.ArgsText}
		if len(bytes.TrimSpace(asked.Args)) == 0 && asked.ArgsText == "" {
			asked.Args = []byte("{}") // only a call's own event has its arguments
		}
		if err := said.history.Call(c.index, asked); err != nil {
			return err
		}
	}
	return said.history.Results(said.modelResults(s.list))
}

func (c *call) cutShort(r *run) {
	c.pending.Void()
	if c.result == nil {
		d := c.failed(event.ErrorCancelled, "the run ended before this call ran")
		if c.attempt > 0 {
			d = c.failed(event.ErrorInDoubt, "the run ended while this call was running, so it is not known whether it took effect")
		}
		c.result = &d
	}
	for h := c.hooks.after.due; h != nil; h = c.hooks.after.due {
		skipped := r.skipped(h, c.ref.CallID)
		c.applyAfterTool(&r.cfg, &skipped)
	}
}
