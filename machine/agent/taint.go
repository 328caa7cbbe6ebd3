package agent

import (
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/fence"
	"github.com/pawlrun/pawl/history"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/policy"
)

// tainted notes what a result brought in.
func (r *run) tainted(d *event.ToolResult) {
	source := event.TaintSource{Run: r.ID, Cycle: r.cycle, CallID: d.CallID, Tool: d.Tool}
	r.Taint = r.Taint.With(source.Brings(d.Untrusted, d.Private))
}

// tookIn notes that the provider ran a tool of its own within an answer: what
// it found there is nobody's that the owner knows.
func (r *run) tookIn(parts llm.Parts) {
	if len(r.cfg.ProviderTools) == 0 || r.Taint.Untrusted != nil {
		return
	}
	for _, p := range parts {
		if item, ok := p.(llm.Item); ok {
			r.Taint.Untrusted = &event.TaintSource{Run: r.ID, Cycle: r.cycle, Tool: item.Type}
			return
		}
	}
}

// rules are the owner's with what people allowed since, for what the run has taken in.
func (p *permissions) rules(r *run) policy.Rules {
	rules := r.cfg.Policy
	rules.Taint = r.Taint
	rules.Permissions = slices.Clip(rules.Permissions) // others have them, too
	for _, more := range p.added {
		rules.Permissions = append(rules.Permissions, more.Permission)
	}
	return rules
}

// providerTools are the tools of the provider's own that the next request
// names, and those that are withheld from it: what the run has taken in so far
// decides, the same after a resume.
func (p *permissions) providerTools(r *run) (offered []string, withheld *event.Withheld) {
	return p.rules(r).Offered(r.cfg.ProviderTools)
}

// brokenOff says that the provider would go on with tools of its own, because it
// paused its turn or waits for the results of our calls beside them, and may not
// use one any more that it was offered for this turn. It refuses to go on without
// the tools that its half-done calls are of, so the turn goes on without those
// calls.
func (a *modelCall) brokenOff(r *run, p *permissions, calls int) *event.Withheld {
	switch paused := a.response.FinishReason == llm.FinishPause; {
	case len(r.cfg.ProviderTools) == 0, calls == 0 && !paused:
		return nil
	case calls > 0 && len(history.HalfDone(llm.Parts(a.response.Parts))) == 0:
		return nil
	}
	_, withheld := p.providerTools(r)
	if withheld == nil {
		return nil
	}
	for _, name := range withheld.Tools {
		if a.withheld == nil || !slices.Contains(a.withheld.Tools, name) {
			return withheld
		}
	}
	return nil
}

// withheldNudge tells the model what it has to go on without.
func withheldNudge(w *event.Withheld) string {
	return "You can use " + strings.Join(w.Tools, ", ") + " no more, because " + w.Reason + ". Go on without."
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

// prompt is the system text of a run that marks text with a fence: it is the
// same for every run of the same agent, whatever the nonce.
func prompt(system string, fenced bool) string {
	switch {
	case !fenced:
		return system
	case system == "":
		return fence.Notice
	}
	return system + "\n\n" + fence.Notice
}

// Fence is what marks untrusted text in the run's conversation, nil where
// nothing does. A run that goes on from this one marks with the same, so that
// the beginning of its requests stays what it was.
func (m *Machine) Fence() *event.Fence {
	if !m.messages.fence.Active() {
		return nil
	}
	return &event.Fence{Nonce: m.messages.fence.Nonce()}
}
