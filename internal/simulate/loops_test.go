package simulate_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/flow"
	processes "github.com/pawlrun/pawl/internal/machine/process"
	"github.com/pawlrun/pawl/internal/rules/plan"
	"github.com/pawlrun/pawl/tool"
)

// rows: RON-46
func TestSeedsOfLoops(t *testing.T) {
	playFlows(t, newLoops, 80, 1000, []string{
		"taken up with a child under way", "iteration", "program", "program limited", "review approved", "review rejected", "review expired", "more allowed", "checkpoint", "blocked",
		"ended condition_met", "ended maxIterations", "ended iteration_failed", "ended repeated_failure", "ended rejected", "ended stuck", "ended cancelled", "ended impossible", "a cancel beside a review",
	})
}

// newLoops is a tree whose root is a refinement loop, or a goal, around an agent or a
// program.
func newLoops(t *testing.T, seed int) *grove {
	g := newFlows(t, seed)
	d := draft{Rand: rand.New(rand.NewPCG(uint64(seed), 67)), steady: g.steady}
	g.flows = map[string]flow.Config{}
	g.agents["summarizer"] = g.agents["helper"]
	g.agents["reviewer"], g.own["reviewer"] = g.agents["judge"], g.own["judge"]
	for _, name := range []string{"summarizer", "reviewer"} {
		g.tools[name] = g.toolSet(name)
	}
	g.runners["program"] = processes.Config{
		Name: "program", Command: []string{"make", "program"}, Effect: pick(d.Rand, event.EffectPure, event.EffectAtMostOnce), Policy: g.agents["helper"].Policy,
	}
	p := plan.Plan{Name: "root", Refine: true, Steps: []plan.Step{{ID: "loop", Loop: d.refinement()}}}
	cfg := flow.Config{Plan: p}
	if !g.steady && d.IntN(5) == 0 {
		cfg.Limits.USDPerRun = 0.01 + 0.2*d.Float64()
	}
	g.flows["root"], g.offers["root"] = cfg, []string{"worker", "program", "judge", "summarizer", "reviewer"}
	return g
}

// refinement draws a refinement loop. In what a steady one does nothing goes by luck
// or by a person.
func (d *draft) refinement() *plan.Loop {
	l := &plan.Loop{
		Single: true, Body: plan.Plan{Steps: []plan.Step{{Agent: &plan.Agent{Name: "worker"}}}}, Max: 1 + d.IntN(5),
		OnLimit: pick(d.Rand, plan.LimitIsOK, plan.LimitStopped), OnError: pick(d.Rand, plan.IterationFails, plan.IterationContinues, plan.IterationContinues),
		ErrorsMax: d.IntN(3), JudgeFailuresMax: d.IntN(3), Carry: plan.Carry{NoFeedback: d.IntN(4) == 0},
	}
	l.Carry.Log = &plan.Log{Chars: 20, MaxEntries: 1 + d.IntN(3), Extract: pick(d.Rand, plan.ExtractHead, plan.ExtractTail)}
	if d.IntN(3) == 0 {
		l.Carry.Log.Extract, l.Carry.Log.Summarizer = plan.ExtractSummary, "summarizer"
	}
	for range d.IntN(4) {
		l.StopWhen = append(l.StopWhen, pick(d.Rand, plan.Stop{Judge: "judge"}, plan.Stop{Regex: "TEXT 0"}, plan.Stop{Regex: "TEXT [0-2]"}, plan.Stop{Regex: "never"}))
	}
	if !d.steady {
		d.byLuck(l)
	}
	if d.IntN(3) == 0 {
		l.Goal = &plan.Goal{Objective: "that it works", Validation: []plan.Stop{{Expression: "shown"}}, Reviewer: "reviewer", Every: 1 + d.IntN(2), FinalAnswer: d.IntN(4) == 0}
		if l.Max, l.StopWhen = l.Max+2, []plan.Stop{{Expression: "luck"}}; !d.steady && d.IntN(2) == 0 {
			l.Goal.Validation = append(l.Goal.Validation, plan.Stop{Command: d.command()})
		}
	}
	return l
}

func (d *draft) byLuck(l *plan.Loop) {
	if d.IntN(3) > 0 {
		l.StopWhen = nil
	}
	if d.IntN(3) == 0 {
		l.StopWhen = append(l.StopWhen, plan.Stop{Command: d.command()})
	}
	for range d.IntN(3) {
		l.StopWhen = append(l.StopWhen, plan.Stop{Human: &plan.Human{
			Timeout: pick(d.Rand, 0, 100*time.Second), GoesOn: d.IntN(2) == 0, Feedback: d.IntN(2) == 0,
		}})
	}
	if d.IntN(2) == 0 {
		l.OnLimit, l.Max, l.StopWhen = plan.LimitAsks, 1+d.IntN(2), append(l.StopWhen[:len(l.StopWhen)/2], plan.Stop{Regex: "never"})
	}
	if d.IntN(3) == 0 {
		l.Body.Steps[0].Agent.Name = "program"
	}
	l.StuckAfter, l.OnError = pick(d.Rand, 0, 0, 1, 2), pick(d.Rand, l.OnError, plan.IterationContinues)
}

// ran is how a program that does an iteration ends.
func (c programs) ran(cmd tool.Invocation) tool.Ended {
	c.seen("program")
	code := c.draw(6) / 5
	e := tool.Ended{ExitCode: &code, Output: fmt.Sprint("text ", c.draw(10))}
	if c.bad(6) {
		c.seen("program limited")
		e.Report = &event.CommandReport{Limited: "usage limit reached"}
	}
	return e
}

// refined is what the journal of a loop tells of its iterations.
type refined struct {
	// iterations and logged count what was journalled of each, failed says that of the
	// last one; looked are the checks of the last one that were looked at, and same the
	// iterations in a row that left the tree as it was.
	iterations, logged, looked, same int
	failed                           bool
	tree                             string
	ends                             map[string]event.Outcome
	// asked is the review that waits, over why nothing may begin any more, allowed how
	// often more iterations were; cancelled and rejected what came.
	asked, over         string
	allowed             int
	cancelled, rejected bool
}

func (s *story) refines(data event.Data) {
	l := s.cfg.Plan.Steps[0].Loop
	criterion := func(answered int) {
		if s.iterations == 0 || s.logged != s.iterations {
			s.violate("a criterion is looked at after %d iterations with %d entries in the log: %+v", s.iterations, s.logged, data)
		}
		s.looked += answered
	}
	switch d := data.(type) {
	case event.ChildStarted:
		switch {
		case strings.Contains(d.ID, "/judge"), strings.Contains(d.ID, "/checkpoint"):
			criterion(0)
		case !strings.Contains(d.ID, "/"):
			s.another(l, d.ID)
		}
	case event.ChildFinished:
		if s.ends == nil {
			s.ends = map[string]event.Outcome{}
		}
		s.ends[d.Child] = d.Outcome
		s.rejected = s.rejected || d.Outcome.Reason == event.ReasonRejected
	case event.Iteration:
		if d.Number != s.iterations+1 || s.logged != s.iterations || d.Exit != s.ends[d.Child].Reason {
			s.violate("iteration %d comes after %d, of which %d are in the log: %+v", d.Number, s.iterations, s.logged, d)
		}
		s.iterations, s.failed, s.looked = d.Number, !s.ends[d.Child].OK, 0
		if s.same++; d.Tree == "" || d.Tree != s.tree {
			s.same = 0
		}
		s.tree = d.Tree
	case event.Progress:
		if s.logged++; d.Number != s.logged || s.logged != s.iterations {
			s.violate("entry %d of the log comes after %d iterations and %d entries", d.Number, s.iterations, s.logged-1)
		}
	case event.ConditionEvaluated:
		criterion(1)
	case event.JudgeVerdict:
		criterion(1)
	case event.CommandStarted:
		criterion(0)
	case event.CommandFinished:
		criterion(1)
	case event.Checkpoint:
		criterion(0)
		s.g.seen("checkpoint")
	case event.RunParked:
		if d.Detail == "which?" {
			s.g.seen("blocked")
		}
	case event.CancelRequested:
		if s.cancelled = true; s.asked != "" {
			s.g.seen("a cancel beside a review")
		}
	case event.ToolApprovalResolved:
		s.rejected = s.rejected || d.Kind == event.ApprovalRejected || d.Kind == event.ApprovalExpired
	case event.ReviewRequested:
		criterion(0)
		s.only("review ", d.LoopID)
		s.asked = d.LoopID
	case event.ReviewResolved:
		s.reviewed(l, &d)
	}
}

// another is for the beginning of an iteration: the one before was looked at by all
// that ends the loop.
func (s *story) another(l *plan.Loop, id string) {
	if s.over != "" || s.asked != "" || s.logged != s.iterations || id != fmt.Sprint("loop.", s.iterations) {
		s.violate("%s begins after %d iterations with %d entries in the log; over: %q; asked: %q", id, s.iterations, s.logged, s.over, s.asked)
	}
	if most := l.Max * (1 + s.allowed); s.iterations >= most {
		s.violate("%s begins, and there may be %d iterations", id, most)
	}
	s.lookedAt(l)
}

// lookedAt holds that nothing that ends the loop was left out.
func (s *story) lookedAt(l *plan.Loop) {
	if s.iterations > 0 && !s.failed && l.Goal == nil && s.looked != len(l.StopWhen) {
		s.violate("of iteration %d %d reasons to stop were looked at, and there are %d", s.iterations, s.looked, len(l.StopWhen))
	}
}

func (s *story) reviewed(l *plan.Loop, d *event.ReviewResolved) {
	s.only("decision about ", d.LoopID)
	s.g.seen("review " + string(d.Kind))
	if s.asked != d.LoopID {
		s.violate("%s is decided, and asked is %q", d.LoopID, s.asked)
	}
	s.asked = ""
	switch limit := strings.HasPrefix(d.LoopID, "limit-"); {
	case d.Kind == event.ApprovalCancelled:
	case limit && d.Kind == event.ApprovalApproved:
		s.allowed++
		s.g.seen("more allowed")
	case limit:
		s.over = "the limit was not raised"
	default:
		s.looked++
		s.rejected = s.rejected || d.Kind == event.ApprovalRejected || d.Kind == event.ApprovalExpired
	}
}

// endRefined holds the outcome of a loop against what its journal says.
func (s *story) endRefined() {
	l, o := s.cfg.Plan.Steps[0].Loop, s.outcome
	s.g.seen("ended " + string(o.Reason))
	if o.Iterations != s.iterations || s.logged > s.iterations || s.asked != "" {
		s.violate("after %d iterations with %d entries in the log it ended as %+v; asked: %q", s.iterations, s.logged, o, s.asked)
	}
	switch {
	case o.Reason == event.ReasonRejected && !s.rejected, o.Reason == event.ReasonCancelled && !s.cancelled:
		s.violate("it ended as %s, and nobody said so", o.Reason)
	case o.Reason == event.ReasonMaxIterations && o.Error == nil:
		s.lookedAt(l)
	case o.Reason == event.ReasonStuck && s.same < l.StuckAfter:
		s.violate("it ended as stuck, and %d iterations changed nothing", s.same)
	}
}
