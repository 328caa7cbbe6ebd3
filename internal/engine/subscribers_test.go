package engine_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
)

func durable(events []event.Event) []event.Event {
	return slices.DeleteFunc(slices.Clone(events), func(e event.Event) bool { return e.Seq == 0 })
}

// rows: ALF-2
func TestEventsAreConsumedOneByOneWhileTheRunGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		step := make(chan struct{})
		r := newRig(t).tools(toolFunc("work", func(context.Context) (string, error) { <-step; return "ok", nil })).turns(
			scripted.Turn{ToolCalls: calls("work", "{}")}, scripted.Turn{Text: "done"})
		run := r.start(t.Context())
		next, stop := iter.Pull2(run.Events(t.Context(), false))
		defer stop()
		until := func(want event.Type) {
			for {
				e, err, ok := next()
				if err != nil || !ok {
					t.Fatalf("no %s: %v", want, err)
				}
				if e.Type() == want {
					return
				}
			}
		}
		until("tool.started")
		if names := names(r.journal(run.ID)); slices.Contains(names, "tool_result") {
			t.Errorf("the tool had not been let go, and the journal has %v", names)
		}
		step <- struct{}{}
		wait(t, run) // although no reader consumes its deltas
		until("run.completed")
		if e, err, ok := next(); ok {
			t.Errorf("behind the end: %+v (%v)", e, err)
		}
	})
}

// rows: ALF-20
func TestRetryIsPublishedBeforeItsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t).turns(scripted.Turn{Error: &scripted.Failure{Class: llm.ClassOverloaded}}, scripted.Turn{Text: "done"})
		start := time.Now()
		run := r.start(t.Context())
		var announced time.Duration
		for e, err := range run.Events(t.Context(), false) {
			if err != nil {
				t.Fatal(err)
			}
			switch d := e.Data.(type) {
			case event.ModelRetrying:
				announced = time.Duration(d.DelayMs) * time.Millisecond
				if waited := time.Since(start); waited != 0 || d.Reason == "" || announced <= 0 {
					t.Errorf("heard after %s: %+v", waited, d)
				}
			case event.ModelRequested:
				if waited := time.Since(start); d.Attempt == 2 && (announced == 0 || waited != announced) {
					t.Errorf("the wait was %s, announced were %s", waited, announced)
				}
			}
		}
	})
}

// flood says a number of words, then answers.
func flood(words int) llm.Model {
	return modelFunc(func(_ context.Context, _ *llm.Request, emit func(llm.Delta)) (*llm.Response, error) {
		for range words {
			emit(llm.Delta{Kind: llm.DeltaText, Text: "x"})
		}
		return said(strings.Repeat("x", words)), nil
	})
}

// rows: ALF-2
func TestLateSubscriberGetsEveryDurableEventInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		step := make(chan struct{})
		r := newRig(t).tools(toolFunc("work", func(context.Context) (string, error) { <-step; return "ok", nil })).turns(
			scripted.Turn{ToolCalls: calls("work", "{}")}, scripted.Turn{ToolCalls: calls("work", "{}")}, scripted.Turn{Text: "done"})
		run := r.start(t.Context())
		const subscribers = 5
		got := make(chan []event.Event, 2*subscribers)
		for range 2 {
			for range subscribers {
				go func() { got <- drain(t, run, true) }()
			}
			synctest.Wait()
			step <- struct{}{}
		}
		wait(t, run)
		for range 2 * subscribers {
			if diff := cmp.Diff(names(r.journal(run.ID)), names(durable(<-got))); diff != "" {
				t.Errorf("-journal +subscriber:\n%s", diff)
			}
		}
		after := drain(t, run, true)
		if diff := cmp.Diff(r.journal(run.ID), after); diff != "" {
			t.Errorf("after the end, -journal +subscriber:\n%s", diff)
		}
	})
}

func TestStalledSubscriberBlocksNoneAndMissesNoDurableEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const words = 100_000
		r := newRig(t).model(flood(words))
		run := r.start(t.Context())
		goOn, stalled := make(chan struct{}), make(chan []event.Event, 1)
		go func() {
			var events []event.Event
			for e, err := range run.Events(t.Context(), true) {
				if err != nil {
					t.Error(err)
				}
				if events = append(events, e); e.Seq == 0 && len(events) < 10 {
					<-goOn
				}
			}
			stalled <- events
		}()
		if o := outcome(t, run); len(o.FinalOutput) != words {
			t.Errorf("the answer has %d words", len(o.FinalOutput))
		}
		close(goOn)
		events := <-stalled
		if diff := cmp.Diff(names(r.journal(run.ID)), names(durable(events))); diff != "" {
			t.Errorf("-journal +subscriber:\n%s", diff)
		}
		if n := count(events, "text"); n == words {
			t.Error("a subscriber that stalled for 100,000 deltas was given them all: they were kept in memory")
		}
	})
}

// After that it gets the whole text so far, and then goes on.
func TestSubscriberThatLostDeltasGetsReset(t *testing.T) {
	for name, kind := range map[string]llm.DeltaKind{"text": llm.DeltaText, "reasoning": llm.DeltaReasoning, "a call": llm.DeltaToolCall} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { losesDeltas(t, kind) })
		})
	}
}

func losesDeltas(t *testing.T, kind llm.DeltaKind) {
	stall, answer := make(chan struct{}), make(chan struct{})
	say := func(emit func(llm.Delta), word string, times int) {
		for range times {
			emit(llm.Delta{Kind: kind, Text: word})
		}
	}
	turn := 0
	r := newRig(t).model(modelFunc(func(_ context.Context, _ *llm.Request, emit func(llm.Delta)) (*llm.Response, error) {
		if turn++; turn == 2 {
			say(emit, "second", 1)
			return said("second"), nil
		}
		<-stall
		say(emit, "first", 1)
		synctest.Wait() // the subscriber has it, and stalls
		say(emit, "lost", 100_000)
		stall <- struct{}{}
		synctest.Wait() // the subscriber has caught up
		say(emit, "late", 3)
		synctest.Wait()
		<-answer
		return &llm.Response{Parts: llm.Parts{llm.Text{Text: "first"}, llm.ToolCall{Name: "none"}}}, nil
	}))
	run := r.start(t.Context())
	shown, caughtUp := "", false
	whole := "first" + strings.Repeat("lost", 100_000) + "latelatelate"
	show := func(text string) {
		shown += text
		if text == "first" {
			<-stall
		}
	}
	var heard []event.Event
	for e, err := range run.Events(t.Context(), true) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Seq > 0 {
			heard = append(heard, e)
		}
		switch d := e.Data.(type) {
		case event.ModelRequested:
			if e.Cycle == 1 {
				stall <- struct{}{}
			}
		case event.Text:
			show(d.Text)
		case event.Reasoning:
			show(d.Text)
		case event.ToolCallDelta:
			show(d.Text)
		case event.TextReset:
			shown = ""
			close(answer)
		case event.ModelResponse:
			shown = ""
		case event.RunTerminatedBy:
			continue
		}
		if !strings.HasPrefix(whole, shown) && shown != "second" {
			t.Fatalf("what a client shows has a hole: %.40q", shown)
		}
		caughtUp = caughtUp || shown == whole
	}
	if !caughtUp {
		t.Error("it never showed the whole text")
	}
	if diff := cmp.Diff(names(r.whole(run.ID)), names(heard)); diff != "" {
		t.Errorf("-journal +subscriber:\n%s", diff)
	}
}

func TestDeltasStandBetweenTheIntentAndTheAnswerTheyBelongTo(t *testing.T) {
	r := newRig(t).turns(scripted.Turn{Text: "one two three", ToolCalls: calls("none", "{}")}, scripted.Turn{Text: "four"})
	events := r.heard()
	var text strings.Builder
	var order []string
	for _, e := range events {
		switch d := e.Data.(type) {
		case event.ModelRequested:
			order = append(order, "asked")
		case event.Text:
			if e.Pos != 0 || d.Text == "" {
				t.Errorf("live event %+v is numbered or empty", e)
			}
			text.WriteString(d.Text)
			order = append(order, "text")
		case event.ModelResponse:
			order = append(order, "answered")
		}
	}
	if got := strings.Join(slices.Compact(order), " "); got != "asked text answered asked text answered" {
		t.Errorf("order %s", got)
	}
	if text.String() != "one two threefour" {
		t.Errorf("the deltas say %q", text.String())
	}
	for _, e := range r.journal(events[0].Run) {
		if e.Type() == "text" {
			t.Error("a delta was stored")
		}
	}
}

func TestABrokenAttemptTakesItsDeltasBack(t *testing.T) {
	for _, tt := range []struct {
		name, partial string
		resets        int
	}{{"with partial text", "half an", 1}, {"without", "", 0}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				attempt := 0
				r := newRig(t).model(modelFunc(func(_ context.Context, _ *llm.Request, emit func(llm.Delta)) (*llm.Response, error) {
					attempt++
					if attempt == 1 {
						if tt.partial != "" {
							emit(llm.Delta{Kind: llm.DeltaText, Text: tt.partial})
						}
						return &llm.Response{Parts: llm.Parts{llm.Text{Text: tt.partial}}}, &llm.Error{Class: llm.ClassOverloaded, Message: "cut"}
					}
					emit(llm.Delta{Kind: llm.DeltaText, Text: "whole"})
					return said("whole"), nil
				}))
				events := r.heard()
				shown := ""
				for _, e := range events {
					switch d := e.Data.(type) {
					case event.Text:
						shown += d.Text
					case event.TextReset:
						shown = ""
					}
				}
				if shown != "whole" || count(events, "text.reset") != tt.resets {
					t.Errorf("a client shows %q after %d resets", shown, count(events, "text.reset"))
				}
			})
		})
	}
}

func TestBreakingOutOfTheRangeDetachesAndLeavesTheRunGoing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		step := make(chan struct{})
		r := newRig(t).tools(toolFunc("work", func(context.Context) (string, error) { <-step; return "", nil })).
			turns(scripted.Turn{ToolCalls: calls("work", "{}")}, scripted.Turn{Text: "done"})
		run := r.start(t.Context())
		for range run.Events(t.Context(), true) {
			break
		}
		close(step)
		if o := outcome(t, run); !o.OK {
			t.Errorf("outcome %+v", o)
		}
	})
}

func TestTheContextOfEventsEndsTheListeningAndNotTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		step := make(chan struct{})
		r := newRig(t).tools(toolFunc("work", func(context.Context) (string, error) { <-step; return "", nil })).
			turns(scripted.Turn{ToolCalls: calls("work", "{}")}, scripted.Turn{Text: "done"})
		run := r.start(t.Context())
		listening, stop := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() {
			var last error
			for _, err := range run.Events(listening, true) {
				last = err
			}
			failed <- last
		}()
		synctest.Wait()
		stop()
		mustBe(t, <-failed, context.Canceled)
		close(step)
		if o := outcome(t, run); !o.OK {
			t.Errorf("outcome %+v", o)
		}
	})
}

func TestEventsOfARunThatParkedEnd(t *testing.T) {
	r := newRig(t).tools(toolFunc("work", nil)).gate("work").turns(scripted.Turn{ToolCalls: calls("work", "{}")})
	run := r.start(t.Context())
	events := drain(t, run, true)
	if last := events[len(events)-1].Type(); last != "run.parked" {
		t.Errorf("the last event is %s", last)
	}
	if s := wait(t, run); s.Phase != machine.Parked {
		t.Errorf("state %+v", s)
	}
}

// rows: ALF-31, ALF-32
func TestRetryAndWhiteSpaceAreStreamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		m := modelFunc(func(_ context.Context, _ *llm.Request, emit func(llm.Delta)) (*llm.Response, error) {
			if attempts++; attempts == 1 {
				return nil, &llm.Error{Class: llm.ClassOverloaded, Message: "come back later"}
			}
			for _, text := range []string{"one", " ", "\n", "", "\t\n", "two"} {
				emit(llm.Delta{Kind: llm.DeltaText, Text: text})
			}
			return said("taken from the stream"), nil
		})
		var heard []string
		for _, e := range newRig(t).model(m).heard() {
			if d, ok := e.Data.(event.Text); ok {
				heard = append(heard, d.Text)
			}
		}
		if want := []string{"one", " ", "\n", "\t\n", "two"}; !slices.Equal(heard, want) || attempts != 2 {
			t.Errorf("of attempt %d: %q, want %q", attempts, heard, want)
		}
	})
}

// rows: ALF-29..34
func TestStreamedAndWholeAnswersGiveEventsOfTheSameShape(t *testing.T) {
	shape := func(m llm.Model) string {
		var shape []string
		for _, e := range newRig(t).model(m).heard() {
			shape = append(shape, string(e.Type()))
			if d, ok := e.Data.(event.Text); ok {
				shape = append(shape, fmt.Sprintf("%q@%d/%d", d.Text, d.Attempt, d.Index))
			}
		}
		return strings.Join(shape, " ")
	}
	answer := llm.Parts{llm.Reasoning{Text: "hm"}, llm.Text{Text: "hello"}, llm.Text{}, llm.Text{Text: "you"}}
	streaming := modelFunc(func(_ context.Context, _ *llm.Request, emit func(llm.Delta)) (*llm.Response, error) {
		emit(llm.Delta{Kind: llm.DeltaText, Index: 1, Text: ""})
		emit(llm.Delta{Kind: llm.DeltaText, Index: 1, Text: "hello"})
		emit(llm.Delta{Kind: llm.DeltaText, Index: 3, Text: "you"})
		// Had it been asked for the whole answer, nothing of this would be heard.
		return &llm.Response{Parts: llm.Parts{llm.Text{Text: "taken from the stream"}}, Finish: llm.FinishEnd}, nil
	})
	whole := struct{ llm.Model }{modelFunc(func(context.Context, *llm.Request, func(llm.Delta)) (*llm.Response, error) {
		return &llm.Response{Parts: answer, Finish: llm.FinishEnd}, nil
	})}
	if s, w := shape(streaming), shape(whole); s != w || !strings.Contains(s, `text "hello"@1/1 text "you"@1/3`) {
		t.Errorf("streamed %s\nwhole    %s", s, w)
	}
}
