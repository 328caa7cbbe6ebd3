package spec

import (
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/stop"
)

// Options are facts outside the file that the rules need.
type Options struct {
	// Sent marks a text that a client sent, which has no directory here. It may not
	// name files, programs or variables of this machine, because the client may not be
	// allowed to read them.
	Sent bool
	// Dir is the base of relative paths in such a text.
	Dir string
	// ConfineModel returns an error for a model that the file may not name, whether or
	// not it would be called; nil restricts none.
	ConfineModel func(name string) error
	// Tools are the names of the tools that exist; nil leaves names unchecked.
	Tools []string
	// Aliases maps other programs' names of tools to ours.
	Aliases map[string]string
	// Model replaces every model of the file, which then need not name one.
	Model string
	// CheckModel returns an error for a model's name; nil leaves names unchecked. dir
	// is the directory of the file.
	CheckModel func(dir, name string) error
	// FindModel adds the provider to a name without one; nil knows none.
	FindModel func(name string) (whole string, known bool)
	// CheckHosted returns an error for a tool that the provider of a model cannot run,
	// or why it has no effect there; nil leaves those unchecked.
	CheckHosted func(dir, model, tool string) (ignored string, err error)
	// Unpriced reports that a model has no known price; nil leaves that unchecked. It
	// causes a warning if the file sets a cost limit, which a run could not enforce.
	Unpriced func(dir, name string) bool
	// CheckAgent returns an error for an agent file that is offered as a tool, by its
	// absolute path; nil leaves those unchecked.
	CheckAgent func(source string) error
	// CheckCommand returns an error for a program that cannot run; nil leaves programs
	// unchecked. dir is the directory of the file.
	CheckCommand func(dir string, c Command) error
	// CheckProgram does the same for a program of tools.commands.
	CheckProgram func(dir string, argv []string) error
	// CheckWorktrees returns why runs cannot have git worktrees: refused if the file is
	// valid and a run in this workspace would be refused. nil leaves that unchecked.
	CheckWorktrees func() (refused string, err error)
	// Offers returns the names of the tools that a model is offered; nil leaves rules
	// about other tools unreported.
	Offers func(*Tools) []string
	// Unmet returns which termination conditions no run of a valid agent can meet, by
	// their indexes, and why; nil leaves that unchecked.
	Unmet func(*Agent) map[int]string
	// Classes are the models of capability classes, Roles those of the roles for which
	// the file names none.
	Classes, Roles map[string]string
}

// Confined reports whether a file may name a model, and adds a problem if it may not.
func (o Options) Confined(r *decode.Report, path, model string) bool {
	if o.ConfineModel == nil {
		return true
	}
	err := o.ConfineModel(model)
	if err != nil {
		r.At(path, "a model that can be called", "%v", err)
	}
	return err == nil
}

func (a *Agent) validate(r *decode.Report, o Options) {
	r.Choices(reflect.ValueOf(a), "")
	if a.Identity.Name == "" && (a.Kind == "" || r.Has("identity")) {
		decode.Missing(r, "identity.name", "the agent's name")
	}
	a.ModelPolicy.validate(r, a, o)
	a.Settings.validate(r, "")
	if a.Iteration != nil {
		a.Iteration.validate(r, a, o)
	}
	a.validateAgents(r, o)
	a.validateCommands(r, o)
	a.validateServers(r, o)
	a.validateTeam(r, o)
	a.validateLoop(r, o)
	a.Tools.validate(r, o)
	a.validateHosted(r, o)
	a.Budgets.Validate(r, a)
	if a.ResultSchema != nil {
		a.ResultSchema.validate(r, a)
	}
	if a.Hooks != nil {
		a.Hooks.Validate(r, a, o)
	}
	a.refuseUnbuilt(r)
	a.readPrompt(r)
	a.readInstructions(r)
	a.readSkills(r)
	if a.Iteration != nil && o.Unmet != nil && len(r.Problems) == 0 {
		unmet := o.Unmet(a)
		for i := range a.Iteration.TerminationConditions {
			if why := unmet[i]; why != "" {
				r.Warn(conditionPath(i), "this condition can never be met: %s", why)
			}
		}
	}
}

func (s *Settings) validate(r *decode.Report, prefix string) {
	at := func(key string) string { return decode.Join(prefix, key) }
	decode.Limit(r, at("max_cycles"), s.MaxCycles, 1, 1_000_000)
	decode.Limit(r, at("failure_threshold"), s.FailureThreshold, 1, 1_000_000)
	decode.Limit(r, at("max_nudges"), s.MaxNudges, 1, 1_000_000)
	if t := s.StallTimeout; t != nil && !r.Reported(at("stall_timeout")) && !(*t >= 1 && *t <= maxStallSeconds) {
		r.At(at("stall_timeout"), "1 second to 24 hours", "is %g seconds", float64(*t))
	}
	decode.Within(r, at("context_window"), s.ContextWindow, 1, 1_000_000_000)
	decode.NotEmpty(r, at("nudge_text"), s.NudgeText)
	if s.Compact != nil {
		s.Compact.validate(r, at("compact"))
	}
	if s.Approvals != nil {
		s.Approvals.validate(r, at("approvals"))
	}
}

func (c *Compact) validate(r *decode.Report, path string) {
	decode.Within(r, path+".ratio", c.Ratio, 0.1, 1)
	decode.Within(r, path+".max_summaries", c.MaxSummaries, 0, 1000)
	if c.Keep != nil {
		decode.Within(r, path+".keep.turns", c.Keep.Turns, 1, 1000)
		decode.Within(r, path+".keep.messages", c.Keep.Messages, 1, 1000)
		if c.Keep.Turns != nil && c.Keep.Messages != nil {
			r.At(path+".keep", "turns or messages, one of the two", "both are given")
		}
	}
}

// readPrompt sets System.
func (a *Agent) readPrompt(r *decode.Report) {
	a.System = a.Prompt.System
	a.systemAt = r.Problem(r.NodeAt("prompt.system"), "prompt.system", "", "")
	a.taskAt = r.Problem(r.NodeAt("prompt.task"), "prompt.task", "", "")
	if strings.TrimSpace(a.Prompt.Task) == "" && (a.Prompt.Task != "" || r.Has("prompt.task")) && !r.Reported("prompt.task") {
		r.At("prompt.task", "a text", "is empty")
	}
	if a.Prompt.SystemFile == "" {
		decode.NotEmpty(r, "prompt.system_file", a.Prompt.SystemFile)
		return
	}
	if a.Prompt.System != "" {
		r.At("prompt.system_file", "system or system_file", "both are given")
		return
	}
	path := PathIn(a.Dir, a.Prompt.SystemFile)
	data, err := decode.ReadFile(path)
	switch {
	case err != nil:
		r.At("prompt.system_file", "the path of a file, relative to the agent file", "cannot be read: %v", err)
		return
	case !utf8.Valid(data):
		r.At("prompt.system_file", "a text in UTF-8", "%s is not UTF-8", path)
		return
	}
	a.System = strings.TrimPrefix(string(data), "\ufeff")
	a.systemAt = decode.Problem{File: path, Line: 1, Column: 1, Path: "prompt.system_file"}
}

func (it *Iteration) validate(r *decode.Report, a *Agent, o Options) {
	it.Settings.validate(r, "iteration")
	onlyOnce(r, "iteration", a.Settings, it.Settings, "max_cycles") // the smaller of two cycle caps applies
	if c := a.Effective().Compact; it.SummaryStrategy != "" && c != nil && c.Strategy != "" {
		r.At("iteration.summary_strategy", "summary_strategy or compact.strategy, one of the two", "both are given")
	}
	if path := "iteration.termination_conditions"; r.Has(path) && !r.Reported(path) && len(it.TerminationConditions) == 0 {
		r.At(path, "at least one condition", "is an empty list")
	}
	for i, c := range it.TerminationConditions {
		validateCondition(r, conditionPath(i), c, a, o)
	}
	if a.Composite != nil {
		r.At("composite", "iteration or composite, one of the two",
			"composite is given together with iteration: the one is a team of agents, the other a single agent")
	}
}

func conditionPath(i int) string { return fmt.Sprintf("iteration.termination_conditions[%d]", i) }

func validateCondition(r *decode.Report, path string, c stop.Condition, a *Agent, o Options) {
	c.Check(func(key, expected, format string, args ...any) {
		at := path + "." + key
		switch {
		case format == "is missing" && (r.Reported(at+".exit_code") || r.Reported(at+".contains")):
		case format == "is missing":
			decode.Missing(r, at, expected)
		case !r.Reported(at):
			r.At(at, expected, format, args...)
		}
	})
	if at := path + ".match"; c.Kind.Known() && !c.Kind.Needs("match") && c.Match == (stop.Match{}) && r.Has(at) {
		r.At(at, "no such key", "a %s condition does not have it", c.Kind)
	}
	if c.Kind.Needs("tool") && c.Tool != "" {
		a.Tools.usable(r, path+".tool", c.Tool, o)
	}
}
