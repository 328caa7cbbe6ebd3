package spec

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/stop"
)

// Settings configure the loop. They are at the top level of a file or in its iteration
// block.
type Settings struct {
	MaxCycles        *int     `yaml:"max_cycles,omitempty" none:"yes"`
	OnLimit          string   `yaml:"on_limit,omitempty" oneof:"ok stopped fail"`
	OnNoToolCall     string   `yaml:"on_no_tool_call,omitempty" oneof:"finish nudge stop"`
	OnDenied         string   `yaml:"on_denied,omitempty" oneof:"continue stop"`
	OnRejected       string   `yaml:"on_rejected,omitempty" oneof:"continue stop"`
	FailureThreshold *int     `yaml:"failure_threshold,omitempty" none:"yes"`
	ToolDispatch     string   `yaml:"tool_dispatch,omitempty" oneof:"ordered-groups parallel-first by-resource parallel-all serial"`
	NudgeText        string   `yaml:"nudge_text,omitempty"`
	MaxNudges        *int     `yaml:"max_nudges,omitempty" none:"yes"`
	ContextWindow    *int     `yaml:"context_window,omitempty"`
	Compact          *Compact `yaml:"compact,omitempty"`
	Cache            *Cache   `yaml:"cache,omitempty"`
	// StallTimeout is how long a stream of the model may send nothing.
	StallTimeout *Seconds `yaml:"stall_timeout,omitempty"`

	Approvals *ApprovalSettings `yaml:"approvals,omitempty"`
}

// maxStallSeconds is a day.
const maxStallSeconds = 86_400

// Compact sets when and how a long conversation is shortened.
type Compact struct {
	Off          *bool    `yaml:"off,omitempty"`
	Ratio        *float64 `yaml:"ratio,omitempty"`
	Inclusive    *bool    `yaml:"inclusive,omitempty"`
	Measure      string   `yaml:"measure,omitempty" oneof:"estimate provider messages"`
	Strategy     string   `yaml:"strategy,omitempty" oneof:"rolling-window periodic-summary summarize-older"`
	Keep         *Keep    `yaml:"keep,omitempty"`
	MaxSummaries *int     `yaml:"max_summaries,omitempty"`
	SummaryRole  string   `yaml:"summary_role,omitempty" oneof:"user system"`
}

// Keep is what compaction leaves unchanged.
type Keep struct {
	Turns    *int `yaml:"turns,omitempty"`
	Messages *int `yaml:"messages,omitempty"`
}

// Iteration is ALDO's block: one agent that loops until a condition is met.
type Iteration struct {
	Settings              `yaml:",inline"`
	SummaryStrategy       string           `yaml:"summary_strategy,omitempty" oneof:"rolling-window periodic-summary"`
	TerminationConditions []stop.Condition `yaml:"termination_conditions,omitempty"`
}

// Tools sets which tools the agent may use, and how.
type Tools struct {
	// Allow is nil if the file does not contain it; an empty list means no tools.
	Allow Names `yaml:"allow,omitempty"`
	// Approvals sets for each tool when a call needs an approval.
	Approvals map[string]string `yaml:"approvals,omitempty" oneof:"always never protected_paths"`
	Timeouts  Timeouts          `yaml:"timeouts,omitempty"`
	// Provider are tools that the provider runs itself, by its names.
	Provider []string `yaml:"provider,omitempty"`

	// Agents are agent files that the model may call like tools.
	Agents []AgentTool `yaml:"agents,omitempty"`
	// Commands are programs that the model may call like tools.
	Commands []CommandTool `yaml:"commands,omitempty"`
	// MCP are servers whose tools the model may call.
	MCP []MCPServer `yaml:"mcp,omitempty"`
	// MCPFile is a file with further servers, in the form that MCP clients share.
	MCPFile string `yaml:"mcp_file,omitempty"`

	// ProtectedPaths are globs, relative to the workspace.
	ProtectedPaths []string     `yaml:"protected_paths,omitempty"`
	Permissions    *Permissions `yaml:"permissions,omitempty"`
	Mode           string       `yaml:"mode,omitempty" oneof:"default accept-edits plan bypass"`
	Rules          []Rule       `yaml:"rules,omitempty"`
	Secrets        Secrets      `yaml:"secrets,omitempty"`
	// RuleOfTwo sets whether an outgoing call needs an approval once the run has read
	// untrusted text and private data. MaySend lists the exempt tools; Labels replaces
	// the tools' own labels.
	RuleOfTwo string   `yaml:"rule_of_two,omitempty" oneof:"ask off"`
	MaySend   []string `yaml:"may_send,omitempty"`
	Labels    Labels   `yaml:"labels,omitempty" oneof:"untrusted private outgoing"`
	// Effects sets for each tool the effect of repeating a call, Risks the harm that a
	// call can do; both replace the tools' own declarations.
	Effects map[string]string `yaml:"effects,omitempty" oneof:"pure idempotent reconcilable at_most_once"`
	Risks   map[string]string `yaml:"risks,omitempty" oneof:"read_only write execute delete send permission_change financial"`

	// The following keys are parsed only to be rejected: they are not built yet, and
	// the schema does not offer them.
	Hooks  any `yaml:"hooks,omitempty" unbuilt:"yes"`
	Guards any `yaml:"guards,omitempty" unbuilt:"yes"`
}

// Names is a list for which empty and missing differ.
type Names []string

// IsZero reports whether there is no list, for the YAML encoder.
func (n Names) IsZero() bool { return n == nil }

// Rule is one permission rule: it allows, asks about or denies calls of a tool, or puts
// them into the sandbox.
type Rule struct {
	Allow   string            `yaml:"allow,omitempty"`
	Ask     string            `yaml:"ask,omitempty"`
	Deny    string            `yaml:"deny,omitempty"`
	Sandbox string            `yaml:"sandbox,omitempty"`
	Args    map[string]string `yaml:"args,omitempty"`
	Path    string            `yaml:"path,omitempty"`
	Host    string            `yaml:"host,omitempty"`
	Command string            `yaml:"command,omitempty"`
	Reason  string            `yaml:"reason,omitempty"`
}

// Permissions are what the sandbox of a tool call allows.
type Permissions struct {
	Network string `yaml:"network,omitempty" oneof:"none allowlist host"`
	// Hosts is the list of network: allowlist; PrivateHosts may have addresses that are
	// not public.
	Hosts        []string `yaml:"hosts,omitempty"`
	PrivateHosts []string `yaml:"private_hosts,omitempty"`

	Filesystem string `yaml:"filesystem,omitempty" oneof:"none repo-readonly repo-readwrite full"`
	// Git sets what happens to commands that write a git repository of the workspace.
	Git string `yaml:"git,omitempty" oneof:"ask allow deny"`
	// Sandbox is the tier that the run requires, or on-demand.
	Sandbox string `yaml:"sandbox,omitempty" oneof:"required bubblewrap namespaces landlock on-demand"`
	// MemoryMB and Processes bound one command with all that it starts.
	MemoryMB  *int `yaml:"memory_mb,omitempty"`
	Processes *int `yaml:"processes,omitempty"`
}

// Timeouts bounds the calls of single tools.
type Timeouts map[string]Seconds

func (*Timeouts) Expected() string { return "a mapping from a tool to seconds" }

// Seconds is a duration. In a file it is a number of seconds or a text like 90s or 10m.
type Seconds float64

// Duration returns s as a time.Duration.
func (s Seconds) Duration() time.Duration { return time.Duration(float64(s) * float64(time.Second)) }

func (*Seconds) Expected() string { return "seconds, or a text like 90s or 10m" }

func (s *Seconds) DecodeNode(d *decode.Decoder, n *yaml.Node, path string) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
		if t, err := time.ParseDuration(n.Value); err == nil {
			*s = Seconds(t.Seconds())
			return
		}
		d.Fail(n, path, s.Expected(), "is %s", strconv.Quote(n.Value))
		return
	}
	d.Scalar(n, path, reflect.ValueOf(s).Elem())
}

// JSONSchema allows a number of seconds or a text.
func (*Seconds) JSONSchema() map[string]any {
	return map[string]any{"anyOf": []any{map[string]any{"type": "number"}, map[string]any{"type": "string"}}}
}

// Duration is a duration in the notation of the workflow specification: hours, minutes
// and seconds in whole numbers.
type Duration time.Duration

func (*Duration) Expected() string { return "a duration such as 30m, 1h30m or 45s" }

func (t *Duration) DecodeNode(d *decode.Decoder, n *yaml.Node, path string) {
	pattern := regexp.MustCompile(`^(\d+h)?(\d+m)?(\d+s)?$`)
	length, err := time.ParseDuration(n.Value)
	if n.Kind != yaml.ScalarNode || n.Tag != "!!str" || !pattern.MatchString(n.Value) || err != nil {
		d.Fail(n, path, t.Expected(), "is %s", decode.Describe(n))
		return
	}
	*t = Duration(length)
}

// JSONSchema requires that notation.
func (*Duration) JSONSchema() map[string]any {
	return map[string]any{"type": "string", "pattern": `^(\d+h)?(\d+m)?(\d+s)?$`, "minLength": 2}
}

// Length returns the duration, 0 for none.
func (t *Duration) Length() time.Duration {
	if t == nil {
		return 0
	}
	return time.Duration(*t)
}

// Effective returns the settings of the iteration block and the top level together. The
// smaller of two cycle caps applies; every other setting is in one place.
func (a *Agent) Effective() Settings {
	if a.Iteration == nil {
		return a.Settings
	}
	s := laidOver(a.Settings, a.Iteration.Settings)
	if top, inner := a.MaxCycles, a.Iteration.MaxCycles; top != nil && inner != nil {
		s.MaxCycles = smaller(top, inner)
	}
	return s
}

// laidOver returns the settings of a block, and those of the top level that the block
// does not contain.
func laidOver[T any](top, block T) T {
	into, over := reflect.ValueOf(&top).Elem(), reflect.ValueOf(block)
	for i := range over.NumField() {
		if !over.Field(i).IsZero() {
			into.Field(i).Set(over.Field(i))
		}
	}
	return top
}

// onlyOnce reports the settings, except one, that are both at the top level and in a
// block.
func onlyOnce[T any](r *decode.Report, name string, top, block T, but string) {
	for _, key := range given(top) {
		if key != but && slices.Contains(given(block), key) {
			r.At(key, key+" or "+name+"."+key, "both are given")
		}
	}
}

// given returns the keys of a mapping that have a value.
func given[T any](mapping T) []string {
	v := reflect.ValueOf(mapping)
	fields := decode.FieldsOf(v.Type())
	return slices.DeleteFunc(slices.Sorted(maps.Keys(fields)), func(key string) bool { return v.FieldByIndex(fields[key]).IsZero() })
}

// smaller returns the lower of two limits.
func smaller(a, b *int) *int {
	if *a == budget.None || *b != budget.None && *b < *a {
		return b
	}
	return a
}

// Cache configures the providers' prompt caches. In a file it is a mapping, or the
// lifetime alone.
type Cache struct {
	// TTL is the lifetime to request for the prefix; "" means the default, 5m.
	TTL string `yaml:"ttl,omitempty" oneof:"5m 1h off" short:"yes"`
}

func (*Cache) Expected() string { return "off, or {ttl: 5m} or {ttl: 1h}" }

// refuseUnbuilt rejects settings that guard something, or change what runs, and are
// not built yet: ignoring them would break a promise.
func (a *Agent) refuseUnbuilt(r *decode.Report) {
	guard := func(given bool, path string) {
		if given {
			r.At(path, "a file without it", "is not built yet, so it would guard nothing")
		}
	}
	guard(a.Sandbox != nil, "sandbox")
	if a.Tools.Hooks != nil {
		r.At("tools.hooks", "hooks at the top level of the file, by their stages: "+strings.Join(hookStages(), ", "), "is not read")
	}
	guard(a.Tools.Guards != nil, "tools.guards")
}
