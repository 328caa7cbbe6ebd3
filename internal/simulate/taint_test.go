package simulate_test

import (
	"math/rand/v2"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/rules/fence"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
)

// nonce is that of every simulated run's fence.
const nonce = "n0nce"

// labels says what the tools of a run bring in and whether they can send, drawn
// from luck of its own: a seed keeps its other events.
func (w *world) label(tools []tool.Tool) {
	r := rand.New(rand.NewPCG(uint64(w.seed), 17))
	for i := range tools {
		if w.labels != nil && r.IntN(2) == 0 {
			tools[i].Labels = w.labels
		} else if r.IntN(4) > 0 {
			tools[i].Labels = &event.Labels{Untrusted: r.IntN(3) == 0, Private: r.IntN(3) == 0, Outgoing: r.IntN(3) == 0}
		}
	}
}

// risks lets some owners take the risk of the rule of two.
func (w *world) risks() {
	r := rand.New(rand.NewPCG(uint64(w.seed), 19))
	switch r.IntN(6) {
	case 0:
		w.cfg.Policy.RuleOfTwo = policy.RuleOfTwoOff
	case 1, 2:
		w.cfg.Policy.MaySend = []string{"send", "read", pick(r, "pay", "slow", "put")}
	}
}

// taints watches by itself what a run takes in, and holds it to the rule of
// two: no call that can send starts without an approval once untrusted text and
// private data have met, but for those that the owner named.
type taints struct {
	untrusted, private bool
	calls              map[string]event.ToolCall
	// brought are the calls whose results are untrusted.
	brought map[string]bool
}

// event takes the next event, before the approvals do. The caller holds the
// world's lock, or is alone.
func (t *taints) event(w *world, data event.Data) {
	switch d := data.(type) {
	case event.ToolCall:
		if t.calls == nil {
			t.calls, t.brought = map[string]event.ToolCall{}, map[string]bool{}
		}
		t.calls[d.CallID] = d
	case event.ToolStarted:
		t.started(w, t.calls[d.CallID])
	case event.ToolResult:
		t.untrusted, t.private = t.untrusted || d.Untrusted, t.private || d.Private
		t.brought[d.CallID] = d.Untrusted
	}
}

func (t *taints) started(w *world, c event.ToolCall) {
	l := c.Labels
	if !l.Outgoing || !t.untrusted || !t.private && !l.Private {
		return
	}
	rules := w.cfg.Policy
	for _, name := range rules.MaySend {
		if name == c.Tool {
			w.happen("sent by name")
			return
		}
	}
	switch {
	case rules.RuleOfTwo == policy.RuleOfTwoOff:
		w.happen("sent at the owner's risk")
	case w.approvals.judged[c.CallID] == event.DecisionAsk && w.approvals.granted[c.CallID].Kind == event.ApprovalApproved:
		w.happen("sent with an approval")
	default:
		w.violatef("%s (%s) started without an approval after untrusted text and private data had met", c.CallID, c.Tool)
	}
}

// end holds the conversation to its fences: what came from outside stands
// behind one, whatever compaction left of it, and nothing else does.
func (t *taints) end(p *promises) {
	state := p.machine.State().Taint
	if (state.Untrusted != nil) != t.untrusted || (state.Private != nil) != t.private {
		p.world.violate("the run says that it took in %+v", state)
	}
	for _, m := range p.machine.Transcript() {
		for _, part := range m.Parts {
			r, ok := part.(llm.ToolResult)
			if !ok || stands(r.Output) {
				continue
			}
			if wrapped := fence.New(nonce).Wraps(r.Output); wrapped != (t.brought[r.CallID] && r.Output != "") {
				p.world.violate("the result of %s is fenced: %v: %.100q", r.CallID, wrapped, r.Output)
			}
			if ends := strings.Count(r.Output, `</untrusted id="`+nonce+`">`); ends > 1 || ends == 0 && fence.New(nonce).Wraps(r.Output) {
				p.world.violate("the fence of %s ends %d times", r.CallID, ends)
			}
		}
	}
}

// stands reports whether compaction put a word of its own in the place of a result.
func stands(output string) bool {
	return strings.HasPrefix(output, "[The result of ") || strings.HasPrefix(output, "[A later result of ")
}
