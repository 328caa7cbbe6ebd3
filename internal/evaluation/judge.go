package evaluation

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/files/suite"
	"github.com/pawlrun/pawl/internal/rules/eval"
	"github.com/pawlrun/pawl/internal/rules/fence"
	"github.com/pawlrun/pawl/journal"
)

// read returns what is known about an ended or parked run, and its extract.
func (e *Evaluation) read(ctx context.Context, row journal.Run) (*Trial, eval.Extract, error) {
	t := &Trial{Run: row.ID, State: string(row.State), Seconds: row.Updated.Sub(row.Created).Seconds(), Cycles: row.Cycles}
	cost, err := e.spent(ctx, row)
	t.USD = cost.USD
	if err != nil || row.State != journal.Ended {
		return t, eval.Extract{}, err
	}
	var o event.Outcome
	if err := json.Unmarshal(row.Outcome, &o); err != nil {
		return nil, eval.Extract{}, fmt.Errorf("evaluation: the outcome of run %s: %w", row.ID, err)
	}
	t.OK, t.Reason = o.OK, string(o.Reason)
	if o.Error != nil && !o.OK {
		t.Problem = o.Error.Message
	}
	x, err := eval.Of(drive.AsStored(ctx, e.Store, row.ID))
	t.Text = x.Text
	return t, x, err
}

// judge returns the verdict of one evaluator, nil if the evaluation was stopped before.
// An evaluator that cannot decide does not pass, with the reason.
func (e *Evaluation) judge(ctx context.Context, t *trial, i int, of suite.Evaluator, x eval.Extract, usd float64) (*Verdict, error) {
	rule, model := of.Rule()
	v := &Verdict{Evaluator: rule.String()}
	var answer json.RawMessage
	if rule.Kind == eval.CEL {
		value, err := e.expressions.Evaluate(ctx, rule.Value, x.Variables(usd))
		if err != nil {
			v.Reason = err.Error()
			return v, nil
		}
		answer = value
	}
	if q, asks := rule.Ask(x, fence.New(strings.ToLower(rand.Text()[:16]))); asks {
		row, o, err := e.ask(ctx, t.judges[i], cmp.Or(model, e.Suite.Judge), q)
		if err != nil || stopped(ctx, row) {
			return nil, err
		}
		v.Run = row.ID
		if o.Cost != nil {
			v.USD = o.Cost.USD
		}
		if !o.Completed {
			v.Reason = fmt.Sprintf("the judge gave no verdict (%s)", cmp.Or(string(o.Reason), row.Detail))
			return v, nil
		}
		answer = json.RawMessage(o.FinalOutput)
	}
	r, err := rule.Read(x, answer)
	if err != nil {
		v.Reason = strings.TrimPrefix(err.Error(), "eval: ")
		return v, nil
	}
	v.Pass, v.Score, v.Reason = r.Pass, r.Score, r.Reason
	return v, nil
}

// judgeID returns the id of the run that answers for an evaluator, "" if none does.
func (e *Evaluation) judgeID(run string, of suite.Evaluator) string {
	rule, model := of.Rule()
	q, asks := rule.Ask(eval.Extract{}, fence.Fence{})
	if !asks {
		return ""
	}
	return runID(e.token, run, cmp.Or(model, e.Suite.Judge), q.Task)
}

// ask has a model answer a question, in a run without tools.
func (e *Evaluation) ask(ctx context.Context, id, model string, q eval.Question) (journal.Run, event.Outcome, error) {
	row, err := e.drive(ctx, id, func() (event.RunStarted, perform.Env, error) { return e.judgeRun(model, q) })
	var o event.Outcome
	if err == nil && len(row.Outcome) > 0 {
		err = json.Unmarshal(row.Outcome, &o)
	}
	return row, o, err
}

func (e *Evaluation) judgeRun(model string, q eval.Question) (event.RunStarted, perform.Env, error) {
	fail := func(err error) (event.RunStarted, perform.Env, error) {
		return event.RunStarted{}, perform.Env{}, fmt.Errorf("evaluation: the judge: %w", err)
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": spec.Version, "kind": "Agent", "identity": map[string]any{"name": "judge of " + e.Suite.Name},
		"model_policy": map[string]any{"primary": map[string]any{"model": model}},
		"prompt":       map[string]any{"system": "You judge runs of other agents."},
		"tools":        map[string]any{"allow": []string{}},
		"resultSchema": q.Schema,
	})
	if err != nil {
		return fail(err)
	}
	o := e.Options
	o.Model, o.Dir, o.Workspace = "", e.Suite.Dir(), e.workspace("judge")
	if err := os.MkdirAll(o.Workspace, 0o700); err != nil {
		return fail(err)
	}
	file := launch.File{Path: spec.SourceOf(e.Suite.File).Of("judge").String(), Text: text}
	started, env, err := launch.Agent(file, q.Task, o)
	if err != nil {
		return fail(err)
	}
	return started, env, nil
}
