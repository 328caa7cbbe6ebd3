package agent

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/rules/history"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/llm"
)

// NoResult is why a run failed that had to give a result by its tool and did not.
const NoResult = "resultSchema defined but submit_result never called"

// isResult reports whether a call gave the run's result.
func (c *call) isResult(cfg *Config) bool {
	return cfg.Result != "" && c.ref.Name == cfg.Result && c.result != nil && c.result.EndsRun && !c.result.IsError
}

// result is what the first call gave that did so, nil where none did.
func (s *calls) result(cfg *Config) json.RawMessage {
	for _, c := range s.list {
		if c.isResult(cfg) {
			return c.resolved.Args
		}
	}
	return nil
}

// textSchema is the schema that a text must match which is the run's result, nil where no
// text is.
func (c *Config) textSchema() json.RawMessage {
	if !c.ResultText {
		return nil
	}
	i := slices.IndexFunc(c.Tools, func(tool llm.ToolDef) bool { return tool.Name == c.Result })
	if i < 0 {
		return nil
	}
	return c.Tools[i].Schema
}

// object is an answer's text where that is one JSON object and nothing else, nil for any
// other.
func (t *turn) object() json.RawMessage {
	text := strings.TrimSpace(t.answer)
	if !strings.HasPrefix(text, "{") || !json.Valid([]byte(text)) {
		return nil
	}
	return json.RawMessage(text)
}

// given is the run's result: what the call of its tool gave, or the text that was held
// against the tool's schema.
func (t *turn) given(cfg *Config, s *calls) json.RawMessage {
	if result := s.result(cfg); result != nil || cfg.textSchema() == nil || t.checked == nil || t.checked.Problem != "" {
		return result
	}
	return t.object()
}

// offered are the tools that the next request names: once the model was asked for its
// result, the one for that alone.
func (t *turn) offered(cfg *Config) []llm.ToolDef {
	if !t.resultAsked {
		return cfg.Tools
	}
	i := slices.IndexFunc(cfg.Tools, func(tool llm.ToolDef) bool { return tool.Name == cfg.Result })
	if i < 0 {
		return nil
	}
	return cfg.Tools[i : i+1 : i+1]
}

// tainted notes what a result brought in.
func (r *run) tainted(d *event.ToolResult) {
	source := event.TaintSource{Run: r.ID, Cycle: r.cycle, CallID: d.CallID, Tool: d.Tool}
	r.Taint = r.Taint.With(source.Brings(d.Untrusted, d.Private))
}

// tookIn notes that the provider ran a tool of its own within an answer: the
// result comes from the provider, so it is untrusted.
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

// permissions are the rules that calls are judged by, beside those of the
// configuration.
type permissions struct {
	// policy is the version of the policy that judges.
	policy string
	// added are what people allowed for the rest of the run.
	added []event.PermissionAdded
	// redefined are the definitions of changed tools that people approved.
	redefined []string
}

// rules are the owner's with what people allowed since, for what the run has taken in.
func (p *permissions) rules(r *run) policy.Rules {
	rules := r.cfg.Policy
	rules.Taint, rules.Redefined = r.Taint, p.redefined
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
