package event_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
)

// ends are the events at the end of an iteration, and of a step beside it.
func ends() []*event.Event {
	said := func(text string) event.Outcome {
		return event.Outcome{Status: event.StatusCompleted, OK: true, FinalOutput: text, LastOutput: text}
	}
	all := []*event.Event{
		{Step: "loop", Data: event.ChildFinished{Child: "judge", Outcome: said("a verdict")}},
		{Step: "loop.0", Data: event.ChildFinished{Child: "a", Outcome: said("the <answer>")}},
		{Step: "other", Data: event.ChildFinished{Child: "b", Outcome: said("another answer")}},
		{Step: "loop.0", Data: event.StepFinished{Step: "loop.0", Content: "the <answer>"}},
		{Step: "loop", Data: event.Iteration{Step: "loop", Number: 1, Exit: event.ReasonFinalAnswer, Output: "the <answer>"}},
		{Step: "other", Data: event.StepFinished{Step: "other", Content: "another answer"}},
		{Step: "each[1]", Data: event.StepFinished{Step: "each[1]", Content: "an item"}},
		{Step: "each", Data: event.Iteration{Step: "each", Index: 1, Number: 2, Item: []byte(`1`), Output: "an item"}},
		{Step: "loop.1", Data: event.ChildFinished{Child: "c", Outcome: event.Outcome{FinalOutput: "an excerpt", LastOutput: "all of it"}}},
		{Step: "loop.1", Data: event.StepFinished{Step: "loop.1", Content: "an excerpt"}},
		{Step: "count", Data: event.ChildFinished{Child: "f", Outcome: said("forty-two"), Func: true}},
		{Step: "count", Data: event.StepFinished{Step: "count", Content: "forty-two"}},
		{Step: "loop.2", Data: event.ChildFinished{Child: "d", Outcome: said("nothing came of it")}},
	}
	for i, e := range all {
		e.Seq, e.Run, e.Time = int64(i+1), "r", noon
	}
	return all
}

// What an event of a commit says that another behind it says again is stored once,
// and comes back when the events are read.
func TestACommitHoldsATextOnce(t *testing.T) {
	commit := ends()
	if first := event.Dedupe(commit); first != 1 {
		t.Errorf("the first event that was changed is %d", first)
	}
	var stored strings.Builder
	var texts event.Texts
	var back []*event.Event
	for _, e := range commit {
		body, err := event.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		stored.Write(body)
		read, err := event.Decode(body)
		if err != nil {
			t.Fatal(err)
		}
		texts.Note(read)
		back = append(back, read)
	}
	for text, want := range map[string]int{"the <answer>": 1, "another answer": 1, "a verdict": 1, "an item": 2, "an excerpt": 2, "forty-two": 2, "nothing came of it": 1} {
		if n := strings.Count(stored.String(), text); n != want {
			t.Errorf("%q is stored %d times, want %d", text, n, want)
		}
	}
	want := ends()
	for _, e := range want {
		if d, is := e.Data.(event.ChildFinished); is {
			d.Func = false // which only its driver knows
			e.Data = d
		}
	}
	if diff := cmp.Diff(want, back); diff != "" || texts.Missing() {
		t.Errorf("%s; missing: %v", diff, texts.Missing())
	}
}

// A text whose event was not read is missing, and said to be.
func TestATextWhoseEventIsNotReadIsMissing(t *testing.T) {
	commit := ends()
	event.Dedupe(commit)
	var texts event.Texts
	for _, e := range commit[:3] {
		texts.Note(e)
	}
	if !texts.Missing() || !event.LeftOut(commit[1].Data) {
		t.Errorf("%+v", commit[1].Data)
	}
}
