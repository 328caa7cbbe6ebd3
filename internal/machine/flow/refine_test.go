package flow_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/flow"
	"github.com/pawlrun/pawl/internal/rules/eval"
	"github.com/pawlrun/pawl/internal/rules/fence"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

// refinement returns a loop around one agent.
func refinement(l plan.Loop) plan.Plan {
	l.Single, l.Body = true, plan.Plan{Steps: []plan.Step{{Agent: &plan.Agent{Name: "iteration"}}}}
	if l.Carry.Log == nil {
		l.Carry.Log = &plan.Log{Chars: 10, MaxEntries: 50}
	}
	return plan.Plan{Name: "fix", Refine: true, Steps: []plan.Step{{ID: "loop", Loop: &l}}}
}

func attempts(a machine.StartChild) (event.Outcome, event.Taint) {
	return ok("attempt " + strings.TrimPrefix(a.ID, "loop.") + " and more text"), event.Taint{}
}

// rows: RON-1..4, RON-8..12, RON-35, RON-36, RON-41, RON-42
func TestALoopWithoutACriterionEndsAtItsCapWithTheLastLearning(t *testing.T) {
	p := newPlayer(t, refinement(plan.Loop{Max: 3, OnLimit: plan.LimitIsOK}))
	p.says = attempts
	o := p.play()
	if o.Status != event.StatusStopped || o.Reason != event.ReasonMaxIterations || o.Limit != "maxIterations" || !o.OK || o.Completed || o.Iterations != 3 ||
		o.FinalOutput != "attempt 2" || o.LastOutput != "attempt 2 and more text" {
		t.Errorf("%+v", o)
	}
	var told []string
	for _, e := range p.events {
		switch d := e.Data.(type) {
		case event.Iteration:
			told = append(told, fmt.Sprint("iteration ", d.Number, "/", d.MaxIterations, " ", d.Output, " ", d.Child))
		case event.Progress:
			told = append(told, fmt.Sprint("progress ", d.Number, " ", d.Learning))
		}
	}
	if want := []string{
		"iteration 1/3 attempt 0 and more text run0", "progress 1 attempt 0", "iteration 2/3 attempt 1 and more text run1", "progress 2 attempt 1",
		"iteration 3/3 attempt 2 and more text run2", "progress 3 attempt 2",
	}; !slices.Equal(told, want) {
		t.Errorf("%q", told)
	}
	if first, third := p.told("loop.0"), p.told("loop.2"); first != "Build it." || !strings.Contains(third, "attempt 0\n") || !strings.Contains(third, "attempt 1\n") ||
		!strings.Contains(third, "Iteration 3 of 3") || strings.Contains(third, "more text") {
		t.Errorf("%q\n%s", first, third)
	}
	if got := p.again().State().Outcome; got == nil || got.FinalOutput != o.FinalOutput || got.Iterations != 3 {
		t.Errorf("a fold gives %+v", got)
	}
}

// rows: RON-13, RON-15, RON-40
func TestTheFirstCriterionThatHoldsEndsTheLoopBeforeTheCap(t *testing.T) {
	for name, tt := range map[string]struct {
		stops []plan.Stop
		kind  string
		index int
	}{
		"a pattern, whatever the case":         {[]plan.Stop{{Regex: "ATTEMPT 2"}}, "regex", 0},
		"a pattern in what the log leaves out": {[]plan.Stop{{Regex: "2 and MORE text$"}}, "regex", 0},
		"a command":                            {[]plan.Stop{{Regex: "never"}, {Command: &plan.Command{Argv: []string{"test"}}}}, "command", 1},
		"a pattern looks at this output alone": {[]plan.Stop{{Regex: "attempt [01](.|\n)*attempt"}, {Regex: "attempt 2"}}, "regex", 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(t, refinement(plan.Loop{Max: 3, StopWhen: tt.stops, OnLimit: plan.LimitIsOK}))
			p.says = attempts
			runs := 0
			p.exec = func(machine.RunCommand) event.CommandFinished {
				runs++
				code := 1
				if runs == 3 {
					code = 0
				}
				return event.CommandFinished{ExitCode: &code, Output: "--- FAIL: TestAdd"}
			}
			o := p.play()
			if o.Status != event.StatusCompleted || o.Reason != event.ReasonConditionMet || o.Kind != tt.kind || o.Index == nil || *o.Index != tt.index ||
				o.FinalOutput != "attempt 2 and more text" || o.Iterations != 3 {
				t.Errorf("%+v", o)
			}
			if tt.kind == "command" && !strings.Contains(p.told("loop.1"), "--- FAIL: TestAdd") {
				t.Errorf("the next attempt does not learn why the test failed:\n%s", p.told("loop.1"))
			}
		})
	}
}

// rows: RON-11, RON-39
func TestAFailedIterationEndsTheLoopUnlessItMayGoOn(t *testing.T) {
	failsFrom := func(n int) func(machine.StartChild) (event.Outcome, event.Taint) {
		return func(a machine.StartChild) (event.Outcome, event.Taint) {
			if a.ID >= fmt.Sprint("loop.", n) {
				return fails("no key"), event.Taint{}
			}
			return attempts(a)
		}
	}
	for name, tt := range map[string]struct {
		loop   plan.Loop
		reason event.Reason
		status event.Status
		ran    int
	}{
		"it fails":               {plan.Loop{Max: 5}, event.ReasonIterationFailed, event.StatusFailed, 2},
		"it goes on":             {plan.Loop{Max: 5, OnError: plan.IterationContinues, OnLimit: plan.LimitIsOK}, event.ReasonMaxIterations, event.StatusStopped, 5},
		"until too many fail":    {plan.Loop{Max: 5, OnError: plan.IterationContinues, ErrorsMax: 2}, event.ReasonRepeatedFailure, event.StatusFailed, 3},
		"the cap may be a fault": {plan.Loop{Max: 1, StopWhen: []plan.Stop{{Regex: "never"}}}, event.ReasonMaxIterations, event.StatusFailed, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(t, refinement(tt.loop))
			p.says = failsFrom(1)
			o := p.play()
			if o.Reason != tt.reason || o.Status != tt.status || o.Iterations != tt.ran || o.OK != (tt.loop.OnLimit == plan.LimitIsOK) {
				t.Errorf("%+v", o)
			}
			if o.Reason == event.ReasonIterationFailed && (o.AtIteration != 2 || !strings.Contains(o.Error.Message, "iteration 2: no key")) {
				t.Errorf("%+v, %v", o, o.Error)
			}
		})
	}
}

// lastReview returns the last review request.
func lastReview(p *player) (last event.ReviewRequested) {
	for _, e := range p.events {
		if d, is := e.Data.(event.ReviewRequested); is {
			last = d
		}
	}
	return last
}

// rows: RON-19..22
func TestAPersonReviewsAnIteration(t *testing.T) {
	for name, tt := range map[string]struct {
		human  plan.Human
		says   event.ApprovalKind
		reason event.Reason
		ran    int
		// second is what the person says to the second iteration, says by default.
		second event.ApprovalKind
	}{
		"approved":               {plan.Human{}, event.ApprovalApproved, event.ReasonConditionMet, 1, ""},
		"rejected":               {plan.Human{}, event.ApprovalRejected, event.ReasonRejected, 1, ""},
		"approved, and goes on":  {plan.Human{GoesOn: true}, event.ApprovalApproved, event.ReasonMaxIterations, 2, ""},
		"rejected with feedback": {plan.Human{Feedback: true}, event.ApprovalRejected, event.ReasonMaxIterations, 2, ""},
		"told to go on":          {plan.Human{}, event.ApprovalContinue, event.ReasonMaxIterations, 2, ""},
		"nobody decided in time": {plan.Human{Timeout: time.Hour}, event.ApprovalExpired, event.ReasonRejected, 1, ""},
		"the second is approved": {plan.Human{}, event.ApprovalContinue, event.ReasonConditionMet, 2, event.ApprovalApproved},
		"the second is rejected": {plan.Human{}, event.ApprovalContinue, event.ReasonRejected, 2, event.ApprovalRejected},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(t, refinement(plan.Loop{Max: 2, StopWhen: []plan.Stop{{Human: &tt.human}}, OnLimit: plan.LimitIsOK}))
			p.says = attempts
			var o event.Outcome
			for i := range 3 {
				if o = p.play(); o.Reason != "" {
					break
				}
				open := p.m.State().Pending
				if len(open) != 1 || open[0].ID != fmt.Sprint("review-", i+1) || open[0].Kind != event.QuestionReview {
					t.Fatalf("%+v\n%s", open, p.story())
				}
				if d := lastReview(p); d.Number != i+1 || d.Output != fmt.Sprint("attempt ", i, " and more text") {
					t.Errorf("review %d shows iteration %d: %q", i+1, d.Number, d.Output)
				}
				p.now = p.now.Add(2 * time.Hour)
				says := tt.says
				if i > 0 {
					says = cmp.Or(tt.second, says)
				}
				p.apply(open[0].Resolve(event.Resolution{Kind: says, Approver: "ann", Reason: "Shorter, please.", At: p.now}))
			}
			if o.Reason != tt.reason || o.Iterations != tt.ran {
				t.Fatalf("%+v\n%s", o, p.story())
			}
			switch {
			case tt.reason == event.ReasonConditionMet && (o.Kind != "human" || o.FinalOutput != fmt.Sprintf("attempt %d and more text", tt.ran-1)):
				t.Errorf("%+v", o)
			case cmp.Or(tt.second, tt.says) == event.ApprovalRejected && tt.reason == event.ReasonRejected && o.Error.Message != "Manual approval was rejected by user":
				t.Errorf("%+v", o.Error)
			case tt.ran == 2 && !strings.Contains(p.told("loop.1"), "Review by ann:\n"):
				t.Errorf("the reviewer's text does not cross:\n%s", p.told("loop.1"))
			}
			p.again()
		})
	}
}

func TestAPersonMayAllowMoreIterationsThanTheCap(t *testing.T) {
	p := newPlayer(t, refinement(plan.Loop{Max: 2, OnLimit: plan.LimitAsks, StopWhen: []plan.Stop{{Regex: "never"}}}))
	p.says = attempts
	for i, says := range []event.ApprovalKind{event.ApprovalApproved, event.ApprovalRejected} {
		if o := p.play(); o.Reason != "" {
			t.Fatalf("%+v", o)
		}
		open := p.m.State().Pending
		if len(open) != 1 || open[0].ID != fmt.Sprint("limit-", 2*(i+1)) || open[0].Kind != event.QuestionLimit {
			t.Fatalf("%+v", open)
		}
		p.apply(open[0].Resolve(event.Resolution{Kind: says, Approver: "ann", At: p.now}))
	}
	if o := p.play(); o.Reason != event.ReasonMaxIterations || o.Iterations != 4 || o.OK {
		t.Errorf("%+v", o)
	}
}

// rows: RON-46
func TestACancelTakesBackAReviewAndIsNoRejection(t *testing.T) {
	p := newPlayer(t, refinement(plan.Loop{Max: 2, StopWhen: []plan.Stop{{Human: &plan.Human{}}}}))
	p.says = attempts
	p.play()
	p.apply(event.CancelRequested{Reason: "enough", By: "ann"})
	o := p.play()
	if o.Status != event.StatusCancelled || o.Reason != event.ReasonCancelled {
		t.Errorf("%+v", o)
	}
	if !slices.ContainsFunc(p.events, func(e event.Event) bool {
		d, is := e.Data.(event.ReviewResolved)
		return is && d.Kind == event.ApprovalCancelled
	}) {
		t.Errorf("the review stays open:\n%s", p.story())
	}
}

// rows: RON-43, RON-44
func TestAPauseComesBeforeTheNextIteration(t *testing.T) {
	p := newPlayer(t, refinement(plan.Loop{Max: 2, OnLimit: plan.LimitIsOK}))
	p.says = attempts
	p.decide()
	p.apply(event.PauseRequested{By: "ann"})
	p.play()
	if got := p.ids(); !slices.Equal(got, []string{"loop.0"}) || p.m.State().Phase != machine.Parked {
		t.Fatalf("%v, %v", got, p.m.State().Phase)
	}
	p.apply(event.RunResumed{})
	if o := p.play(); o.Iterations != 2 {
		t.Errorf("%+v", o)
	}
}

func TestALoopIsStuckWhoseIterationsChangeNothing(t *testing.T) {
	same := func(int) string { return "t0" }
	says := func(answer func(iteration int) string) func(machine.StartChild) (event.Outcome, event.Taint) {
		n := 0
		return func(machine.StartChild) (event.Outcome, event.Taint) {
			n++
			return ok(answer(n)), event.Taint{}
		}
	}
	for name, tt := range map[string]struct {
		tree, tests func(iteration int) string
		says        func(machine.StartChild) (event.Outcome, event.Taint)
		onlyAnswers bool
		ran         int
		stuck       bool
	}{
		"nothing changes, the first time neither": {tree: same, ran: 3, stuck: true},
		"each changes a file":                     {tree: func(i int) string { return fmt.Sprint("t", i) }, ran: 8},
		"after the second nothing does":           {tree: func(i int) string { return fmt.Sprint("t", min(i, 2)) }, ran: 5, stuck: true},
		"nobody knows":                            {tree: func(int) string { return "" }, ran: 8},
		"more tests pass each time": {tree: same, tests: func(i int) string {
			return strings.Repeat("--- PASS: TestX\n", i)
		}, ran: 8},
		"only the words of the tests change": {tree: same, tests: func(i int) string {
			return fmt.Sprint("--- PASS: TestX\nFAIL in 0.", i)
		}, ran: 4, stuck: true},
		"each answer of one that writes nothing differs": {tree: same, onlyAnswers: true, ran: 8},
		"one that writes nothing repeats its answer": {
			tree: same, says: says(func(i int) string { return fmt.Sprint("answer ", min(i, 2)) }), onlyAnswers: true, ran: 5, stuck: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := plan.Loop{Max: 8, StuckAfter: 3, OnLimit: plan.LimitIsOK, OnlyAnswers: tt.onlyAnswers}
			if tt.tests != nil {
				l.StopWhen = []plan.Stop{{Command: &plan.Command{Argv: []string{"test"}}}}
			}
			p := newPlayerOf(t, flow.Config{Plan: refinement(l), Tree: "t0"})
			p.says, p.tree = attempts, tt.tree
			if tt.says != nil {
				p.says = tt.says
			}
			looked := 0
			p.exec = func(machine.RunCommand) event.CommandFinished {
				looked++
				code := 1
				return event.CommandFinished{ExitCode: &code, Output: tt.tests(looked)}
			}
			o := p.play()
			if o.Iterations != tt.ran || (o.Reason == event.ReasonStuck) != tt.stuck || o.Status != event.StatusStopped {
				t.Errorf("%+v", o)
			}
			if tt.stuck && (o.OK || o.Error != nil || o.Kind != "unchanged" || !strings.Contains(o.NextSafeAction, "stuck_after")) {
				t.Errorf("a stuck loop is no failure: %+v, %v", o, o.Error)
			}
			if got := p.again().State().Outcome; got == nil || got.Reason != o.Reason {
				t.Errorf("a fold gives %+v", got)
			}
		})
	}
}

// A summary is a run of its own between an iteration and its entry in the log. If the
// summary fails, the entry is the beginning of the iteration's output.
//
// rows: RON-7
func TestASummaryIsWhatTheLogKeeps(t *testing.T) {
	summarized := func() *player {
		return newPlayer(t, refinement(plan.Loop{Max: 3, OnLimit: plan.LimitIsOK, Carry: plan.Carry{
			Log: &plan.Log{Extract: plan.ExtractSummary, Summarizer: "summary", Chars: 12, MaxEntries: 50},
		}}))
	}
	p := summarized()
	p.says = func(a machine.StartChild) (event.Outcome, event.Taint) {
		switch {
		case a.Name != "summary":
			return attempts(a)
		case strings.HasPrefix(a.ID, "loop.1"):
			return fails("no key"), event.Taint{}
		}
		return ok("Sum of " + a.ID + " that goes on"), event.Taint{}
	}
	o := p.play()
	if o.Iterations != 3 || o.FinalOutput != "Sum of loop." || o.LastOutput != "attempt 2 and more text" {
		t.Errorf("%+v", o)
	}
	if got := p.ids(); !slices.Equal(got, []string{"loop.0", "loop.0/summary", "loop.1", "loop.1/summary", "loop.2", "loop.2/summary"}) {
		t.Errorf("%q", got)
	}
	if told := p.told("loop.2"); !strings.Contains(told, "Sum of loop.\n") || !strings.Contains(told, "attempt 1 an\n") || strings.Contains(told, "attempt 0") {
		t.Errorf("the third is told\n%s", told)
	}
	if told := p.told("loop.1/summary"); !strings.Contains(told, "Iteration 2 of the task") || !strings.Contains(told, "attempt 1 and more text") {
		t.Errorf("the second summary is told\n%s", told)
	}
	if told := p.told("loop.0/summary"); !strings.Contains(told, "at most 12 characters") || !strings.Contains(told, "Iteration 1 of the task") || !strings.Contains(told, "Build it.") ||
		!strings.Contains(told, "<untrusted") || !strings.Contains(told, "attempt 0 and more text") {
		t.Errorf("the summary is told\n%s", told)
	}
	if got := p.again().State().Outcome; got == nil || got.FinalOutput != o.FinalOutput {
		t.Errorf("a fold gives %+v", got)
	}

	p = summarized()
	p.says, p.hold = attempts, func(id string) bool { return id == "loop.0/summary" }
	p.play()
	p.apply(event.CancelRequested{Reason: "enough", By: "ann"})
	if o := p.play(); o.Status != event.StatusCancelled || o.Iterations != 1 || o.LastOutput != "attempt 0 and more text" {
		t.Errorf("cancelled while it is summed up: %+v\n%s", o, p.story())
	}
}

func TestALoopEndsWhoseCommandDoesNotExist(t *testing.T) {
	for name, tt := range map[string]struct {
		argv   string
		reason event.Reason
		ran    int
	}{
		"a program of the machine":                 {"gotset", event.ReasonToolUnavailable, 1},
		"one in the workspace, which may come yet": {"./test.sh", event.ReasonMaxIterations, 3},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(t, refinement(plan.Loop{Max: 3, OnLimit: plan.LimitIsOK, StopWhen: []plan.Stop{{Command: &plan.Command{Argv: []string{tt.argv}}}}}))
			p.says = attempts
			p.exec = func(machine.RunCommand) event.CommandFinished {
				return event.CommandFinished{ErrorType: event.ErrorNotStarted, Error: tt.argv + ": not found"}
			}
			if o := p.play(); o.Reason != tt.reason || o.Iterations != tt.ran || tt.ran == 1 && (o.OK || !strings.Contains(o.Error.Message, tt.argv)) {
				t.Errorf("%+v, %+v", o, o.Error)
			}
		})
	}
}

func TestAnEvaluatorEndsALoop(t *testing.T) {
	rubric := &eval.Evaluator{Kind: eval.Rubric, Criteria: []eval.Criterion{{Text: "short"}, {Text: "true", Weight: 3}}, PassAt: 0.7}
	judge := &eval.Evaluator{Kind: eval.LLMJudge, Value: "Two goats."}
	met := func(second bool) string {
		return fmt.Sprintf(`{"criteria":[{"number":1,"met":false,"reason":"long"},{"number":2,"met":%t,"reason":"so"}]}`, second)
	}
	for name, tt := range map[string]struct {
		stop    plan.Stop
		answers []string
		kind    string
		reason  event.Reason
		ran     int
	}{
		"a text":                       {plan.Stop{Eval: &eval.Evaluator{Kind: eval.Contains, Value: "attempt 1"}}, nil, "contains", event.ReasonConditionMet, 2},
		"a text in another case":       {plan.Stop{Eval: &eval.Evaluator{Kind: eval.Contains, Value: "ATTEMPT 1"}}, nil, "", event.ReasonMaxIterations, 3},
		"a pattern":                    {plan.Stop{Eval: &eval.Evaluator{Kind: eval.Regex, Value: "attempt [2-9]"}}, nil, "regex", event.ReasonConditionMet, 3},
		"a rubric":                     {plan.Stop{Eval: rubric, Judge: "judge-1"}, []string{met(false), met(true)}, "rubric", event.ReasonConditionMet, 2},
		"a rubric without an answer":   {plan.Stop{Eval: rubric, Judge: "judge-1"}, []string{"", "{}", `{"verdict":"done"}`}, "", event.ReasonMaxIterations, 3},
		"a judge":                      {plan.Stop{Eval: judge, Judge: "judge-1"}, []string{`{"verdict":"not_done","reason":"One."}`, `{"verdict":"done","reason":"Two."}`}, "llm_judge", event.ReasonConditionMet, 2},
		"a judge that sees no way out": {plan.Stop{Eval: judge, Judge: "judge-1"}, []string{`{"verdict":"impossible","reason":"No goats."}`}, "", event.ReasonImpossible, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(t, refinement(plan.Loop{Max: 3, OnLimit: plan.LimitIsOK, StopWhen: []plan.Stop{tt.stop}}))
			p.says = func(a machine.StartChild) (event.Outcome, event.Taint) {
				if a.Name == "judge-1" {
					answer := tt.answers[0]
					tt.answers = tt.answers[1:]
					return gave("", answer), event.Taint{}
				}
				return attempts(a)
			}
			o := p.play()
			if o.Kind != tt.kind || o.Reason != tt.reason || o.Iterations != tt.ran {
				t.Errorf("%+v\n%s", o, p.story())
			}
			if q := tt.stop.Eval; tt.stop.Judge != "" {
				told := p.told("loop.0/judge")
				if want, _ := q.Ask(eval.Extract{}, fence.Fence{}); !strings.HasPrefix(told, strings.SplitAfter(want.Task, "## The run\n")[0]) || !strings.Contains(told, "attempt 0") ||
					!strings.Contains(told, "ended by final_answer after 0 cycles") {
					t.Errorf("the judge is told\n%s", told)
				}
				if name == "a rubric" && !strings.Contains(p.told("loop.1"), "2. true: not met (so)") {
					t.Errorf("the next iteration is told\n%s", p.told("loop.1"))
				}
			}
			if got := p.again().State().Outcome; got == nil || got.Reason != o.Reason {
				t.Errorf("a fold gives %+v", got)
			}
		})
	}
}
