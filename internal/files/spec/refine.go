package spec

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/rules/eval"
	"github.com/pawlrun/pawl/internal/rules/fence"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

// Loop makes an agent file a refinement loop: its agent repeats the same task, each
// time in a fresh run that receives the log of the earlier ones.
type Loop struct {
	Enabled       bool          `yaml:"loopEnabled,omitempty"`
	Criteria      *LoopCriteria `yaml:"loopCriteria,omitempty"`
	MaxIterations *int          `yaml:"maxIterations,omitempty"`

	OnLimit          string `yaml:"on_limit,omitempty" oneof:"ok stopped fail ask"`
	FailureThreshold *int   `yaml:"failure_threshold,omitempty" none:"yes"`
	// Runner does the work of each iteration instead of the agent.
	Runner       *Runner `yaml:"runner,omitempty"`
	LoopSettings `yaml:",inline"`
}

// LoopSettings configure a refinement loop. They are in its loop block or at the top
// level of the file.
type LoopSettings struct {
	StopWhen         []RefineStop `yaml:"stop_when,omitempty"`
	Carry            *Carry       `yaml:"carry,omitempty"`
	OnIterationError string       `yaml:"on_iteration_error,omitempty" oneof:"fail continue"`
	OnApprove        string       `yaml:"on_approve,omitempty" oneof:"complete continue"`
	OnReject         string       `yaml:"on_reject,omitempty" oneof:"fail continue_with_feedback"`
	ReviewTimeout    *Seconds     `yaml:"review_timeout,omitempty"`
	USDPerIteration  *float64     `yaml:"usd_per_iteration,omitempty" none:"yes"`
	StuckAfter       *int         `yaml:"stuck_after,omitempty" none:"yes"`
}

// LoopCriteria sets when a refinement loop is done.
type LoopCriteria struct {
	Type  string `yaml:"type,omitempty" oneof:"max_iterations regex test_pass manual"`
	Value string `yaml:"value,omitempty"`
}

// RefineStop is an additional condition that ends a loop, of an agent or of a step.
type RefineStop struct {
	CEL     string       `yaml:"cel,omitempty"`
	Regex   string       `yaml:"regex,omitempty"`
	Command *StopCommand `yaml:"command,omitempty"`
	Judge   *LoopJudge   `yaml:"judge,omitempty"`
	Human   *HumanReview `yaml:"human,omitempty"`

	Contains string      `yaml:"contains,omitempty"`
	Rubric   *LoopRubric `yaml:"rubric,omitempty"`
	LLMJudge *LoopJudge  `yaml:"llm_judge,omitempty"`
}

// StopCommand is a program whose exit code decides whether a loop is done.
type StopCommand struct {
	Argv    []string  `yaml:"argv,omitempty"`
	Timeout *Duration `yaml:"timeout,omitempty"`
}

// LoopRubric is a list of criteria; a model judges whether an iteration meets each.
type LoopRubric struct {
	Criteria []RubricCriterion `yaml:"criteria,omitempty"`
	PassAt   float64           `yaml:"pass_at,omitempty"`
	Model    string            `yaml:"model,omitempty"`
}

// RubricCriterion is one criterion of a rubric.
type RubricCriterion struct {
	Text   string  `yaml:"text,omitempty" short:"yes"`
	Weight float64 `yaml:"weight,omitempty"`
}

// Evaluator returns the evaluator for the condition, nil for none, and the model that
// it asks, empty for the agent's own.
func (s *RefineStop) Evaluator() (e *eval.Evaluator, model string) {
	switch {
	case s.Contains != "":
		return &eval.Evaluator{Kind: eval.Contains, Value: s.Contains}, ""
	case s.Rubric != nil:
		e = &eval.Evaluator{Kind: eval.Rubric, PassAt: s.Rubric.PassAt}
		for _, c := range s.Rubric.Criteria {
			e.Criteria = append(e.Criteria, eval.Criterion{Text: c.Text, Weight: c.Weight})
		}
		return e, s.Rubric.Model
	case s.LLMJudge != nil:
		return &eval.Evaluator{Kind: eval.LLMJudge, Value: s.LLMJudge.Prompt}, s.LLMJudge.Model
	}
	return nil, ""
}

// LoopJudge decides for each iteration whether the work is done: an agent of the
// workflow, or a model with a rubric.
type LoopJudge struct {
	Agent  string `yaml:"agent,omitempty" short:"yes"`
	Model  string `yaml:"model,omitempty"`
	Prompt string `yaml:"prompt,omitempty"`
}

// HumanReview asks a person about each iteration.
type HumanReview struct {
	Prompt string `yaml:"prompt,omitempty"`
}

// Carry sets what an iteration receives from earlier ones: the previous result,
// nothing, or the log of all.
type Carry struct {
	Iteration string `yaml:"iteration,omitempty" oneof:"previous none" short:"yes"`

	Log      *CarryLog `yaml:"log,omitempty"`
	Feedback *bool     `yaml:"feedback,omitempty"`
}

func (*LoopJudge) Expected() string {
	return "{prompt: …, model: …}, or the name of an agent of a workflow"
}

func (*Carry) Expected() string { return "previous, none, or {log: …, feedback: …}" }

func (c *Carry) Validate(r *decode.Report, path string) {
	if c == nil {
		return
	}
	if c.Iteration != "" && (c.Log != nil || c.Feedback != nil) {
		r.At(path, "one of the two", "has iteration beside log or feedback")
	}
	if c.Log != nil {
		decode.Within(r, path+".log.chars", c.Log.Chars, 1, 10_000)
		decode.Within(r, path+".log.max_entries", c.Log.MaxEntries, 1, maxIterations)
	}
}

// CarryLog configures the log of a loop.
type CarryLog struct {
	Extract    string `yaml:"extract,omitempty" oneof:"head tail summary"`
	Chars      *int   `yaml:"chars,omitempty"`
	MaxEntries *int   `yaml:"max_entries,omitempty"`
}

// Limits of a refinement loop.
const (
	defaultIterations = 10
	maxIterations     = 100
	maxPattern        = 64 << 10
)

// Loops reports whether the file has an enabled refinement loop.
func (a *Agent) Loops() bool { return a.Loop != nil && a.Loop.Enabled }

// StartsOthers reports whether a run of the file only starts runs that call models: a
// team, or a refinement loop.
func (a *Agent) StartsOthers() bool { return a.Composite != nil || a.Loops() }

// loopSettings returns the settings of the loop, wherever they are, and the path of
// each.
func (a *Agent) loopSettings() (s LoopSettings, at func(key string) string) {
	var block LoopSettings
	if a.Loop != nil {
		block = a.Loop.LoopSettings
	}
	return laidOver(a.LoopSettings, block), func(key string) string {
		first, _, _ := strings.Cut(key, ".")
		first, _, _ = strings.Cut(first, "[")
		if slices.Contains(given(block), first) {
			return "loop." + key
		}
		return key
	}
}

// LoopBody is the loop's name for the agent that it repeats.
const LoopBody = "iteration"

// loopAgents returns the agents that a loop starts: its own without the loop, and its
// judges.
func (a *Agent) loopAgents() []AgentTool {
	s, _ := a.loopSettings()
	body := *a
	body.Loop, body.LoopSettings, body.Prompt.Task = nil, LoopSettings{}, ""
	if a.Loop.Runner != nil {
		body.Loop = &Loop{Runner: a.Loop.Runner}
	}
	body.ModelPolicy.Budget = Money{USDPerRun: s.USDPerIteration}
	_, body.Budgets.Limits = a.Budgets.Split()
	all := []AgentTool{a.derived(LoopBody, &body)}
	if s.summarizes() {
		all = append(all, a.derived(loopSummarizer, a.Summarizer()))
	}
	for i, stop := range s.StopWhen {
		if judge := a.JudgeOf(&stop); judge != nil {
			all = append(all, a.derived(JudgeName(i), judge))
		}
	}
	return all
}

// JudgeOf returns the agent that decides whether a condition holds, nil if none is
// derived from a.
func (a *Agent) JudgeOf(s *RefineStop) *Agent {
	if s.Judge != nil {
		return a.loopJudge(s.Judge)
	}
	e, model := s.Evaluator()
	if e == nil || e.Kind == eval.Contains {
		return nil
	}
	q, _ := e.Ask(eval.Extract{}, fence.Fence{})
	judge := a.loopJudge(&LoopJudge{Model: model})
	judge.ResultSchema = &ResultSchema{JSON: q.Schema}
	return judge
}

// Summarizer returns the agent that summarizes the iterations of a loop.
func (a *Agent) Summarizer() *Agent {
	return a.withoutTools("summary of ", "You sum up what an attempt at a task came to.")
}

// loopSummarizer is the name of the agent that summarizes an iteration.
const loopSummarizer = "summary"

func (s *LoopSettings) summarizes() bool {
	return s.Carry.Summarizes()
}

func (c *Carry) Summarizes() bool {
	return c != nil && c.Log != nil && c.Log.Extract == string(plan.ExtractSummary)
}

func JudgeName(i int) string { return fmt.Sprintf("judge-%d", i+1) }

// derived returns an agent that the file defines itself.
func (a *Agent) derived(name string, of *Agent) AgentTool {
	return AgentTool{Name: name, Description: name, File: SourceOf(a.File).Of(name).String(), Derived: of}
}

// loopJudge returns the agent that judges iterations; it has no tools.
func (a *Agent) loopJudge(j *LoopJudge) *Agent {
	judge := a.withoutTools("judge of ", cmp.Or(j.Prompt, "You judge whether the work of an iteration is done."))
	judge.ResultSchema = &ResultSchema{JSON: json.RawMessage(verdictSchema)}
	if j.Model != "" {
		judge.ModelPolicy, judge.Role, judge.byRole = ModelPolicy{Primary: Model{Model: j.Model}}, "", ""
	}
	return judge
}

// withoutTools returns an agent with the same model and no tools.
func (a *Agent) withoutTools(role, system string) *Agent {
	of := &Agent{
		APIVersion: a.APIVersion, Identity: Identity{Name: role + a.Identity.Name}, ModelPolicy: a.ModelPolicy, Role: a.Role, Dir: a.Dir,
		Tools: Tools{Allow: Names{}}, System: system, byClass: a.byClass, byRole: a.byRole,
	}
	of.ModelPolicy.Budget = Money{}
	return of
}

const verdictSchema = `{"type":"object","properties":{"verdict":{"type":"string","enum":["done","not_done","impossible","blocked_on_human"]},` +
	`"reason":{"type":"string"}},"required":["verdict","reason"]}`

// LoopRoot returns the file as that of the loop itself: the limits of all iterations,
// and the permissions of its commands.
func (a *Agent) LoopRoot() *Agent {
	root := &Agent{
		APIVersion: a.APIVersion, Identity: a.Identity, ModelPolicy: ModelPolicy{Budget: a.ModelPolicy.Budget}, Loop: a.Loop, LoopSettings: a.LoopSettings,
		Tools: Tools{Permissions: a.Tools.Permissions, ProtectedPaths: a.Tools.ProtectedPaths}, Dir: a.Dir, File: a.File, agents: a.loopAgents(),
	}
	root.Budgets.Limits, _ = a.Budgets.Split()
	root.Budgets.Actions = a.Budgets.Actions
	return root
}
