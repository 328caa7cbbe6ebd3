package goal

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/rules/fence"
)

// Facts contains what the engine knows at a checkpoint.
type Facts struct {
	State *State
	// Iteration is the number of the last iteration, starting at 1, and Of the maximum.
	Iteration, Of int
	Limits        budget.Limits
	Spent         budget.Spent
	// Entries is the number of log entries. The newest Told of them are passed on.
	Entries, Told int
}

// Review is the reviewer's answer to the two questions that no evidence answers.
type Review struct {
	Verdict event.Verdict `json:"verdict"`
	// Objective describes whether the objective is still valid. Human is the question
	// to a person, if a person is needed before the next step.
	Objective string `json:"objective"`
	Human     string `json:"human"`
	// Plan is the new plan, or empty to keep the current one.
	Plan []string `json:"plan,omitempty"`
}

// Questions returns the questions of a checkpoint with their answers. Without a review,
// the two questions to the reviewer have no answers.
func (s *Facts) Questions(r *Review) []event.CheckpointQuestion {
	const noReview = "nobody said: the reviewer gave no answer"
	objective, human := noReview, noReview
	if r != nil {
		objective, human = cmp.Or(r.Objective, "yes"), cmp.Or(r.Human, "no")
	}
	return []event.CheckpointQuestion{
		{Question: event.AskObjective, Answer: objective},
		{Question: "What evidence proves progress?", Answer: s.evidence()},
		{Question: "Is the run within its budget?", Answer: s.budget()},
		{Question: "Is the done condition met?", Answer: s.done()},
		{Question: event.AskHuman, Answer: human},
		{Question: "Should the history be compacted or handed off now?", Answer: s.handOff()},
	}
}

func (s *Facts) evidence() string {
	var lines []string
	for i := range s.State.Evidence {
		lines = append(lines, s.State.Evidence[i].line())
	}
	return cmp.Or(strings.Join(lines, "; "), "none: nothing was looked at since the last iteration")
}

func (s *Facts) done() string {
	if unmet := s.State.Unmet(); unmet != "" {
		return "no: " + unmet
	}
	return "no: not all of it was looked at"
}

// budget lists the usage of the iterations and of each limit on money and time.
func (s *Facts) budget() string {
	lines := []string{fmt.Sprintf("iteration %d of %d", s.Iteration, s.Of)}
	within := "yes"
	for _, setting := range budget.Table() {
		most, limited := setting.Value(s.Limits)
		if !limited || most <= 0 || setting.Kind != budget.Money && setting.Kind != budget.Time {
			continue
		}
		used := setting.Used(s.Spent)
		if used >= most {
			within = "no"
		}
		if setting.Kind == budget.Time {
			lines = append(lines, fmt.Sprintf("%s %s of %s", setting.Name, inSeconds(used), inSeconds(most)))
			continue
		}
		lines = append(lines, fmt.Sprintf("%s %.4f of %.2f", setting.Name, used, most))
	}
	return within + ": " + strings.Join(lines, ", ")
}

func inSeconds(n float64) time.Duration {
	return time.Duration(n * float64(time.Second)).Round(time.Second)
}

// handOff describes the log. Each iteration is a separate conversation, so the log is
// everything that is passed on, and only the log can become too long.
func (s *Facts) handOff() string {
	if left := s.Entries - s.Told; left > 0 {
		return fmt.Sprintf("yes: the log has %d entries, of which the newest %d are handed on; the next iteration begins afresh", s.Entries, s.Told)
	}
	return fmt.Sprintf("no: the next iteration begins afresh, and all %d entries of the log are handed on", s.Entries)
}

// ReviewTask returns the reviewer's task.
func (s *Facts) ReviewTask(f fence.Fence, log string) string {
	const asked = "## Checkpoint\nAn agent has worked on this goal for %d of at most %d iterations. Answer by submit_result:\n" +
		"- objective: is the objective still valid, and why?\n" +
		"- human: is a person needed before the next step? If so, the one question to them.\n" +
		"- verdict: not_done to go on; blocked_on_human where it cannot go on without an answer; impossible where it cannot be reached at all. " +
		"Whether it is done is not yours to say: the checks do.\n" +
		"- plan: the steps from here on, where the plan should change."
	parts := []string{fmt.Sprintf(asked, s.Iteration, s.Of), s.State.Brief(f), "## Evidence of the last iteration\n" + f.Wrap("evidence", s.evidence())}
	if log != "" {
		parts = append(parts, "## What the iterations left\n"+f.Wrap("log", log))
	}
	return strings.Join(parts, "\n\n")
}

// ReviewSchema returns the schema of a [Review].
func ReviewSchema() json.RawMessage {
	return json.RawMessage(`{"type":"object","properties":{` +
		`"verdict":{"type":"string","enum":["not_done","impossible","blocked_on_human"]},` +
		`"objective":{"type":"string","description":"whether the objective is still valid, and why"},` +
		`"human":{"type":"string","description":"whether a person is needed before the next step; the question to them where one is"},` +
		`"plan":{"type":"array","items":{"type":"string"},"description":"the steps from here on, where the plan should change"}},` +
		`"required":["verdict","objective","human"],"additionalProperties":false}`)
}

// ReadReview parses a reviewer's result. It returns nil if the result is not a review.
func ReadReview(result json.RawMessage) *Review {
	var r Review
	if len(result) == 0 || json.Unmarshal(result, &r) != nil {
		return nil
	}
	switch r.Verdict {
	case event.VerdictNotDone, event.VerdictImpossible, event.VerdictBlockedOnHuman:
		r.Plan = steps(r.Plan)
		return &r
	}
	return nil
}

// PlanTask returns the planner's task.
func (s *State) PlanTask(f fence.Fence) string {
	return "## Plan\nPlan the way to this objective: a few steps, each with a result that can be checked. Answer by submit_result.\n\n" + s.Brief(f)
}

// PlanSchema returns the schema of a plan.
func PlanSchema() json.RawMessage {
	return json.RawMessage(`{"type":"object","properties":{"steps":{"type":"array","minItems":1,"maxItems":50,"items":{"type":"string"}}},` +
		`"required":["steps"],"additionalProperties":false}`)
}

// ReadPlan parses a planner's result. It returns nil if the result is not a plan.
func ReadPlan(result json.RawMessage) []string {
	var p struct {
		Steps []string `json:"steps"`
	}
	if len(result) == 0 || json.Unmarshal(result, &p) != nil {
		return nil
	}
	return steps(p.Steps)
}

// Limits on a plan from a model, because every iteration's task contains the plan.
const (
	mostSteps  = 50
	mostOfStep = 500
)

// steps returns the nonempty steps of a plan.
func steps(all []string) (kept []string) {
	for _, s := range all {
		if s = strings.Join(strings.Fields(s), " "); s == "" || len(kept) == mostSteps {
			continue
		}
		if runes := []rune(s); len(runes) > mostOfStep {
			s = string(runes[:mostOfStep]) + "…"
		}
		kept = append(kept, s)
	}
	return kept
}
