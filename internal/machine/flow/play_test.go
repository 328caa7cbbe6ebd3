package flow_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/flow"
	"github.com/pawlrun/pawl/internal/rules/plan"
	"github.com/pawlrun/pawl/llm"
)

// player carries out the machine's actions without a driver.
type player struct {
	*testing.T
	m      *flow.Machine
	events []event.Event
	now    time.Time
	// says returns the outcome of a child. hold reports whether a child stays active.
	says func(machine.StartChild) (event.Outcome, event.Taint)
	hold func(id string) bool
	eval func(machine.Evaluate) event.ConditionEvaluated

	exec func(machine.RunCommand) event.CommandFinished
	// tree returns the hash of the workspace after an iteration.
	tree func(iteration int) string
	// asks makes policy ask before each command.
	asks bool
	// read contains the messages that each run received.
	read map[string][]string

	begun []machine.StartChild
	runs  map[string]machine.StartChild // active children, by run
	most  int
}

// ok returns the outcome of a successful child.
func ok(text string) event.Outcome {
	return event.Outcome{Status: event.StatusCompleted, Reason: event.ReasonFinalAnswer, OK: true, Completed: true, FinalOutput: text, LastOutput: text}
}

func gave(text, result string) event.Outcome {
	o := ok(text)
	o.Result = json.RawMessage(result)
	return o
}

func fails(message string) event.Outcome {
	return event.Outcome{Status: event.StatusFailed, Reason: event.ReasonModelError, Error: &event.Failure{Class: "auth", Message: message}}
}

func newPlayer(t *testing.T, p plan.Plan) *player {
	t.Helper()
	return newPlayerOf(t, flow.Config{Plan: p})
}

func newPlayerOf(t *testing.T, cfg flow.Config) *player {
	t.Helper()
	started, err := flow.Start(cfg, llm.UserText("Build it."))
	if err != nil {
		t.Fatal(err)
	}
	started.Fence = &event.Fence{Nonce: "k3jx81fqz0abcdef"}
	play := &player{T: t, m: flow.New(), now: time.Unix(1000, 0), read: map[string][]string{}, runs: map[string]machine.StartChild{}}
	play.apply(started)
	return play
}

func (p *player) apply(d event.Data) {
	p.Helper()
	e := event.Event{Seq: int64(len(p.events) + 1), Run: "run", Time: p.now, Data: d}
	body, err := event.Encode(&e)
	if err != nil {
		p.Fatal(err)
	}
	stored, err := event.Decode(body)
	if err != nil {
		p.Fatal(err)
	}
	p.events = append(p.events, *stored)
	if err := p.m.Apply(stored); err != nil {
		p.Fatalf("%s: %v\n%s", d.EventType(), err, p.story())
	}
}

// again returns a machine folded from the journalled events.
func (p *player) again() *flow.Machine {
	p.Helper()
	m := flow.New()
	for _, e := range p.events {
		if err := m.Apply(&e); err != nil {
			p.Fatalf("%s: %v", e.Type(), err)
		}
	}
	return m
}

// decide carries out the actions that need no effect, and starts children.
func (p *player) decide() {
	p.Helper()
	for range 100_000 {
		progress := false
		for _, a := range p.m.Next() {
			switch a := a.(type) {
			case machine.Record:
				p.apply(a.Data)
				progress = true
			case machine.Observe:
				if p.tree != nil {
					a.Iteration.Tree = p.tree(a.Iteration.Number)
				}
				p.apply(a.Iteration)
				progress = true
			case machine.Evaluate:
				d := p.eval(a)
				d.ID, d.Step, d.Expression = a.ID, a.Step, a.Expression
				p.apply(d)
				progress = true
			case machine.StartChild:
				if a.Child == "" {
					run := fmt.Sprint("run", len(p.begun))
					p.begun = append(p.begun, a)
					p.runs[run] = a
					p.most = max(p.most, len(p.runs))
					p.apply(event.ChildStarted{Child: run, Kind: a.Kind, Name: a.Name, ID: a.ID, Step: a.Step})
					progress = true
				}
			case machine.RunCommand:
				progress = true
				if a.Verdict == nil {
					said := event.DecisionAllow
					if p.asks {
						said = event.DecisionAsk
					}
					p.apply(event.PolicyDecision{CallID: a.ID, Decision: said})
					continue
				}
				p.begun = append(p.begun, machine.StartChild{ID: a.ID})
				p.apply(event.CommandStarted{ID: a.ID, Argv: a.Argv, Dir: ".", Attempt: a.Attempt, Effect: a.Effect})
				d := p.exec(a)
				d.ID = a.ID
				p.apply(d)
			case machine.Deliver:
				for _, said := range slices.Clone(a.Messages) {
					if to, ok := p.m.Deliverable(a.Child, said.MessageID); ok {
						p.read[a.Child] = append(p.read[a.Child], said.Text)
						p.apply(event.MessageDelivered{ID: said.MessageID, To: to})
						progress = true
					}
				}
			case machine.CancelChild:
				if _, open := p.runs[a.Child]; open {
					p.finish(a.Child, event.Outcome{Status: event.StatusCancelled, Reason: event.ReasonCancelled})
					progress = true
				}
			case machine.Wait:
				if !a.Begun {
					p.apply(event.WaitStarted{ID: a.ID, Until: a.Until})
					progress = true
				} else if !a.Until.After(p.now) {
					p.apply(event.WaitFinished{ID: a.ID})
					progress = true
				}
			case machine.Ask:
				if q := a.Questions[0]; q.Message {
					p.apply(event.RunParked{Reason: event.ParkInput, Detail: q.Reason})
				}
			default:
				p.Fatalf("%T", a)
			}
			if p.m.State().Phase != machine.Running {
				return
			}
		}
		if !progress {
			return
		}
	}
	p.Fatal("it never stops deciding")
}

func (p *player) finish(run string, o event.Outcome, taint ...event.Taint) {
	p.Helper()
	delete(p.runs, run)
	d := event.ChildFinished{Child: run, Outcome: o}
	if len(taint) > 0 {
		d.Taint = taint[0]
	}
	p.apply(d)
}

// play continues until the run has ended or only held children are left.
func (p *player) play() event.Outcome {
	p.Helper()
	for range 100_000 {
		p.decide()
		if o := p.m.State().Outcome; o != nil {
			return *o
		}
		if p.finishNext() {
			continue
		}
		if at, waits := p.waits(); waits {
			p.now = at
			continue
		}
		return event.Outcome{}
	}
	p.Fatal("it never ends")
	return event.Outcome{}
}

// finishNext ends the oldest child that is not held.
func (p *player) finishNext() bool {
	p.Helper()
	for i := range p.begun {
		run := fmt.Sprint("run", i)
		if a, open := p.runs[run]; open && (p.hold == nil || !p.hold(a.ID)) {
			o, taint := p.says(a)
			p.finish(run, o, taint)
			return true
		}
	}
	return false
}

func (p *player) waits() (at time.Time, waits bool) {
	for _, a := range p.m.Next() {
		if w, is := a.(machine.Wait); is && (!waits || w.Until.Before(at)) {
			at, waits = w.Until, true
		}
	}
	return at, waits
}

// ids returns the ids of the children in the order of their starts.
func (p *player) ids() (ids []string) {
	for _, a := range p.begun {
		ids = append(ids, a.ID)
	}
	return ids
}

// told returns the task of a child.
func (p *player) told(id string) string {
	p.Helper()
	for _, a := range p.begun {
		if a.ID == id {
			var task struct{ Task string }
			if err := json.Unmarshal(a.Input, &task); err != nil {
				p.Fatal(err)
			}
			return task.Task
		}
	}
	p.Fatalf("%s was never begun, only %v", id, p.ids())
	return ""
}

// story returns the journalled events about steps, one per line.
func (p *player) story() string {
	var b strings.Builder
	for _, e := range p.events {
		switch d := e.Data.(type) {
		case event.ChildStarted:
			if d.BeginsStep() {
				fmt.Fprintf(&b, "started %s 1\n", d.Step)
			}
		case event.StepStarted:
			fmt.Fprintf(&b, "started %s %d\n", d.Step, d.Attempt)
		case event.StepFinished:
			fmt.Fprintf(&b, "%s %s", d.Status, d.Step)
			if d.Error != nil {
				fmt.Fprintf(&b, ": %s: %s", d.Error.Class, d.Error.Message)
			}
			b.WriteByte('\n')
		case event.StepSkipped:
			fmt.Fprintf(&b, "skipped %s: %s\n", d.Step, d.Reason)
		case event.Iteration:
			fmt.Fprintf(&b, "iteration %d of %s\n", d.Number, d.Step)
		case event.JudgeVerdict:
			fmt.Fprintf(&b, "verdict %s on %s %d\n", d.Verdict, d.Step, d.Number)
		}
	}
	return b.String()
}

// holds compares the story, and the state of a fold of the journal with the state of
// the machine.
func (p *player) holds(want string) {
	p.Helper()
	if got := p.story(); strings.TrimSpace(got) != strings.TrimSpace(want) {
		p.Errorf("it went\n%s\nwant\n%s", got, want)
	}
	if a, b := p.again(), p.m; !reflect.DeepEqual(a.State(), b.State()) {
		p.Errorf("a fold is at\n%+v, the run at\n%+v", a.State(), b.State())
	}
}

// named answers each child according to its step.
func named(answers map[string]event.Outcome) func(machine.StartChild) (event.Outcome, event.Taint) {
	return func(a machine.StartChild) (event.Outcome, event.Taint) {
		if o, known := answers[a.ID]; known {
			return o, event.Taint{}
		}
		return ok("said by " + a.ID), event.Taint{}
	}
}

func step(id string, after ...string) plan.Step {
	return plan.Step{ID: id, DependsOn: after, Agent: &plan.Agent{Name: "worker", Instructions: "Do " + id + "."}}
}

func same[T any](t *testing.T, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("it is %+v, want %+v", got, want)
	}
}

func config(p plan.Plan, concurrency int) flow.Config {
	return flow.Config{Plan: p, Concurrency: concurrency}
}
