package agent

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/rules/history"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/llm"
)

// NoResult is the failure of a run that had to give a result by its tool and did not.
const NoResult = "resultSchema defined but submit_result never called"

// isResult reports whether a call gave the run's result.
func (c *call) isResult(cfg *Config) bool {
	return cfg.Result != "" && c.ref.Name == cfg.Result && c.result != nil && c.result.EndsRun && !c.result.IsError
}

// result returns the run's result from the first call that gave one, nil if none did.
func (s *calls) result(cfg *Config) json.RawMessage {
	for _, c := range s.list {
		if c.isResult(cfg) {
			return c.resolved.Args
		}
	}
	return nil
}

// textSchema returns the schema that a text must match to be the run's result, nil if
// no text can be.
func (c *Config) textSchema() json.RawMessage {
	if !c.ResultText {
		return nil
	}
	if len(c.Schema) > 0 {
		return c.Schema
	}
	i := slices.IndexFunc(c.Tools, func(tool llm.ToolDef) bool { return tool.Name == c.Result })
	if i < 0 {
		return nil
	}
	return c.Tools[i].Schema
}

// object returns a text if it is one JSON object and nothing else, otherwise nil.
func object(text string) json.RawMessage {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "{") || !json.Valid([]byte(text)) {
		return nil
	}
	return json.RawMessage(text)
}

// given returns the run's result: the arguments of its tool's call, or the text that
// was validated against the schema, which is output if the run ended with one.
func (t *turn) given(cfg *Config, s *calls, output string) json.RawMessage {
	if result := s.result(cfg); result != nil || cfg.textSchema() == nil || t.checked == nil || t.checked.Problem != "" {
		return result
	}
	return object(cmp.Or(output, t.answer))
}

// offered returns the tools that the next request names: after the model was asked for
// its result, only the one for that.
func (t *turn) offered(cfg *Config) []llm.ToolDef {
	if !t.resultAsked {
		return cfg.namedTools()
	}
	i := slices.IndexFunc(cfg.Tools, func(tool llm.ToolDef) bool { return tool.Name == cfg.Result })
	if i < 0 {
		return nil
	}
	return cfg.Tools[i : i+1 : i+1]
}

// namedTools are the tools that requests name. Deferred ones wait to be found where a tool
// calls them.
func (c *Config) namedTools() []llm.ToolDef {
	if !slices.ContainsFunc(c.Tools, func(t llm.ToolDef) bool { return t.Name == llm.CallTool }) {
		return c.Tools
	}
	return slices.DeleteFunc(slices.Clone(c.Tools), func(t llm.ToolDef) bool { return t.Deferred })
}

// tainted folds the taint of a result.
func (r *run) tainted(d *event.ToolResult) {
	source := event.TaintSource{Run: r.ID, Cycle: r.cycle, CallID: d.CallID, Tool: d.Tool}
	r.Taint = r.Taint.With(source.Brings(d.Untrusted, d.Private))
}

// tookIn notes that the provider ran a tool of its own within an answer: the result
// comes from the provider, so it is untrusted.
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

// permissions are the rules for calls, in addition to those of the configuration.
type permissions struct {
	// policy is the version of the current policy.
	policy string
	// added are the permissions that people gave for the rest of the run.
	added []event.PermissionAdded
	// mode replaces the configuration's, "" for none.
	mode policy.Mode
	// redefined are the definitions of changed tools that people approved.
	redefined []string
}

// rules returns the owner's rules with the added permissions, for the run's taint.
func (p *permissions) rules(r *run) policy.Rules {
	rules := r.cfg.Policy
	rules.Taint, rules.Redefined, rules.Mode = r.Taint, p.redefined, cmp.Or(p.mode, rules.Mode)
	return rules.With(p.added)
}

// switchTo changes the mode. A run is never switched to [policy.ModeBypass]: only its file
// can choose that.
func (p *permissions) switchTo(mode policy.Mode) {
	switch mode {
	case policy.ModeDefault, policy.ModeAcceptEdits, policy.ModePlan:
		p.mode = mode
	}
}

// providerTools returns the provider's own tools that the next request names, and those
// that are withheld from it: the run's taint decides, the same after a resume.
func (p *permissions) providerTools(r *run) (offered []string, withheld *event.Withheld) {
	return p.rules(r).Offered(r.cfg.ProviderTools)
}

// brokenOff reports that the provider would continue with tools of its own, because it
// paused its answer or waits for the results of our calls beside them, and may not use
// one any more that was offered for this answer. A provider refuses to continue
// half-done calls without their tools, so the answer continues without those calls.
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

// withheldNudge informs the model which tools are missing.
func withheldNudge(w *event.Withheld) string {
	return "You can use " + strings.Join(w.Tools, ", ") + " no more, because " + w.Reason + ". Go on without."
}
