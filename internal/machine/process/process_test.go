package process_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/process"
	"github.com/pawlrun/pawl/internal/machine/tree"
	"github.com/pawlrun/pawl/llm"
)

// player plays the part of a driver for a machine.
type player struct {
	t   *testing.T
	m   *process.Machine
	seq int64
	now time.Time
}

func begin(t *testing.T, cfg process.Config, parent string) *player {
	t.Helper()
	cfg.Command, cfg.Permission = []string{"agent", "-p"}, process.Permission
	started, err := process.Start(cfg, "fix it")
	if err != nil {
		t.Fatal(err)
	}
	if started.Governance != "external" || started.Machine != "process/1" || started.Input.Text() != "fix it" {
		t.Errorf("it starts as %+v", started)
	}
	p := &player{t: t, m: process.New(), now: time.Unix(1_700_000_000, 0)}
	p.is(event.Event{Parent: parent, Data: started})
	return p
}

func (p *player) is(e event.Event) {
	p.t.Helper()
	p.seq++
	p.now = p.now.Add(time.Second)
	e.Seq, e.Run, e.Time = p.seq, "r", p.now
	if err := p.m.Apply(&e); err != nil {
		p.t.Fatal(err)
	}
}

// due applies decisions until another action is due, and returns that action, or nil if
// there is none.
func (p *player) due() machine.Action {
	p.t.Helper()
	for range 20 {
		next := p.m.Next()
		if len(next) == 0 {
			return nil
		}
		if len(next) > 1 {
			p.t.Fatalf("due are %+v", next)
		}
		switch a := next[0].(type) {
		case machine.Record:
			p.is(event.Event{Data: a.Data})
		case machine.RunCommand:
			if a.Verdict != nil {
				return a
			}
			p.is(event.Event{Data: event.PolicyDecision{CallID: a.ID, Decision: event.DecisionAllow, Rule: a.Permission}})
		default:
			return a
		}
	}
	p.t.Fatal("it decides for ever")
	return nil
}

// command returns the command that is due, after recording its start.
func (p *player) command() machine.RunCommand {
	p.t.Helper()
	a, ok := p.due().(machine.RunCommand)
	if !ok {
		p.t.Fatalf("due is %+v", p.m.Next())
	}
	p.is(event.Event{Data: event.CommandStarted{ID: a.ID, Argv: a.Argv, Dir: ".", Attempt: a.Attempt, Effect: a.Effect}})
	return a
}

func (p *player) ends(d event.CommandFinished) event.Outcome {
	p.t.Helper()
	a := p.command()
	d.ID = a.ID
	p.is(event.Event{Data: d})
	p.due()
	if s := p.m.State(); s.Outcome != nil {
		return *s.Outcome
	}
	p.t.Fatalf("it goes on with %+v", p.m.Next())
	return event.Outcome{}
}

func exits(code int, d event.CommandFinished) event.CommandFinished {
	d.ExitCode = &code
	return d
}

func TestTheProcessEndsTheRunAsItEnds(t *testing.T) {
	report := func(r event.CommandReport) event.CommandFinished {
		return event.CommandFinished{Output: "all of it", Report: &r}
	}
	for name, c := range map[string]struct {
		ends   event.CommandFinished
		reason event.Reason
		failed string
		output string
		result string
	}{
		"well":                            {ends: exits(0, event.CommandFinished{Output: "done"}), reason: "final_answer", output: "done"},
		"well, with a stream":             {ends: exits(0, report(event.CommandReport{Form: "claude", Text: "done"})), reason: "final_answer", output: "done"},
		"well, with a text for result":    {ends: exits(0, report(event.CommandReport{Form: "claude", Text: "no", Result: "done\n"})), reason: "final_answer", output: "done\n"},
		"well, with an object":            {ends: exits(0, report(event.CommandReport{Result: `{"done":true,"text":"done"}`})), reason: "final_answer", output: "done", result: `{"done":true,"text":"done"}`},
		"well, with an object of no text": {ends: exits(0, report(event.CommandReport{Result: `{"done":true}`})), reason: "final_answer", output: "all of it", result: `{"done":true}`},
		"with an exit code":               {ends: exits(3, event.CommandFinished{Output: "x", Stderr: "no key"}), reason: "step_failed", failed: "exit_code: it exited with 3: no key", output: "x"},
		"with a signal":                   {ends: event.CommandFinished{Signal: "killed"}, reason: "step_failed", failed: "signal: it was ended by killed"},
		"badly, as its stream says":       {ends: exits(0, report(event.CommandReport{Form: "codex", Failed: "no model"})), reason: "step_failed", failed: "process: no model"},
		"after a silence":                 {ends: event.CommandFinished{ErrorType: event.ErrorTimeout, Limit: event.LimitIdle, Error: "it had printed nothing"}, reason: "step_failed", failed: "timeout: it had printed nothing"},
		"before it began":                 {ends: event.CommandFinished{ErrorType: event.ErrorNotStarted, Error: "there is no program agent"}, reason: "step_failed", failed: "not_started: there is no program agent"},
		"with an interruption":            {ends: event.CommandFinished{ErrorType: event.ErrorCancelled}, reason: "step_failed", failed: "in_doubt: it was stopped before it had finished, so it is not known what it did; it was not repeated"},
	} {
		t.Run(name, func(t *testing.T) {
			o := begin(t, process.Config{}, "").ends(c.ends)
			failed := ""
			if o.Error != nil {
				failed = o.Error.Class + ": " + o.Error.Message
			}
			if o.Reason != c.reason || o.OK != (c.failed == "") || failed != c.failed || o.FinalOutput != c.output || string(o.Result) != c.result || o.Cost != nil {
				t.Errorf("it ends as %+v (%s)", o, failed)
			}
		})
	}
}

func TestTheCommandIsThatOfTheFile(t *testing.T) {
	p := begin(t, process.Config{Idle: time.Minute, MaxTime: time.Hour}, "")
	a := p.command()
	if diff := cmp.Diff([]string{"agent", "-p"}, a.Argv); diff != "" || string(a.Stdin) != "fix it" || a.IdleLimit != time.Minute || a.WallLimit != time.Hour ||
		a.Effect != event.EffectAtMostOnce || a.Permission != "runner" {
		t.Errorf("it is %+v", a)
	}
}

// The usage that the process reports is committed under a reservation of zero: in the
// run's own budget, or in that of the run above, which counts it.
func TestWhatTheProcessSaysThatItTookIsCommitted(t *testing.T) {
	took := event.CommandFinished{Report: &event.CommandReport{
		Form: "claude", Text: "done", Usage: &llm.Usage{Input: 30, Output: 5}, Cost: &llm.Cost{USD: 0.25, Priced: true},
	}}
	if o := begin(t, process.Config{}, "").ends(exits(0, took)); o.Cost == nil || o.Cost.USD != 0.25 || o.Usage.Input != 30 {
		t.Errorf("a root ends as %+v", o)
	}
	p := begin(t, process.Config{}, "above")
	ask, ok := p.due().(machine.Reserve)
	if !ok || ask.Call != (budget.Call{}) {
		t.Fatalf("a child asks for %+v", p.m.Next())
	}
	p.is(event.Event{Parent: "above", Data: event.BudgetReserved{ID: ask.ID}})
	a := p.command()
	took.ID = a.ID
	p.is(event.Event{Data: exits(0, took)})
	d, ok := p.m.Next()[0].(machine.Record)
	want := event.BudgetCommitted{ID: ask.ID, USD: 0.25, Input: 30, Output: 5, Usage: took.Report.Usage, Priced: true}
	if diff := cmp.Diff(event.Data(want), d.Data); !ok || diff != "" {
		t.Error(diff)
	}
	p.due()
	if o := p.m.State().Outcome; o == nil || !o.OK || o.Cost.USD != 0.25 {
		t.Errorf("a child ends as %+v", o)
	}
}

func TestNothingIsBegunForWhichTheRunAboveHasNoRoom(t *testing.T) {
	p := begin(t, process.Config{}, "above")
	ask := p.due().(machine.Reserve)
	p.is(event.Event{Data: event.BudgetRefused{ID: ask.ID, Setting: "usd_per_run", Detail: "it is used up"}})
	p.due()
	if o := p.m.State().Outcome; o == nil || o.Reason != "budget:usd_per_run" {
		t.Errorf("it ends as %+v", o)
	}
}

// A provider's limit parks the run, until the limit ends if that time is known. When
// the same run resumes, it starts the process again.
func TestAProviderLimitParksTheRunAndTheProcessRunsAgain(t *testing.T) {
	p := begin(t, process.Config{}, "")
	until := p.now.Add(time.Hour)
	first := p.command()
	p.is(event.Event{Data: exits(1, event.CommandFinished{ID: first.ID, Report: &event.CommandReport{Limited: "usage limit reached", Until: &until}})})
	if next := p.due(); next != nil {
		t.Fatalf("due is %+v", next)
	}
	parked := p.m.State().Parked
	if parked == nil || parked.Reason != event.ParkPaused || parked.Detail != "usage limit reached" || !parked.Until.Equal(until) {
		t.Fatalf("it is parked as %+v", parked)
	}
	p.is(event.Event{Data: event.RunResumed{}})
	if o := p.ends(exits(0, event.CommandFinished{Output: "done"})); !o.OK || o.FinalOutput != "done" {
		t.Errorf("it ends as %+v", o)
	}
}

func TestACrashLeavesTheProcessToItsEffectClass(t *testing.T) {
	for effect, again := range map[event.Effect]bool{"": false, event.EffectAtMostOnce: false, event.EffectIdempotent: true, event.EffectPure: true} {
		p := begin(t, process.Config{Effect: effect}, "")
		p.command()
		p.is(event.Event{Data: event.RunResumed{Recovered: true}})
		if again {
			if o := p.ends(exits(0, event.CommandFinished{Output: "done"})); !o.OK {
				t.Errorf("%s: it ends as %+v", effect, o)
			}
			continue
		}
		p.due()
		if o := p.m.State().Outcome; o == nil || o.Error == nil || o.Error.Class != "in_doubt" {
			t.Errorf("%s: it ends as %+v", effect, o)
		}
	}
}

func TestCancelAndPauseTakeEffect(t *testing.T) {
	p := begin(t, process.Config{}, "")
	p.is(event.Event{Data: event.PauseRequested{}})
	p.due()
	if parked := p.m.State().Parked; parked == nil || parked.Reason != event.ParkPaused {
		t.Fatalf("it is parked as %+v", parked)
	}
	p.is(event.Event{Data: event.RunResumed{}})
	a := p.command()
	p.is(event.Event{Data: event.CancelRequested{By: "ann"}})
	if next := p.m.Next(); len(next) != 0 {
		t.Errorf("due is %+v", next)
	}
	p.is(event.Event{Data: event.CommandFinished{ID: a.ID, ErrorType: event.ErrorCancelled}})
	p.due()
	if o := p.m.State().Outcome; o == nil || o.Status != event.StatusCancelled {
		t.Errorf("it ends as %+v", o)
	}
}

// A journal may have been modified. An event that does not match causes an error and no
// panic.
func FuzzApply(f *testing.F) {
	started, err := process.Start(process.Config{Command: []string{"agent"}}, "x")
	if err != nil {
		f.Fatal(err)
	}
	finished, _ := json.Marshal(event.CommandFinished{ID: "process.1", Report: &event.CommandReport{Limited: "x"}})
	f.Add(string(finished), "command.finished")
	f.Add(`{"id":"process.1"}`, "budget.reserved")
	f.Add(`{"id":"process.1"}`, "command.started")
	f.Fuzz(func(t *testing.T, raw, kind string) {
		m := process.New()
		if err := m.Apply(&event.Event{Run: "r", Data: started}); err != nil {
			t.Fatal(err)
		}
		text, _ := json.Marshal(map[string]any{"seq": 2, "run": "r", "type": kind, "time": "2026-01-01T00:00:00Z", "data": json.RawMessage(strings.ToValidUTF8(raw, ""))})
		e, err := event.Decode(text)
		if err != nil {
			return
		}
		for range 3 {
			if err := m.Apply(e); err != nil && !errors.Is(err, tree.ErrMisfit) && !strings.HasPrefix(err.Error(), "process: ") {
				t.Error(err)
			}
			m.Next()
			m.State()
		}
	})
}
