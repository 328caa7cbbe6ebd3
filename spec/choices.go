package spec

// choices are the values that the texts of an agent file may have, by the place
// of each as the schema comes to it first. The rules refuse any other; a test
// holds the two against each other.
var choices = map[string][]string{
	"apiVersion":        {Version, VersionAldo},
	"kind":              {"Agent"},
	"role":              {"architect", "editor", "subagent"},
	"model_policy.role": {"architect", "editor", "subagent"},
	"on_limit":          {"ok", "stopped", "fail"},
	"on_no_tool_call":   {"finish", "nudge", "stop"},
	"on_denied":         {"continue", "stop"},
	"on_rejected":       {"continue", "stop"},
	"tool_dispatch":     {"ordered-groups", "parallel-first", "by-resource", "parallel-all", "serial"},
	"tools.approvals.*": {"always", "never", "protected_paths"},
	"tools.effects.*":   {"pure", "idempotent", "reconcilable", "at_most_once"},
	"tools.risks.*":     {"read_only", "write", "execute", "delete", "send", "permission_change", "financial"},

	"compact.measure":      {"estimate", "provider", "messages"},
	"compact.strategy":     {"rolling-window", "periodic-summary", "summarize-older"},
	"compact.summary_role": {"user", "system"},
	"approvals.mode":       {"wait", "park", "callback", "bypass"},
	"approvals.on_timeout": {"reject", "stop"},

	"iteration.on_limit":                    {"ok", "stopped", "fail"},
	"iteration.on_no_tool_call":             {"finish", "nudge", "stop"},
	"iteration.on_denied":                   {"continue", "stop"},
	"iteration.on_rejected":                 {"continue", "stop"},
	"iteration.tool_dispatch":               {"ordered-groups", "parallel-first", "by-resource", "parallel-all", "serial"},
	"iteration.termination_conditions.kind": {"text-includes", "tool-result", "budget-exhausted"},
}
