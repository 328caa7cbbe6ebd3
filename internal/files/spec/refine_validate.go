package spec

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/files/expr"
	"github.com/pawlrun/pawl/internal/rules/eval"
)

// validateLoop checks a refinement loop.
func (a *Agent) validateLoop(r *decode.Report, o Options) {
	l := a.Loop
	if l == nil {
		for _, key := range given(a.LoopSettings) {
			r.Warn(key, "has no effect without loop")
		}
		return
	}
	onlyOnce(r, "loop", a.LoopSettings, l.LoopSettings, "")
	decode.Within(r, "loop.maxIterations", l.MaxIterations, 1, maxIterations)
	a.validateRunner(r, o)
	decode.Limit(r, "loop.failure_threshold", l.FailureThreshold, 1, maxIterations)
	if l.Criteria != nil {
		l.Criteria.validate(r)
	}
	s, at := a.loopSettings()
	decode.Money(r, at("usd_per_iteration"), s.USDPerIteration)
	decode.Limit(r, at("stuck_after"), s.StuckAfter, 1, maxIterations)
	if s.ReviewTimeout != nil && *s.ReviewTimeout <= 0 && !r.Reported(at("review_timeout")) {
		r.At(at("review_timeout"), "a time above 0", "is %v", float64(*s.ReviewTimeout))
	}
	s.Carry.Validate(r, at("carry"))
	if s.summarizes() && l.Runner != nil && len(a.Chain()) == 0 && o.Model == "" {
		decode.Missing(r, "model_policy.primary", "a model for "+at("carry.log.extract")+": summary, because loop.runner has none")
	}
	for i := range s.StopWhen {
		a.validateRefineStop(r, at(fmt.Sprintf("stop_when[%d]", i)), &s.StopWhen[i], o)
	}
}

func (c *LoopCriteria) validate(r *decode.Report) {
	const path = "loop.loopCriteria.value"
	switch c.Type {
	case "":
		decode.Missing(r, "loop.loopCriteria.type", "one of max_iterations, regex, test_pass, manual")
	case "regex", "test_pass":
		if strings.TrimSpace(c.Value) == "" {
			decode.Missing(r, path, "a pattern or a command")
		}
		if c.Type == "regex" {
			if len(c.Value) > maxPattern {
				r.At(path, fmt.Sprintf("at most %d bytes", maxPattern), "has %d bytes", len(c.Value))
			} else if err := compilePattern(c.Value); err != nil {
				r.Warn(path, "is no regular expression, so it never matches and only the cap ends the loop: %v", err)
			}
		}
	case "max_iterations", "manual":
		if c.Value != "" {
			r.At(path, "no such key", "a %s criterion takes no value", c.Type)
		}
	}
}

func compilePattern(pattern string) error {
	_, err := regexp.Compile("(?i)" + pattern)
	return err
}

// Validate checks what is the same for all conditions.
func (s *RefineStop) Validate(r *decode.Report, path string) {
	decode.Single(r, path, "one of cel, regex, command, judge, human, contains, rubric, llm_judge",
		s.CEL != "", s.Regex != "", s.Command != nil, s.Judge != nil, s.Human != nil, s.Contains != "", s.Rubric != nil, s.LLMJudge != nil)
	switch {
	case len(s.Regex) > maxPattern:
		r.At(path+".regex", fmt.Sprintf("at most %d bytes", maxPattern), "has %d bytes", len(s.Regex))
	case s.Regex != "":
		if err := compilePattern(s.Regex); err != nil {
			r.At(path+".regex", "a regular expression", "%v", err)
		}
	case s.LLMJudge != nil && s.LLMJudge.Agent != "":
		r.At(path+".llm_judge", "{prompt: …, model: …}", "names the agent %s; judge takes one", s.LLMJudge.Agent)
	}
	if e, _ := s.Evaluator(); e != nil && !r.Reported(path) {
		if err := e.Check(); err != nil {
			r.At(decode.Join(path, string(e.Kind)), "", "%s", strings.TrimPrefix(err.Error(), "eval: "+string(e.Kind)+": "))
		}
	}
}

func (a *Agent) validateRefineStop(r *decode.Report, path string, s *RefineStop, o Options) {
	s.Validate(r, path)
	switch {
	case s.CEL != "":
		CheckExpression(r, path+".cel", s.CEL, expr.Scope{Place: expr.Until, Single: true, Self: expr.Step{Result: a.resultJSON()}})
	case s.Command != nil && (len(s.Command.Argv) == 0 || s.Command.Argv[0] == "") && !r.Reported(path+".command.argv"):
		decode.Missing(r, path+".command.argv", "a program and its arguments")
	case s.Judge != nil && s.Judge.Agent != "":
		r.At(path+".judge", "{prompt: …, model: …}", "an agent's loop names no other agent")
	case s.Judge != nil:
		a.checkLoopModel(r, path+".judge.model", s.Judge.Model, o)
	default:
		a.validateEvaluator(r, path, s, o)
	}
}

func (a *Agent) validateEvaluator(r *decode.Report, path string, s *RefineStop, o Options) {
	e, model := s.Evaluator()
	if e == nil || r.Reported(path) {
		return
	}
	path = decode.Join(path, string(e.Kind))
	if e.Kind == eval.Contains {
		return
	}
	a.checkLoopModel(r, path+".model", model, o)
	if model == "" && a.Loop.Runner != nil && len(a.Chain()) == 0 && o.Model == "" {
		decode.Missing(r, path+".model", "a model as provider/name, because the file names none")
	}
}

func (a *Agent) checkLoopModel(r *decode.Report, path, model string, o Options) {
	if model == "" || !o.Confined(r, path, model) || o.CheckModel == nil {
		return
	}
	if err := o.CheckModel(a.Dir, model); err != nil {
		r.At(path, "a model as provider/name", "%v", err)
	}
}

func (a *Agent) resultJSON() json.RawMessage {
	if a.ResultSchema == nil {
		return nil
	}
	return a.ResultSchema.JSON
}

// CheckExpression reports the errors in an expression of a file.
func CheckExpression(r *decode.Report, path, text string, scope expr.Scope) {
	checker, err := expr.NewChecker()
	if err == nil {
		err = checker.Check(text, scope)
	}
	if WrongExpression(r, path, text, err); err == nil {
		Never(r, path, checker.Never(text, scope))
	}
}

// Never warns about comparisons with a constant result.
func Never(r *decode.Report, path string, found expr.Errors) {
	for _, one := range found {
		r.Warn(path, "%s", one.Message)
	}
}

// WrongExpression reports a checker's errors about an expression.
func WrongExpression(r *decode.Report, path, text string, err error) {
	if wrong, ok := errors.AsType[expr.Errors](err); ok {
		for _, one := range wrong {
			r.At(path, "", "%s (character %d of the expression)", one.Message, one.Offset(text)+1)
		}
	} else if err != nil {
		r.At(path, "", "%v", err)
	}
}
