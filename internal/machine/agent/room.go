package agent

import (
	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/rules/compact"
	"github.com/pawlrun/pawl/llm"
)

// contextWindow is the context window that holds for a model: the file's or the
// model's own, or what its provider has said, where that is smaller or none was known.
func (r *run) contextWindow(of Target) (tokens int, known bool) {
	tokens, known = r.cfg.Compact.WindowFor(of.ContextWindow)
	if learnt := int(r.rooms[of.Model].Window); learnt > 0 && (!known || learnt < tokens) {
		return learnt, true
	}
	return tokens, known
}

// window is the one that the conversation is compacted for. A limit on the size of
// single requests is one, too: a run compacts before it ends by it.
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

// mostOutput is what an answer may take beside an input of so many tokens: no more than
// the owner allows, the provider takes, and the window has room for. Where that is less
// than an answer needs, the provider decides: if it refuses the request, the conversation
// becomes shorter.
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

// besides is the room that the window has beside an input.
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

// learn takes in what a provider said of the room as it refused a call, and what
// follows from that for the size of the call.
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
		least = now.Window - min(sent, now.Window)/2 // nobody says: half the cap is tried
	}
	if d.Purpose == event.PurposeSummary {
		m.compaction.summary.least = least
	} else {
		m.messages.size.least = least
	}
}

// lowersCap reports whether a call that was refused for its room is another one, which
// may fit, once its cap is lowered.
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
