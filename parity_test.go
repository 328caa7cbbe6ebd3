package pawl_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/fs"
)

// same is one thing that a file says under a key and a program in a field. What both
// make of it is compared in the configuration that a run pins.
type same struct {
	key, field string
	// in is where the configuration has it; empty where it is no part of that.
	in   string
	file string
	set  func(*pawl.Agent)
}

func bothSay() []same {
	rules := []policy.Rule{{Decision: event.DecisionDeny, Tool: "fs.*", Path: "secret/**", Reason: "no"}}
	three := 3
	all := []same{
		{"identity.name", "Name", "", "", nil},
		{"model_policy.primary", "Model", "", "", nil},
		{"model_policy.fallbacks", "Fallbacks", "", "", nil},
		{"model_policy.decoding.temperature", "ModelSettings.Temperature", "temperature", "model_policy: {primary: openai/gpt-5, decoding: {temperature: 0.5}}", func(a *pawl.Agent) { half := 0.5; a.ModelSettings.Temperature = &half }},
		{"model_policy.decoding.max_tokens", "ModelSettings.MaxTokens", "max_tokens", "model_policy: {primary: openai/gpt-5, decoding: {max_tokens: 77}}", func(a *pawl.Agent) { a.ModelSettings.MaxTokens = 77 }},
		{"prompt.system", "System", "system", "prompt: {system: other}", func(a *pawl.Agent) { a.System = "other" }},
		{"tools.allow", "Tools", "", "", nil},
		{"tools.approvals", "Approvals.Tools", "policy.gates", "tools: {allow: [fs.read], approvals: {fs.read: always}}", func(a *pawl.Agent) { a.Approvals.Tools = []string{"fs.read"} }},
		{"tools.approvals", "Approvals.Never", "policy.open", "tools: {allow: [fs.read], approvals: {fs.read: never}}", func(a *pawl.Agent) { a.Approvals.Never = []string{"fs.read"} }},
		{"tools.approvals", "Permissions.AskToRead", "policy.gate_protected", "tools: {allow: [fs.read], approvals: {fs.read: protected_paths}}", func(a *pawl.Agent) { a.Permissions.AskToRead = []string{"fs.read"} }},
		{"tools.timeouts", "Tools", "", "", nil},
		{"tools.labels", "Tools", "", "", nil},
		{"tools.effects", "Tools", "", "", nil},
		{"tools.risks", "Tools", "", "", nil},
		{"tools.provider", "ModelSettings.ProviderTools", "provider_tools", "tools: {allow: [fs.read], provider: [web_search]}", func(a *pawl.Agent) { a.ModelSettings.ProviderTools = []string{"web_search"} }},
		{"tools.agents[].name", "Agents[].Name", "", "", nil},
		{"tools.agents[].description", "Agents[].Description", "", "", nil},
		{"tools.agents[].file", "Agents[].Agent", "", "", nil},
		{"tools.agents[].max_depth", "Agents[].MaxDepth", "", "", nil},
		{"tools.agents[].concurrent", "Agents[].Concurrent", "", "", nil},
		{"tools.protected_paths", "Permissions.ProtectedPaths", "policy.protected", "tools: {allow: [fs.read], protected_paths: [keys/**]}", func(a *pawl.Agent) { a.Permissions.ProtectedPaths = []policy.Pattern{"keys/**"} }},
		{"tools.permissions.network", "Permissions.Network.Network", "policy.network.network", "tools: {allow: [fs.read], permissions: {network: none}}", func(a *pawl.Agent) { a.Permissions.Network.Network = "none" }},
		{"tools.permissions.hosts", "Permissions.Network.Hosts", "policy.network.hosts", "tools: {allow: [fs.read], permissions: {network: allowlist, hosts: [example.com]}}", func(a *pawl.Agent) {
			a.Permissions.Network.Network, a.Permissions.Network.Hosts = "allowlist", append(a.Permissions.Network.Hosts, "example.com")
		}},
		{"tools.permissions.private_hosts", "Permissions.Network.Private", "policy.network.private", "tools: {allow: [fs.read], permissions: {network: host, private_hosts: [db.local]}}", func(a *pawl.Agent) {
			a.Permissions.Network.Network, a.Permissions.Network.Private = "host", append(a.Permissions.Network.Private, "db.local")
		}},
		{"tools.permissions.filesystem", "Permissions.Filesystem", "policy.filesystem", "tools: {allow: [fs.read], permissions: {filesystem: repo-readonly}}", func(a *pawl.Agent) { a.Permissions.Filesystem = "repo-readonly" }},
		{"tools.permissions.git", "Permissions.Git", "policy.git", "tools: {allow: [fs.read], permissions: {git: deny}}", func(a *pawl.Agent) { a.Permissions.Git = "deny" }},
		{"tools.mode", "Permissions.Mode", "policy.mode", "tools: {allow: [fs.read], mode: plan}", func(a *pawl.Agent) { a.Permissions.Mode = "plan" }},
		{"tools.rule_of_two", "Permissions.RuleOfTwo", "policy.rule_of_two", "tools: {allow: [fs.read], rule_of_two: 'off'}", func(a *pawl.Agent) { a.Permissions.RuleOfTwo = "off" }},
		{"tools.may_send", "Approvals.MaySend", "policy.may_send", "tools: {allow: [fs.read], may_send: [fs.read]}", func(a *pawl.Agent) { a.Approvals.MaySend = []string{"fs.read"} }},
		{"tools.secrets", "Secrets", "", "", nil},
		{"budgets.actions", "Termination.OnBudget", "on_budget", "budgets: {actions: {max_tool_calls: ask}}", func(a *pawl.Agent) { a.Termination.OnBudget = map[string]pawl.OnBudget{"max_tool_calls": "ask"} }},
		{"resultSchema", "Schema", "schema", "resultSchema: {type: object}", func(a *pawl.Agent) { a.Schema = json.RawMessage(`{"type":"object"}`) }},
		{"on_limit", "Termination.OnLimit", "on_limit", "on_limit: ok", func(a *pawl.Agent) { a.Termination.OnLimit = "ok" }},
		{"on_no_tool_call", "Conversation.OnNoToolCall", "on_no_tool_call", "on_no_tool_call: stop", func(a *pawl.Agent) { a.Conversation.OnNoToolCall = "stop" }},
		{"on_denied", "Termination.OnDenied", "on_denied", "on_denied: stop", func(a *pawl.Agent) { a.Termination.OnDenied = "stop" }},
		{"on_rejected", "Termination.OnRejected", "on_rejected", "on_rejected: stop", func(a *pawl.Agent) { a.Termination.OnRejected = "stop" }},
		{"failure_threshold", "Termination.FailureThreshold", "failure_threshold", "failure_threshold: 7", func(a *pawl.Agent) { a.Termination.FailureThreshold = 7 }},
		{"tool_dispatch", "Conversation.Dispatch", "tool_dispatch", "tool_dispatch: serial", func(a *pawl.Agent) { a.Conversation.Dispatch = "serial" }},
		{"nudge_text", "Conversation.NudgeText", "nudge_text", "nudge_text: Go on.", func(a *pawl.Agent) { a.Conversation.NudgeText = "Go on." }},
		{"max_nudges", "Conversation.MaxNudges", "max_nudges", "max_nudges: none", func(a *pawl.Agent) { a.Conversation.MaxNudges = -1 }},
		{"context_window", "Conversation.Compaction.Window", "compact.context_window", "context_window: 9000", func(a *pawl.Agent) { a.Conversation.Compaction.Window = 9000 }},
		{"compact.off", "Conversation.Compaction.Off", "compact.off", "compact: {off: true}", func(a *pawl.Agent) { a.Conversation.Compaction.Off = true }},
		{"compact.ratio", "Conversation.Compaction.Ratio", "compact.ratio", "compact: {ratio: 0.5}", func(a *pawl.Agent) { a.Conversation.Compaction.Ratio = 0.5 }},
		{"compact.inclusive", "Conversation.Compaction.Inclusive", "compact.inclusive", "compact: {inclusive: true}", func(a *pawl.Agent) { a.Conversation.Compaction.Inclusive = true }},
		{"compact.measure", "Conversation.Compaction.Measure", "compact.measure", "compact: {measure: messages}", func(a *pawl.Agent) { a.Conversation.Compaction.Measure = "messages" }},
		{"compact.strategy", "Conversation.Compaction.Strategy", "compact.strategy", "compact: {strategy: rolling-window}", func(a *pawl.Agent) { a.Conversation.Compaction.Strategy = "rolling-window" }},
		{"iteration.summary_strategy", "Conversation.Compaction.Strategy", "compact.strategy", "iteration: {summary_strategy: periodic-summary, termination_conditions: [{kind: budget-exhausted}]}", func(a *pawl.Agent) { a.Conversation.Compaction.Strategy = "periodic-summary" }},
		{"compact.keep.turns", "Conversation.Compaction.KeepTurns", "compact.keep_turns", "compact: {keep: {turns: 3}}", func(a *pawl.Agent) { a.Conversation.Compaction.KeepTurns = 3 }},
		{"compact.keep.messages", "Conversation.Compaction.KeepMessages", "compact.keep_messages", "compact: {keep: {messages: 3}}", func(a *pawl.Agent) { a.Conversation.Compaction.KeepMessages = 3 }},
		{"compact.max_summaries", "Conversation.Compaction.MaxSummaries", "compact.max_summaries", "compact: {max_summaries: 3}", func(a *pawl.Agent) { a.Conversation.Compaction.MaxSummaries = &three }},
		{"compact.summary_role", "Conversation.Compaction.SummaryRole", "compact.summary_role", "compact: {summary_role: system}", func(a *pawl.Agent) { a.Conversation.Compaction.SummaryRole = llm.RoleSystem }},
		{"cache.ttl", "ModelSettings.Cache", "cache", "cache: {ttl: 1h}", func(a *pawl.Agent) { a.ModelSettings.Cache = llm.CacheLong }},
		{"stall_timeout", "ModelSettings.StallTimeout", "stall_timeout", "stall_timeout: 90s", func(a *pawl.Agent) { a.ModelSettings.StallTimeout = 90 * time.Second }},
		{"approvals.mode", "Approvals.Mode", "approve", "approvals: {mode: park}", func(a *pawl.Agent) { a.Approvals.Mode = pawl.ApprovePark }},
		{"approvals.timeout", "Approvals.Within", "approvals.seconds", "approvals: {timeout: 90s}", func(a *pawl.Agent) { a.Approvals.Within = 90e9 }},
		{"approvals.on_timeout", "Approvals.OnTimeout", "approvals.on_timeout", "approvals: {timeout: 90s, on_timeout: stop}", func(a *pawl.Agent) { a.Approvals.Within, a.Approvals.OnTimeout = 90e9, pawl.TimeoutStop }},
		{"hooks", "Hooks", "", "", nil},
	}
	for _, key := range []string{"allow", "ask", "deny", "sandbox", "args", "path", "host", "command", "reason"} {
		field := map[string]string{"allow": "Decision", "deny": "Tool", "ask": "Decision", "sandbox": "Decision"}[key]
		if field == "" {
			field = strings.ToUpper(key[:1]) + key[1:]
		}
		all = append(all, same{"tools.rules[]." + key, "Permissions.Rules[]." + field, "policy.rules",
			"tools: {allow: [fs.read], rules: [{deny: fs.*, path: secret/**, reason: 'no'}]}", func(a *pawl.Agent) { a.Permissions.Rules = rules }})
	}
	done := []pawl.Condition{{Kind: "tool-result", Tool: "fs.read", Match: pawl.Match{Contains: "x"}}}
	for key, field := range map[string]string{"kind": "Kind", "text": "Text", "tool": "Tool", "match.exit_code": "Match.ExitCode", "match.contains": "Match.Contains"} {
		all = append(all, same{"iteration.termination_conditions[]." + key, "Termination.Conditions[]." + field, "conditions",
			"tools: {allow: [fs.read]}\niteration: {termination_conditions: [{kind: tool-result, tool: fs.read, match: {contains: x}}]}", func(a *pawl.Agent) { a.Termination.Conditions = done }})
	}
	return append(all, limits()...)
}

// limits are said under one name by a file and by a program.
func limits() []same {
	elsewhere := map[string]string{"max_cycles": "max_cycles", "usd_per_run": "model_policy.budget.usd_per_run"}
	var all []same
	for _, key := range keysOf(reflect.TypeFor[spec.CommandTool](), "yaml", "tools.commands[].") {
		all = append(all, same{key, "Tools", "", "", nil})
	}
	for _, key := range keysOf(reflect.TypeFor[spec.MCPServer](), "yaml", "tools.mcp[].") {
		all = append(all, same{key, "Tools", "", "", nil})
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[pawl.Limits]()) {
		setting, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		key, file := "budgets."+setting, "budgets: {"+setting+": 9}"
		if other := elsewhere[setting]; other != "" {
			key, file = other, map[string]string{"max_cycles": "max_cycles: 9", "usd_per_run": "model_policy: {primary: openai/gpt-5, budget: {usd_per_run: 9}}"}[setting]
		}
		all = append(all, same{key, "Limits." + f.Name, "limits." + setting, file, func(a *pawl.Agent) {
			place := reflect.ValueOf(&a.Limits).Elem().FieldByIndex(f.Index)
			if place.Kind() == reflect.Pointer {
				place.Set(reflect.New(place.Type().Elem()))
				place = place.Elem()
			}
			place.Set(reflect.ValueOf(9).Convert(place.Type()))
		}})
	}
	return all
}

// fileOnly and programOnly are what only one of the two can say, and why.
func fileOnly() map[string]string {
	only := map[string]string{
		"apiVersion": "a program has its version of the library", "kind": "the type says it",
		"identity.version": "for lists of files", "identity.description": "for lists of files",
		"model_policy.roles": "picks one of several models by name", "model_policy.role": "picks one of several models by name", "role": "picks one of several models by name",
		"prompt.system_file": "a program reads its own files", "tools.mcp_file": "a program reads its own files", "instructions": "a program reads its own files", "skills": "a program reads its own files", "prompt.task": "the argument of Start",
		"tools.permissions.sandbox":   "a program opens the sandbox of the tools that it brings",
		"tools.permissions.memory_mb": "a program opens the sandbox of the tools that it brings",
		"tools.permissions.processes": "a program opens the sandbox of the tools that it brings",
		"loop":                        "a program makes a plan", "composite": "a program makes a plan", "spawn": "a program starts what it names", "termination": "a program makes a plan",
		"tools.agents[].isolation": "a program opens the workspaces of the tools that it brings",
		"sandbox":                  "not built", "tools.hooks": "not read", "tools.guards": "not built",
	}
	for _, key := range keysOf(reflect.TypeFor[spec.LoopSettings](), "yaml", "") {
		only[key] = "a program makes a plan"
	}
	return only
}

func programOnly() map[string]string {
	return map[string]string{"Approvals.Ask": "a function; of a file's run the terminal or the server asks"}
}

func TestAFileAndAProgramCanSayTheSame(t *testing.T) {
	said, fields := map[string]bool{}, map[string]bool{}
	for _, s := range bothSay() {
		said[s.key], fields[s.field] = true, true
	}
	compare := func(what string, declared []string, said map[string]bool, only map[string]string) {
		for key := range only {
			if said[key] {
				t.Errorf("%s: %s is said by both", what, key)
			}
			said[key] = true
		}
		if diff := cmp.Diff(declared, slices.Sorted(maps.Keys(said))); diff != "" {
			t.Errorf("%s: say it in both, or why it is said in one alone (-declared +said)\n%s", what, diff)
		}
	}
	compare("file", keysOf(reflect.TypeFor[spec.Agent](), "yaml", ""), said, fileOnly())
	compare("program", keysOf(reflect.TypeFor[pawl.Agent](), "", ""), fields, programOnly())
}

// keysOf lists what can be said in a struct: its keys by a tag, or else its fields.
func keysOf(t reflect.Type, tag, at string) []string {
	whole := []reflect.Type{
		reflect.TypeFor[spec.Model](), reflect.TypeFor[spec.Roles](), reflect.TypeFor[spec.Hooks](), reflect.TypeFor[spec.ResultSchema](), reflect.TypeFor[spec.Loop](),
		reflect.TypeFor[spec.Composite](), reflect.TypeFor[spec.Termination](), reflect.TypeFor[spec.Spawn](),
		reflect.TypeFor[pawl.Agent](), reflect.TypeFor[pawl.Target](), reflect.TypeFor[pawl.Hook](), reflect.TypeFor[pawl.Secret](), reflect.TypeFor[tool.Tool](),
	}
	var keys []string
	for _, f := range reflect.VisibleFields(t) {
		name := f.Name
		if tag != "" {
			name, _, _ = strings.Cut(f.Tag.Get(tag), ",")
		}
		inline := at == "iteration." && len(f.Index) > 1 // said at the top as well
		if !f.IsExported() || f.Anonymous || name == "" || name == "-" || inline {
			continue
		}
		ft, list := f.Type, ""
		for ft.Kind() == reflect.Pointer || ft.Kind() == reflect.Slice {
			if ft.Kind() == reflect.Slice {
				list = "[]"
			}
			ft = ft.Elem()
		}
		if ft.Kind() == reflect.Struct && !slices.Contains(whole, ft) {
			keys = append(keys, keysOf(ft, tag, at+name+list+".")...)
		} else {
			keys = append(keys, at+name)
		}
	}
	slices.Sort(keys)
	return keys
}

// What a key and a field say means the same in the run.
func TestWhatAFileAndAProgramSayIsTheSameRun(t *testing.T) {
	file, program := configOfFile(t, ""), configOfProgram(t, func(*pawl.Agent) {})
	for _, s := range bothSay() {
		if s.set == nil {
			continue
		}
		inFile, inProgram := at(configOfFile(t, s.file), s.in), at(configOfProgram(t, s.set), s.in)
		if diff := cmp.Diff(inFile, inProgram); diff != "" {
			t.Errorf("%s and %s (-file +program)\n%s", s.key, s.field, diff)
		}
		if reflect.DeepEqual(inFile, at(file, s.in)) || reflect.DeepEqual(inProgram, at(program, s.in)) {
			t.Errorf("%s and %s: %s says nothing", s.key, s.field, s.in)
		}
	}
}

// at is what a configuration has at a path.
func at(cfg map[string]any, path string) any {
	var v any = cfg
	for key := range strings.SplitSeq(path, ".") {
		m, _ := v.(map[string]any)
		v = m[key]
	}
	return v
}

func configOfFile(t *testing.T, said string) map[string]any {
	t.Helper()
	text := said + "\n"
	for key, line := range map[string]string{
		"identity": "identity: {name: a}", "model_policy": "model_policy: {primary: openai/gpt-5}", "tools": "tools: {allow: [fs.read]}",
	} {
		if !strings.HasPrefix(said, key+":") {
			text += line + "\n"
		}
	}
	started, env, err := launch.Agent(launch.File{Path: "agent.yaml", Text: []byte(text)}, "go", launch.Options{Flags: launch.Flags{
		Workspace: t.TempDir(),
	}, Host: launch.Host{Getenv: func(name string) string { return map[string]string{"OPENAI_API_KEY": "none"}[name] }}})
	if err != nil {
		t.Fatalf("%s: %v", said, err)
	}
	defer env.Close()
	return configOf(t, started)
}

func configOfProgram(t *testing.T, set func(*pawl.Agent)) map[string]any {
	t.Helper()
	ws, err := fs.Open(t.TempDir(), fs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	own := slices.DeleteFunc(ws.Tools(), func(t tool.Tool) bool { return t.Name != "fs.read" })
	a := pawl.Agent{Model: pawl.Target{Name: "openai/gpt-5", Client: scripted.New("test", scripted.Turn{Text: "done"}), Price: &llm.Price{}}, Tools: own}
	set(&a)
	store := memory.New(nil)
	run, err := a.Start(t.Context(), "go", pawl.Options{Journal: store})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.Wait(); err != nil {
		t.Fatal(err)
	}
	for e, err := range run.Events() {
		if err != nil {
			t.Fatal(err)
		}
		return configOf(t, e.Data.(event.RunStarted))
	}
	return nil
}

func configOf(t *testing.T, started event.RunStarted) map[string]any {
	t.Helper()
	var cfg map[string]any
	if err := json.Unmarshal(started.Config, &cfg); err != nil {
		t.Fatal(err)
	}
	return cfg
}
