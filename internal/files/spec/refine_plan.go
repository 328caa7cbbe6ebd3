package spec

import (
	"cmp"
	"strings"
	"time"

	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/machine/refine"
	"github.com/pawlrun/pawl/internal/rules/eval"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

// loopID is the step that holds the iterations of a refinement loop.
const loopID = "loop"

// testTimeout bounds the command of a test_pass criterion.
const testTimeout = 60 * time.Second

// loopPlan returns the plan of a refinement loop.
func (a *Agent) loopPlan() plan.Plan {
	s, _ := a.loopSettings()
	l := &plan.Loop{
		Body:   plan.Plan{Steps: []plan.Step{{Agent: &plan.Agent{Name: LoopBody}}}},
		Single: true, Max: cmp.Or(decode.Given(a.Loop.MaxIterations), defaultIterations), OnLimit: plan.OnLimit(cmp.Or(a.Loop.OnLimit, "ok")),
		ErrorsMax: max(decode.Given(a.Loop.FailureThreshold), 0), Carry: s.Carry.Plan(loopSummarizer), StuckAfter: max(decode.Given(s.StuckAfter), 0),
	}
	if l.OnLimit == "fail" {
		l.OnLimit = plan.LimitFails
	}
	if s.OnIterationError == "continue" {
		l.OnError = plan.IterationContinues
	}
	if c := a.Loop.Criteria; c != nil {
		l.StopWhen = c.stop(s)
	}
	for i, stop := range s.StopWhen {
		l.StopWhen = append(l.StopWhen, stop.plan(i, s))
	}
	return plan.Plan{Name: a.Identity.Name, Refine: true, Steps: []plan.Step{{ID: loopID, Loop: l}}}
}

func (c *LoopCriteria) stop(s LoopSettings) []plan.Stop {
	switch {
	case c.Type == "regex" && compilePattern(c.Value) == nil:
		return []plan.Stop{{Regex: c.Value}}
	case c.Type == "test_pass":
		return []plan.Stop{{Command: &plan.Command{Argv: strings.Fields(c.Value), Timeout: testTimeout}}}
	case c.Type == "manual":
		return []plan.Stop{{Human: s.human(nil)}}
	}
	return nil
}

func (stop RefineStop) plan(i int, s LoopSettings) plan.Stop {
	p := plan.Stop{Expression: stop.CEL, Regex: stop.Regex}
	p.Eval, _ = stop.Evaluator()
	switch {
	case p.Eval != nil && p.Eval.Kind != eval.Contains:
		p.Judge = JudgeName(i)
	case stop.Command != nil:
		p.Command = &plan.Command{Argv: stop.Command.Argv, Timeout: cmp.Or(stop.Command.Timeout.Length(), testTimeout)}
	case stop.Judge != nil:
		p.Judge = JudgeName(i)
	case stop.Human != nil:
		p.Human = s.human(stop.Human)
	}
	return p
}

func (s LoopSettings) human(h *HumanReview) *plan.Human {
	p := &plan.Human{GoesOn: s.OnApprove == "continue", Feedback: s.OnReject == "continue_with_feedback"}
	if h != nil {
		p.Prompt = h.Prompt
	}
	if s.ReviewTimeout != nil {
		p.Timeout = s.ReviewTimeout.Duration()
	}
	return p
}

// Plan returns what a loop carries, by default a log; summarizer is the name of the
// agent that summarizes iterations.
func (carry *Carry) Plan(summarizer string) plan.Carry {
	log := &plan.Log{Chars: refine.Chars, MaxEntries: refine.MaxEntries}
	c := plan.Carry{Log: log}
	switch {
	case carry == nil:
		return c
	case carry.Iteration != "":
		return plan.Carry{None: carry.Iteration == "none"}
	}
	c.NoFeedback = carry.Feedback != nil && !*carry.Feedback
	if given := carry.Log; given != nil {
		log.Chars, log.MaxEntries = cmp.Or(decode.Given(given.Chars), log.Chars), cmp.Or(decode.Given(given.MaxEntries), log.MaxEntries)
		if given.Extract != "head" {
			log.Extract = plan.Extract(given.Extract)
		}
		if log.Extract == plan.ExtractSummary {
			log.Summarizer = summarizer
		}
	}
	return c
}
