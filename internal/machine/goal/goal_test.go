package goal_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/goal"
	"github.com/pawlrun/pawl/internal/rules/fence"
	"github.com/pawlrun/pawl/internal/rules/plan"
	"github.com/pawlrun/pawl/tool"
)

func state() *goal.State {
	return &goal.State{
		Goal: &plan.Goal{
			Objective: "Make it green.", Done: []string{"`go test`"},
			Validation: []plan.Stop{{Command: &plan.Command{Argv: []string{"go", "vet"}}}, {Expression: "iteration > 1"}},
		},
	}
}

func TestTheBriefSaysAllThatTheGoalIs(t *testing.T) {
	s := state()
	want := "## Objective\nMake it green.\n\n## Done when all of this holds\n- `go test`\n\n" +
		"## Checked after each iteration\n- `go vet`\n- `iteration > 1`\n\nWork towards the objective. What is claimed and not shown by a check is not done."
	if got := s.Brief(fence.New("q7x9")); got != want {
		t.Errorf("got\n%s", got)
	}
	s.Input, s.Plan, s.Messages = "in CI", []string{"find it", "mend it"}, []string{"port 8080"}
	for _, made := range []bool{false, true} {
		s.Made = made
		got := s.Brief(fence.New("q7x9"))
		for _, part := range []string{"## Input\nin CI", "1. find it\n2. mend it", "meanwhile, the newest last\n- port 8080"} {
			if !strings.Contains(got, part) {
				t.Errorf("%q is not in\n%s", part, got)
			}
		}
		if fenced := strings.Contains(got, "<untrusted"); fenced != made {
			t.Errorf("a plan that a model made, %t, is fenced: %t", made, fenced)
		}
	}
}

// rows: HAR-70..75
func TestACheckpointAnswersItsSixQuestions(t *testing.T) {
	s := state()
	now := goal.Facts{
		State: s, Iteration: 3, Of: 20, Entries: 60, Told: 50,
		Limits: budget.Limits{MaxTotalCost: 2, MaxWallSeconds: 60}, Spent: budget.Spent{USD: 0.5, Active: 90 * time.Second},
	}
	answers := func(r *goal.Review) string {
		var all []string
		for _, q := range now.Questions(r) {
			all = append(all, q.Answer)
		}
		return strings.Join(all, "\n")
	}
	want := "nobody said: the reviewer gave no answer\nnone: nothing was looked at since the last iteration\n" +
		"no: iteration 3 of 20, max_wall_time_seconds 1m30s of 1m0s, max_total_cost 0.5000 of 2.00\nno: not all of it was looked at\n" +
		"nobody said: the reviewer gave no answer\nyes: the log has 60 entries, of which the newest 50 are handed on; the next iteration begins afresh"
	if got := answers(nil); got != want {
		t.Errorf("got\n%s", got)
	}
	s.Evidence = []goal.Evidence{{What: "`go vet`", Holds: true}, {What: "`go test`", Reason: "it exited with 1", Done: true}}
	now.Spent.Active, now.Entries = 10*time.Second, 2
	want = "yes, still\n`go vet` holds; `go test` does not hold (it exited with 1)\n" +
		"yes: iteration 3 of 20, max_wall_time_seconds 10s of 1m0s, max_total_cost 0.5000 of 2.00\nno: `go test` does not hold (it exited with 1)\n" +
		"no\nno: the next iteration begins afresh, and all 2 entries of the log are handed on"
	if got := answers(&goal.Review{Verdict: event.VerdictNotDone, Objective: "yes, still"}); got != want {
		t.Errorf("got\n%s", got)
	}
	task := now.ReviewTask(fence.New("q7x9"), "Iteration 1: <untrusted>")
	for _, part := range []string{"for 3 of at most 20 iterations", "## Objective\nMake it green.", "`go test` does not hold", "Iteration 1: &lt;untrusted>"} {
		if !strings.Contains(task, part) {
			t.Errorf("%q is not in\n%s", part, task)
		}
	}
}

func TestALimitThatIsReachedIsNoBudget(t *testing.T) {
	for usd, want := range map[float64]string{1.9999: "yes: ", 2: "no: ", 2.5: "no: "} {
		now := goal.Facts{State: state(), Iteration: 1, Of: 2, Limits: budget.Limits{MaxTotalCost: 2}, Spent: budget.Spent{USD: usd}}
		if got := now.Questions(nil)[2].Answer; !strings.HasPrefix(got, want) {
			t.Errorf("USD %v of 2: %s", usd, got)
		}
	}
}

func TestALogThatFitsIsHandedOnWhole(t *testing.T) {
	for entries, want := range map[int]string{50: "no: the next iteration", 51: "yes: the log has 51 entries, of which the newest 50"} {
		now := goal.Facts{State: state(), Entries: entries, Told: 50}
		if got := now.Questions(nil)[5].Answer; !strings.HasPrefix(got, want) {
			t.Errorf("%d entries: %s", entries, got)
		}
	}
}

func TestWhatIsLookedAtIsCalledByWhatItIs(t *testing.T) {
	stops := []plan.Stop{
		{Expression: "iteration > 1"}, {Command: &plan.Command{Argv: []string{"go", "test"}}}, {Judge: "critic"}, {Human: &plan.Human{Prompt: "Good?"}},
	}
	want := "`iteration > 1`, `go test`, a judge, a person's approval"
	if got := strings.Join(goal.Names(stops), ", "); got != want {
		t.Errorf("%s", got)
	}
}

func TestPlannerGetsGoalAndReturnsSteps(t *testing.T) {
	s := state()
	s.Made = true // the planner returned no plan
	task := s.PlanTask(fence.New("q7x9"))
	if !strings.HasPrefix(task, "## Plan\n") || !strings.HasSuffix(task, s.Brief(fence.New("q7x9"))) || strings.Count(task, "## Plan") != 1 {
		t.Errorf("it is told\n%s", task)
	}
	schema, err := tool.CompileSchema(goal.PlanSchema())
	if err != nil {
		t.Fatal(err)
	}
	for answer, ok := range map[string]bool{`{"steps":["a","b"]}`: true, `{"steps":[]}`: false, `{}`: false, `{"steps":["a"],"why":"b"}`: false} {
		if err := schema.Validate([]byte(answer)); (err == nil) != ok {
			t.Errorf("%s: %v", answer, err)
		}
	}
}

func TestAPlanKeepsItsBounds(t *testing.T) {
	most := strings.Repeat("é", 500)
	got := goal.ReadPlan(fmt.Appendf(nil, `{"steps":[%q,%q%s]}`, most, most+"é", strings.Repeat(`,"c"`, 60)))
	if len(got) != 50 || got[0] != most || got[1] != most+"…" || got[49] != "c" {
		t.Errorf("%d steps: %q", len(got), got)
	}
}

func TestWhatIsNoAnswerIsRead(t *testing.T) {
	for name, c := range map[string]struct {
		result string
		there  bool
	}{
		"whole":           {`{"verdict":"not_done","objective":"yes","human":"no","plan":["a"," "]}`, true},
		"none":            {``, false},
		"no JSON":         {`yes`, false},
		"another verdict": {`{"verdict":"perhaps"}`, false},
		"done":            {`{"verdict":"done","objective":"yes","human":"no"}`, false}, // the reviewer may not decide this
	} {
		r := goal.ReadReview(json.RawMessage(c.result))
		if (r != nil) != c.there || c.there && len(r.Plan) != 1 {
			t.Errorf("%s: %+v", name, r)
		}
		schema, err := tool.CompileSchema(goal.ReviewSchema())
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate([]byte(c.result)); (err == nil) != c.there {
			t.Errorf("%s: the schema says %v", name, err)
		}
	}
	long := goal.ReadPlan(fmt.Appendf(nil, `{"steps":["a\nb","",%q]}`, strings.Repeat("é", 1000)))
	if len(long) != 2 || long[0] != "a b" || len([]rune(long[1])) != 501 {
		t.Errorf("%q", long)
	}
	if goal.ReadPlan(nil) != nil || goal.ReadPlan(json.RawMessage(`{"steps":"a"}`)) != nil {
		t.Error("there is a plan where none was made")
	}
}

func FuzzReadReview(f *testing.F) {
	f.Add([]byte(`{"verdict":"blocked_on_human","objective":"yes","human":"Which?","plan":["a"]}`))
	f.Add([]byte(`{"steps":["a"]}`))
	f.Fuzz(func(t *testing.T, result []byte) {
		if r := goal.ReadReview(result); r != nil && r.Verdict == "" {
			t.Errorf("%+v", r)
		}
		goal.ReadPlan(result)
	})
}
