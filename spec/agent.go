package spec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v4"
)

// Agent is an agent file.
type Agent struct {
	APIVersion  string      `yaml:"apiVersion"`
	Kind        string      `yaml:"kind"`
	Identity    Identity    `yaml:"identity"`
	ModelPolicy ModelPolicy `yaml:"model_policy"`
	Prompt      Prompt      `yaml:"prompt"`
	Tools       Tools       `yaml:"tools"`
	Budgets     Budgets     `yaml:"budgets"`
	Iteration   *Iteration  `yaml:"iteration"`

	OnLimit      string `yaml:"on_limit"`
	OnNoToolCall string `yaml:"on_no_tool_call"`
	ToolDispatch string `yaml:"tool_dispatch"`
	NudgeText    string `yaml:"nudge_text"`
	MaxNudges    int    `yaml:"max_nudges"`
	MaxCycles    int    `yaml:"max_cycles"`

	// Dir is the directory of the file; paths in it are relative to it.
	Dir string `yaml:"-"`
	// System is the system text, read from its file where it has one.
	System   string   `yaml:"-"`
	Warnings []string `yaml:"-"`
}

// Identity names an agent.
type Identity struct {
	Name        string `yaml:"name"`
	Version     string `yaml:"version"`
	Description string `yaml:"description"`
}

// ModelPolicy says which models to use and how.
type ModelPolicy struct {
	Primary   Model    `yaml:"primary"`
	Fallbacks []Model  `yaml:"fallbacks"`
	Decoding  Decoding `yaml:"decoding"`
	Budget    Money    `yaml:"budget"`
}

// Model names one model as "provider/model".
type Model struct {
	Model string `yaml:"model"`
}

// Decoding are the sampling settings.
type Decoding struct {
	Temperature *float64 `yaml:"temperature"`
	MaxTokens   int      `yaml:"max_tokens"`
}

// Money is the cap on what a run may cost.
type Money struct {
	USDPerRun *float64 `yaml:"usd_per_run"`
}

// Prompt is the system text, inline or in a file.
type Prompt struct {
	System     string `yaml:"system"`
	SystemFile string `yaml:"system_file"`
}

// Tools says which tools the agent may use.
type Tools struct {
	// Allow is nil when the file does not say.
	Allow []string `yaml:"allow"`
}

// Budgets are the harness budgets; nil means the default.
type Budgets struct {
	MaxToolCalls   *int     `yaml:"max_tool_calls"`
	MaxWallSeconds *float64 `yaml:"max_wall_time_seconds"`
}

// Iteration is ALDO's block.
type Iteration struct {
	MaxCycles             int         `yaml:"max_cycles"`
	ContextWindow         int         `yaml:"context_window"`
	SummaryStrategy       string      `yaml:"summary_strategy"`
	TerminationConditions []Condition `yaml:"termination_conditions"`
}

// Condition is one termination condition.
type Condition struct {
	Kind  string `yaml:"kind"`
	Text  string `yaml:"text"`
	Tool  string `yaml:"tool"`
	Match *Match `yaml:"match"`
}

// Match is what a tool result must show.
type Match struct {
	ExitCode *int   `yaml:"exit_code"`
	Contains string `yaml:"contains"`
}

// ReadAgent reads and validates an agent file. The error is [Errors] when the
// file is there and wrong.
func ReadAgent(path string) (*Agent, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("spec: %w", err)
	}
	return ParseAgent(path, data)
}

// ParseAgent validates an agent file's content. Files that it names are read
// relative to path.
func ParseAgent(path string, data []byte) (*Agent, error) {
	d := &decoder{file: path, places: map[string]*yaml.Node{}}
	var doc yaml.Node
	if err := yaml.NewDecoder(bytes.NewReader(data)).Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		return nil, Errors{{File: path, Line: 1, Column: 1, Message: err.Error()}}
	}
	a := &Agent{Dir: filepath.Dir(path)}
	if len(doc.Content) == 0 {
		return nil, Errors{{File: path, Line: 1, Column: 1, Message: "the file is empty", Expected: "an agent: identity, model_policy, prompt"}}
	}
	d.value(doc.Content[0], "", reflect.ValueOf(a).Elem())
	a.validate(d)
	if len(d.problems) > 0 {
		return nil, d.problems.sorted()
	}
	return a, nil
}

func (a *Agent) validate(d *decoder) {
	if a.Kind != "" && a.Kind != "Agent" {
		d.at("kind", "Agent", "is %q", a.Kind)
	}
	if a.ModelPolicy.Primary.Model == "" && len(d.problems) == 0 {
		d.at("model_policy.primary.model", "provider/model, for example anthropic/claude-sonnet-4-5", "is missing")
	}
	oneOf(d, "on_limit", a.OnLimit, "stopped", "ok", "fail")
	oneOf(d, "on_no_tool_call", a.OnNoToolCall, "finish", "nudge", "stop")
	oneOf(d, "tool_dispatch", a.ToolDispatch, "ordered-groups", "parallel-first", "by-resource", "parallel-all", "serial")
	if a.Iteration != nil {
		a.Iteration.validate(d)
	}
	a.readPrompt(d)
}

func oneOf(d *decoder, path, value string, allowed ...string) {
	if d.has(path) && !slices.Contains(allowed, value) {
		d.at(path, "one of "+fmt.Sprint(allowed), "is %q", value)
	}
}

func (it *Iteration) validate(d *decoder) {
	oneOf(d, "iteration.summary_strategy", it.SummaryStrategy, "rolling-window", "periodic-summary")
	if d.has("iteration.max_cycles") && it.MaxCycles < 1 {
		d.at("iteration.max_cycles", "a whole number from 1", "is %d", it.MaxCycles)
	}
	for i, c := range it.TerminationConditions {
		path := fmt.Sprintf("iteration.termination_conditions[%d]", i)
		switch c.Kind {
		case "text-includes":
			if c.Text == "" {
				d.at(path+".text", "the text to look for", "is missing")
			}
		case "tool-result":
			if c.Tool == "" {
				d.at(path+".tool", "the name of a tool", "is missing")
			}
			if c.Match == nil || c.Match.ExitCode == nil && c.Match.Contains == "" {
				d.at(path+".match", "exit_code, contains, or both", "is missing")
			}
		case "budget-exhausted":
		default:
			d.at(path+".kind", "one of text-includes, tool-result, budget-exhausted", "is %q", c.Kind)
		}
	}
}

func (a *Agent) readPrompt(d *decoder) {
	a.System = a.Prompt.System
	if a.Prompt.SystemFile == "" {
		return
	}
	if a.Prompt.System != "" {
		d.at("prompt.system_file", "system or system_file", "both are given")
		return
	}
	data, err := os.ReadFile(filepath.Join(a.Dir, a.Prompt.SystemFile))
	if err != nil {
		d.at("prompt.system_file", "the path of a file, relative to the agent file", "cannot be read: %v", err)
		return
	}
	a.System = string(data)
}
