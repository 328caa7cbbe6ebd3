package launch_test

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/golden"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/models"
)

var update = flag.Bool("update", false, "write the golden files anew")

// options returns the options of a command line without flags, with an empty workspace
// and keys that are never used.
func options(t *testing.T) launch.Options {
	return launch.Options{Flags: launch.Flags{
		Workspace: t.TempDir(), Dir: "testdata/scripts",
	}, Host: launch.Host{
		Getenv: func(name string) string {
			if strings.HasSuffix(name, "_API_KEY") {
				return "test"
			}
			return ""
		},
	}}
}

// start launches a file and returns its first event with its configuration.
func start(t *testing.T, path string, o launch.Options) (event.RunStarted, agent.Config, perform.Env) {
	t.Helper()
	started, env, err := launch.Agent(read(t, path), "do it", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = env.Close() })
	var cfg agent.Config
	if err := json.Unmarshal(started.Config, &cfg); err != nil {
		t.Fatal(err)
	}
	return started, cfg, env
}

// read reads a file as a launch does.
func read(t *testing.T, path string) launch.File {
	t.Helper()
	text, err := spec.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return launch.File{Path: path, Text: text}
}

// file writes an agent file that has a model.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "agent.yaml")
	if !strings.Contains(text, "model_policy") {
		text += "\nmodel_policy: {primary: {model: scripted/steps.yaml}}\n"
	}
	if !strings.Contains(text, "identity") {
		text += "\nidentity: {name: test}\n"
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The test compares the machine's configuration for each file: tools by name, the rest
// completely.
// rows: ALDO-3, ALDO-7..11, ALDO-18, ALF-79, ALF-81, HAR-41..50
func TestAgentFilesBecomeTheMachinesConfiguration(t *testing.T) {
	entries, err := os.ReadDir("testdata/good")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".golden" {
			continue
		}
		t.Run(e.Name(), func(t *testing.T) {
			o := options(t)
			switch e.Name() {
			case "aldo-seed.yaml":
				o.Model = "scripted/steps.yaml"
			case "everything.yaml":
				o.Vars = map[string]string{"what": "tests"}
			}
			started, cfg, _ := start(t, filepath.Join("testdata/good", e.Name()), o)
			var tools []string
			for _, d := range cfg.Tools {
				tools = append(tools, d.Name)
			}
			cfg.Tools = nil
			got, err := json.MarshalIndent(struct {
				Name     string       `json:"name"`
				Tools    []string     `json:"tools"`
				Config   agent.Config `json:"config"`
				Warnings []string     `json:"warnings"`
			}{started.Name, tools, cfg, started.Warnings}, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden.File(t, filepath.Join("testdata/good", e.Name()+".golden"), string(got)+"\n", *update)
		})
	}
}

// The example of the specification is the one in testdata, except for the indentation
// that the page has lost.
// rows: ALDO-11
func TestSeedExampleIsTheOneThatIsTested(t *testing.T) {
	page, err := os.ReadFile("../../../../shared/seeds/1-aldo-iterative-loop.txt")
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("the seed pages are not beside this checkout")
	}
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("testdata/good/aldo-seed.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(example)) {
		lines = append(lines, strings.TrimSpace(line))
	}
	want := strings.Replace(strings.Join(lines, "\n"), "\niteration:", "\n...\niteration:", 1)
	if !strings.Contains(string(page), want) {
		t.Errorf("the page does not contain:\n%s", want)
	}
}

func TestDefaultsOfACarefulOwnerStandInTheFirstEvent(t *testing.T) {
	_, cfg, _ := start(t, file(t, ""), options(t))
	want := budget.Limits{
		MaxCycles: 50, USDPerRun: 5, MaxWallSeconds: 3600, MaxToolCalls: 200,
		MaxParallelTools: 8, MaxResultChars: 30_000,
	}
	got := cfg.Limits
	got.MaxModelRetries, got.MaxToolRetries = nil, nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if cfg.MaxTokens != 8192 || cfg.OnLimit != agent.OnLimitStopped || cfg.OnNoToolCall != agent.NoToolCallFinish ||
		cfg.Dispatch != agent.OrderedGroups || cfg.Approve != agent.ApproveAsk || cfg.MaxNudges != 3 {
		t.Errorf("got %+v", cfg)
	}
	if cfg.Policy.Declared {
		t.Error("tools that nobody named count as named")
	}
}

func TestFlagsReplaceTheFilesLimitsAndTheSmallerOfItsOwnHolds(t *testing.T) {
	const twoCaps = "budgets: {max_total_cost: 3, max_wall_time_seconds: 60}\nmax_cycles: 8\niteration: {max_cycles: 6}\n" +
		"model_policy: {primary: {model: scripted/steps.yaml}, budget: {usd_per_run: 2}}\n"
	type limits struct {
		Cycles       int
		Cap, Seconds float64
		Setting      string
	}
	for name, c := range map[string]struct {
		file string
		flag func(*launch.Options)
		want limits
	}{
		"nothing set":       {"", nil, limits{50, 5, 3600, "usd_per_run"}},
		"the file":          {twoCaps, nil, limits{6, 2, 60, "usd_per_run"}},
		"one cap is enough": {"budgets: {max_total_cost: 9}", nil, limits{50, 9, 3600, "max_total_cost"}},
		"--max-cycles":      {twoCaps, func(o *launch.Options) { o.Limits = []launch.Limit{{Setting: budget.CycleCap, Value: 20}} }, limits{20, 2, 60, "usd_per_run"}},
		"--budget":          {twoCaps, func(o *launch.Options) { o.BudgetUSD = new(7.5) }, limits{6, 7.5, 60, "usd_per_run"}},
		"--no-budget":       {twoCaps, func(o *launch.Options) { o.NoBudget = true }, limits{6, 0, 60, ""}},
		"one flag is enough": {"", func(o *launch.Options) { o.Limits = []launch.Limit{{Setting: "max_total_cost", Value: 9}} },
			limits{50, 9, 3600, "max_total_cost"}},
		"a flag beside a cap": {twoCaps, func(o *launch.Options) { o.Limits = []launch.Limit{{Setting: "max_total_cost", Value: 9}} },
			limits{6, 2, 60, "usd_per_run"}},
		"the default stays": {"", func(o *launch.Options) { o.Limits = []launch.Limit{{Setting: "max_total_cost", Value: budget.None}} },
			limits{50, 5, 3600, "usd_per_run"}},
		"--timeout": {twoCaps, func(o *launch.Options) { o.Limits = []launch.Limit{{Setting: budget.WallTime, Value: 300}} }, limits{6, 2, 300, "usd_per_run"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			if c.flag != nil {
				c.flag(&o)
			}
			_, cfg, _ := start(t, file(t, c.file), o)
			costCap, setting := cfg.Limits.CostCap()
			got := limits{cfg.Limits.MaxCycles, costCap, cfg.Limits.MaxWallSeconds, setting}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestModelFlagReplacesEveryModelOfTheFile(t *testing.T) {
	o := options(t)
	o.Model = "scripted/steps.yaml"
	_, cfg, _ := start(t, file(t, "model_policy: {primary: {capability_class: coding-frontier}, fallbacks: [{model: acme/one}]}"), o)
	if len(cfg.Targets) != 1 || cfg.Targets[0].Model != o.Model {
		t.Errorf("targets are %v", cfg.Targets)
	}
}

// A cap that the user sets must be reliable.
func TestModelWithoutPriceIsRefusedUnderExplicitBudget(t *testing.T) {
	const unknown = "model_policy: {primary: {model: openai/gpt-unheard-of}}"
	for name, c := range map[string]struct {
		file, refused, warned string
		flag                  func(*launch.Options)
	}{
		"default":     {file: unknown, warned: "no price is known for openai/gpt-unheard-of, so the default cost limit of USD 5.00 cannot stop its calls"},
		"--no-budget": {file: unknown, warned: "the run's cost is not counted in full", flag: func(o *launch.Options) { o.NoBudget = true }},
		"--budget":    {file: unknown, refused: "the cost limit of USD 1.00 cannot be enforced", flag: func(o *launch.Options) { o.BudgetUSD = new(1.0) }},
		"usd_per_run": {
			file:    "model_policy: {primary: {model: openai/gpt-unheard-of}, budget: {usd_per_run: 3}}",
			refused: "no price is known for openai/gpt-unheard-of",
		},
		"max_total_cost": {file: unknown + "\nbudgets: {max_total_cost: 3}", refused: "the cost limit of USD 3.00 cannot be enforced"},
		"in a fallback":  {file: "model_policy: {primary: openai/gpt-5, fallbacks: [openai/x], budget: {usd_per_run: 3}}", refused: "no price is known for openai/x,"},
		"--budget 0":     {file: "", refused: "must be above 0", flag: func(o *launch.Options) { o.BudgetUSD = new(0.0) }},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			if c.flag != nil {
				c.flag(&o)
			}
			started, env, err := launch.Agent(read(t, file(t, c.file)), "do it", o)
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			_ = env.Close()
			if all := strings.Join(started.Warnings, "\n"); !strings.Contains(all, c.warned) {
				t.Errorf("warnings:\n%s", all)
			}
		})
	}
}

func TestDefaultCapIsShownAtTheStart(t *testing.T) {
	said := func(o launch.Options, text string) bool {
		started, _, _ := start(t, file(t, text), o)
		return slices.ContainsFunc(started.Warnings, func(w string) bool { return strings.Contains(w, "stops at USD 5.00, the default cost limit") })
	}
	if !said(options(t), "") {
		t.Error("the default cap is not said")
	}
	if said(options(t), "model_policy: {primary: openai/gpt-5, budget: {usd_per_run: 5}}") {
		t.Error("a cap of the file's is said to be the default")
	}
	if said(options(t), "model_policy: {primary: openai/gpt-unheard-of}") {
		t.Error("a cap is said that cannot stop the only model")
	}
	if !said(options(t), "model_policy: {primary: openai/gpt-unheard-of, fallbacks: [openai/gpt-5]}") {
		t.Error("a cap is not said that can stop one of the models")
	}
	free := options(t)
	if free.NoBudget = true; said(free, "") {
		t.Error("a cap is said that there is not")
	}
}

// rows: ALF-79
func TestRunDoesNotStartWithoutAModelOrItsKey(t *testing.T) {
	o := options(t)
	o.Getenv = func(string) string { return "" }
	_, _, err := launch.Agent(read(t, file(t, "model_policy: {primary: scripted/steps.yaml, fallbacks: [openai/gpt-5]}")), "x", o)
	if !errors.Is(err, models.ErrNoKey) || !strings.Contains(err.Error(), "OPENAI_API_KEY") {
		t.Errorf("a fallback without a key: %v", err)
	}
	if _, _, err := launch.Agent(read(t, "testdata/good/aldo-seed.yaml"), "x", o); !errors.Is(err, launch.ErrNoModel) {
		t.Errorf("no model: %v", err)
	}
	var problems decode.Errors
	_, _, err = launch.Agent(read(t, file(t, "model_policy: {primary: scripted/nowhere.yaml}")), "x", o)
	if !errors.As(err, &problems) || problems[0].Path != "model_policy.primary.model" {
		t.Errorf("a script that is not there: %v", err)
	}
	problems = nil
	_, _, err = launch.Agent(read(t, file(t, "model_policy: {primary: sonnet}")), "x", o)
	if !errors.As(err, &problems) || problems[0].Path != "model_policy.primary.model" || !strings.Contains(err.Error(), "expected provider/model") {
		t.Errorf("no provider: %v", err)
	}
}

func TestMaxTokensStayBelowWhatEveryModelOfTheChainCanGive(t *testing.T) {
	for text, want := range map[string]int{
		"model_policy: {primary: openai/gpt-5}":                                    8192,
		"model_policy: {primary: openai/gpt-5, fallbacks: [openai/gpt-4-turbo]}":   4096,
		"model_policy: {primary: openai/gpt-5, decoding: {max_tokens: 20000}}":     20000,
		"model_policy: {primary: scripted/steps.yaml, decoding: {max_tokens: 10}}": 10,
	} {
		if _, cfg, _ := start(t, file(t, text), options(t)); cfg.MaxTokens != want {
			t.Errorf("%s: %d, want %d", text, cfg.MaxTokens, want)
		}
	}
}

func TestSettingsThatProviderRejectsAreReportedBeforeTheRun(t *testing.T) {
	for text, want := range map[string]string{
		"model_policy: {primary: openai/gpt-4-turbo, decoding: {max_tokens: 9000}}":                                                               "max_tokens is 9000, and openai/gpt-4-turbo gives at most 4096",
		"model_policy: {primary: ollama/qwen3}\ntools: {provider: [web_search]}":                                                                  "ollama/qwen3 runs no tools of its own, so web_search has no effect there",
		"model_policy: {primary: anthropic/claude-opus-4-5}\ntools: {provider: [web_sarch]}":                                                      `refused: there is no provider tool "web_sarch"`,
		"model_policy: {primary: openai/gpt-5}\ntools: {provider: [web_sarch]}":                                                                   `refused: there is no provider tool "web_sarch"; known are code_interpreter, image_generation, web_search,`,
		"model_policy: {primary: google/gemini-2.5-pro}\ntools: {provider: [web_sarch]}":                                                          `refused: there is no provider tool "web_sarch"; known are codeExecution, code_execution,`,
		"model_policy: {primary: google/gemini-2.5-pro}\ntools: {provider: [web_fetch, '{\"new\": {}}'], may_send: [web_fetch, '{\"new\": {}}']}": "",
		"model_policy: {primary: anthropic/claude-opus-4-5}\ntools: {provider: [web_search]}":                                                     "tools.provider[0]: web_search runs within the model's answer",
		"model_policy: {primary: anthropic/claude-opus-4-5}\ntools: {provider: [web_search], may_send: [web_search]}":                             "",
	} {
		started, env, err := launch.Agent(read(t, file(t, text)), "x", options(t))
		got := strings.Join(started.Warnings, "\n")
		if err != nil {
			got = "refused: " + err.Error()
		} else {
			_ = env.Close()
		}
		want, refused := strings.CutPrefix(want, "refused: ")
		if !strings.Contains(got, want) || refused != (err != nil) || want == "" && strings.Contains(got, "tools.provider") {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
}

// If a cap in money excludes some charges, the run must warn about that.
func TestUncountedChargesOfProviderToolsAreWarnedOf(t *testing.T) {
	const said = "charges for each use of web_search, beside the tokens; this is not counted"
	for text, want := range map[string]bool{
		"model_policy: {primary: anthropic/claude-opus-4-5}\ntools: {provider: [web_search]}": true,
		"model_policy: {primary: openai/gpt-5}\ntools: {provider: [web_search]}":              true,
		"model_policy: {primary: anthropic/claude-opus-4-5}":                                  false,
		"model_policy: {primary: ollama/qwen3}\ntools: {provider: [web_search]}":              false,
		"model_policy: {primary: scripted/steps.yaml}\ntools: {provider: [web_search]}":       false,
	} {
		started, _, _ := start(t, file(t, text), options(t))
		if got := strings.Join(started.Warnings, "\n"); strings.Contains(got, said) != want {
			t.Errorf("%s\n got %s", text, got)
		}
	}
}

func TestVariablesReachThePromptAndNothingElseGoesMissing(t *testing.T) {
	o := options(t)
	o.Vars = map[string]string{"what": "tests"}
	_, cfg, _ := start(t, file(t, "prompt: {system: 'You fix ${what}.'}"), o)
	if cfg.System != "You fix tests." {
		t.Errorf("system is %q", cfg.System)
	}
	o.Vars = map[string]string{"waht": "tests"}
	_, _, err := launch.Agent(read(t, file(t, "prompt: {system: 'You fix ${what}.'}")), "x", o)
	var problems decode.Errors
	if !errors.As(err, &problems) || len(problems) != 2 {
		t.Errorf("got %v", err)
	}
}

func TestTimeoutOfTheFileIsTheMostThatACallGets(t *testing.T) {
	_, _, env := start(t, file(t, "tools: {timeouts: {shell.exec: 90s, fs.read: 0.5}}"), options(t))
	for _, c := range []struct{ tool, args, want string }{
		{"shell.exec", `{"command":"x"}`, "1m30s"},
		{"shell.exec", `{"command":"x","timeout_seconds":10}`, "10s"},
		{"shell.exec", `{"command":"x","timeout_seconds":600}`, "1m30s"},
		{"fs.read", `{"path":"x"}`, "500ms"},
		{"fs.list", `{}`, "2m0s"},
	} {
		tool, ok := env.Tools.Lookup(c.tool)
		if got := tool.AttemptTimeout(json.RawMessage(c.args)).String(); !ok || got != c.want {
			t.Errorf("%s %s: %s, want %s", c.tool, c.args, got, c.want)
		}
	}
}

func TestCheckTellsWhatARunWouldNeed(t *testing.T) {
	warnings, err := launch.Check(read(t, file(t, "prompt: {system: '${a} ${b}'}\nmodel_policy: {primary: openai/gpt-5}")), launch.Options{Host: launch.Host{
		Getenv: func(string) string { return "" },
	}})
	if err != nil {
		t.Fatalf("a missing key is no fault of the file's: %v", err)
	}
	var messages []string
	for _, w := range warnings {
		messages = append(messages, w.Message)
	}
	if diff := cmp.Diff([]string{"a run needs --var a=… and --var b=…"}, messages); diff != "" {
		t.Error(diff)
	}
}

// Such a run would be refused, possibly at a time when no person is present.
func TestCheckWarnsOfACapThatNoRunCouldKeep(t *testing.T) {
	const unknown = "openai/gpt-unheard-of"
	for text, settings := range map[string][]string{
		"model_policy: {primary: " + unknown + ", budget: {usd_per_run: 2}}":                            {"model_policy.budget.usd_per_run"},
		"model_policy: {primary: " + unknown + "}\nbudgets: {max_total_cost: 2}":                        {"budgets.max_total_cost"},
		"model_policy: {primary: openai/gpt-5, fallbacks: [" + unknown + "], budget: {usd_per_run: 2}}": {"model_policy.budget.usd_per_run"},
		"model_policy: {primary: " + unknown + "}":                                                      nil,
		"model_policy: {primary: " + unknown + ", budget: {usd_per_run: none}}":                         nil,
		"model_policy: {primary: openai/gpt-5, budget: {usd_per_run: 2}}":                               nil,
		"model_policy: {primary: ollama/whatever, budget: {usd_per_run: 2}}":                            nil,
	} {
		warnings, err := launch.Check(read(t, file(t, text)), launch.Options{Host: launch.Host{Getenv: func(string) string { return "" }}})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		var told []string
		for _, w := range warnings {
			before, setting, _ := strings.Cut(w.Message, " is refused under ")
			setting, _, _ = strings.Cut(setting, ";")
			if told = append(told, setting); !strings.Contains(before, unknown) || w.Line == 0 {
				t.Errorf("%s: %+v", text, w)
			}
		}
		if !slices.Equal(told, settings) {
			t.Errorf("%s: warned of %q, want %q", text, told, settings)
		}
	}
}

// A run that waits for an impossible result continues to a limit, and pays for it.
func TestAConditionThatNoResultCanMeetIsWarnedOf(t *testing.T) {
	const result = "iteration: {max_cycles: 3, termination_conditions: [{kind: text-includes, text: DONE}, {kind: tool-result, tool: "
	for text, want := range map[string]string{
		"tools: {allow: [shell.exec]}\n" + result + "shell.exec, match: {exit_code: 0}}]}":                                  "",
		"tools: {allow: [fs.read]}\n" + result + "fs.read, match: {contains: ok}}]}":                                        "",
		"tools: {allow: [fs.read]}\n" + result + "fs.read, match: {exit_code: 0, contains: ok}}]}":                          "fs.read gives no exit code",
		result + "web.fetch, match: {contains: ok}}]}":                                                                      "the agent has no web.fetch, because tools.allow does not name it",
		result + "shell.exec, match: {exit_code: 0}}]}":                                                                     "",
		result + "result.read, match: {contains: ok}}]}":                                                                    "",
		"tools: {allow: [fs.write], mode: plan}\n" + result + "fs.write, match: {contains: ok}}]}":                          "every call of fs.write is denied by mode: plan",
		"tools: {allow: [fs.read], permissions: {filesystem: none}}\n" + result + "fs.read, match: {contains: ok}}]}":       "every call of fs.read is denied by tools.permissions.filesystem: none",
		"tools: {rules: [{deny: shell.exec}]}\n" + result + "shell.exec, match: {exit_code: 0}}]}":                          "every call of shell.exec is denied by tools.rules: deny shell.exec",
		"tools: {rules: [{deny: shell.exec, command: \"git push *\"}]}\n" + result + "shell.exec, match: {exit_code: 0}}]}": "",
	} {
		text = "model_policy: {primary: openai/gpt-5}\n" + text
		warnings, err := launch.Check(read(t, file(t, text)), launch.Options{Host: launch.Host{Getenv: func(string) string { return "" }}})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got := ""
		for _, w := range warnings {
			if got += strings.TrimPrefix(w.Message, "this condition can never be met: "); w.Path != "iteration.termination_conditions[1]" || w.Line == 0 {
				t.Errorf("%s: %+v", text, w)
			}
		}
		if got != want {
			t.Errorf("%s: warned of %q, want %q", text, got, want)
		}
	}
}

func TestResultReadIsOfferedOnlyToRunsWithTools(t *testing.T) {
	for allow, want := range map[string][]string{
		"[]":                     nil,
		"[fs.read]":              {"fs.read", "result.read"},
		"[result.read, fs.read]": {"fs.read", "result.read"},
		"[result.read]":          nil,
		"[shell.exec, fs.write]": {"fs.write", "result.read", "shell.exec"},
	} {
		_, cfg, _ := start(t, file(t, "tools: {allow: "+allow+"}"), options(t))
		var got []string
		for _, d := range cfg.Tools {
			got = append(got, d.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("allow %s: %v, want %v", allow, got, want)
		}
	}
}
