// Package suite turns the file of an evaluation into validated values: cases, which are
// runs to start or to take from the journal, and the evaluators that judge them.
package suite

import (
	"cmp"
	"path/filepath"
	"strings"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/files/spec"
)

// Kind is the kind of the file.
const Kind = "Eval"

// The defaults of a suite.
const (
	DefaultConcurrency = 4
	maxRuns            = 1000
	maxConcurrency     = 64
)

// Suite is the file of an evaluation. Optional numbers are nil if the file does not
// contain them.
type Suite struct {
	APIVersion string `yaml:"apiVersion,omitempty" oneof:"pawl/v1"`
	Kind       string `yaml:"kind,omitempty" oneof:"Eval"`
	Name       string `yaml:"name,omitempty"`
	// Target is what the cases run that name nothing else.
	Target `yaml:",inline"`
	// Judge is the model of the evaluators that ask one.
	Judge string `yaml:"judge,omitempty"`
	// Runs is how often each case runs.
	Runs *int `yaml:"runs,omitempty"`
	// Threshold is the share of runs that must pass.
	Threshold *float64 `yaml:"threshold,omitempty"`
	// Budget bounds the cost of all runs together, in USD.
	Budget      *float64 `yaml:"budget,omitempty" none:"yes"`
	Concurrency *int     `yaml:"concurrency,omitempty"`
	// Evaluators judge every case, in addition to those of the case.
	Evaluators []Evaluator `yaml:"evaluators,omitempty"`
	Cases      []Case      `yaml:"cases,omitempty"`

	// File is the path of the suite; the paths in it are relative to its directory.
	File     string           `yaml:"-"`
	Warnings []decode.Problem `yaml:"-"`
}

// Target is what a case runs.
type Target struct {
	// Agent and Workflow name a file; only one of them is given.
	Agent    string `yaml:"agent,omitempty"`
	Workflow string `yaml:"workflow,omitempty"`
	// Model replaces every model of the file.
	Model string `yaml:"model,omitempty"`
}

// File returns the file to run, "" for none.
func (t Target) File() string { return cmp.Or(t.Agent, t.Workflow) }

// Case is one input with the evaluators of what a run makes of it.
type Case struct {
	Name   string `yaml:"name,omitempty"`
	Input  string `yaml:"input,omitempty"`
	Target `yaml:",inline"`
	// Files are the content of the directory that the tools work in.
	Files Files             `yaml:"files,omitempty"`
	Vars  map[string]string `yaml:"vars,omitempty"`
	// Recorded is a run of the journal that is judged in place of a new one.
	Recorded string `yaml:"recorded,omitempty"`
	Runs     *int   `yaml:"runs,omitempty"`
	// MayFail lets a run pass even if its outcome is not ok.
	MayFail    bool        `yaml:"may_fail,omitempty"`
	Evaluators []Evaluator `yaml:"evaluators,omitempty"`
}

// Of returns what a case runs: its own values, or else those of the suite.
func (s *Suite) Of(c *Case) Target {
	t := s.Target
	if c.File() != "" {
		t.Agent, t.Workflow = c.Agent, c.Workflow
	}
	t.Model = cmp.Or(c.Model, t.Model)
	return t
}

// Path returns the path of a file that the suite names.
func (s *Suite) Path(name string) string { return spec.PathIn(s.Dir(), name) }

// Dir returns the directory of the suite.
func (s *Suite) Dir() string { return filepath.Dir(s.File) }

// Times returns how often a case runs. A recorded run is the same each time.
func (s *Suite) Times(c *Case) int {
	switch {
	case c.Recorded != "":
		return 1
	case c.Runs != nil:
		return *c.Runs
	case s.Runs != nil:
		return *s.Runs
	}
	return 1
}

// Parallel returns the number of concurrent runs.
func (s *Suite) Parallel() int {
	if s.Concurrency == nil {
		return DefaultConcurrency
	}
	return *s.Concurrency
}

// CapUSD returns the most that all runs together may cost; [budget.None] is no limit.
func (s *Suite) CapUSD() float64 {
	if s.Budget == nil {
		return budget.DefaultUSDPerRun
	}
	return *s.Budget
}

// EvaluatorsOf returns the evaluators of a case, those of the suite last.
func (s *Suite) EvaluatorsOf(c *Case) []Evaluator {
	return append(append([]Evaluator{}, c.Evaluators...), s.Evaluators...)
}

// Live returns the suite without its recorded runs: every case runs anew.
func (s *Suite) Live() *Suite {
	live := *s
	live.Cases = append([]Case{}, s.Cases...)
	for i := range live.Cases {
		live.Cases[i].Recorded = ""
	}
	return &live
}

// Parse validates the content of a suite. The error is [decode.Errors].
func Parse(path string, data []byte) (*Suite, error) {
	r, s := decode.New(path), &Suite{File: path}
	if r.Fill(s, data, "an evaluation: agent, cases, evaluators", 0) {
		s.validate(r)
	}
	if s.Name == "" {
		s.Name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	}
	if s.Warnings = r.Warnings.Sorted(); len(r.Problems) > 0 {
		return nil, r.All()
	}
	return s, nil
}

// Least returns the share of runs that must pass.
func (s *Suite) Least() float64 {
	if s.Threshold == nil {
		return 1
	}
	return *s.Threshold
}
