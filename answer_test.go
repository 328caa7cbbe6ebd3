package pawl_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
)

type verdict struct {
	Good  bool `json:"good"`
	Score int  `json:"score"`
}

// judging is an agent whose model gives these answers, one after the other.
func judging(t *testing.T, answers ...string) (pawl.Agent, *recorder) {
	t.Helper()
	schema, err := pawl.SchemaOf[verdict]()
	if err != nil {
		t.Fatal(err)
	}
	m := &recorder{}
	m.answer = func(*llm.Request) *llm.Response { return textual(answers[len(m.requests)-1]) }
	return pawl.Agent{Model: pawl.Target{Name: "test/model", Client: m}, Schema: schema}, m
}

func TestAnAnswerIsHeldToTheSchemaAndReadIntoAValue(t *testing.T) {
	a, m := judging(t, "it is good", `{"good": true, "score": "nine"}`, `{"good": true, "score": 9}`)
	s, err := a.Run(t.Context(), "judge")
	if err != nil {
		t.Fatal(err)
	}
	var got verdict
	if err := s.Decode(&got); err != nil || got != (verdict{Good: true, Score: 9}) {
		t.Errorf("%+v: %v", got, err)
	}
	if len(m.requests) != 3 {
		t.Fatalf("%d requests", len(m.requests))
	}
	for i, want := range []string{"not valid JSON", "/score: must be integer, not string"} {
		messages := m.requests[i+1].Messages
		last := messages[len(messages)-1]
		if !strings.Contains(last.Text(), want) || last.Origin != llm.OriginLoop {
			t.Errorf("request %d ends with %q of %q", i+2, last.Text(), last.Origin)
		}
	}
	if !slices.ContainsFunc(m.requests, func(r llm.Request) bool { return len(r.Schema) > 0 }) {
		t.Error("no request carries the schema")
	}
}

func TestAnswersThatNeverFitEndTheRunAsARepeatedFailure(t *testing.T) {
	a, m := judging(t, "one", "two", "three", "four")
	s, err := a.Run(t.Context(), "judge")
	if err != nil {
		t.Fatal(err)
	}
	if o := s.Outcome; o.Reason != event.ReasonRepeatedFailure || o.OK || o.Completed || o.Error == nil || len(m.requests) != 3 {
		t.Errorf("after %d requests: %+v", len(m.requests), o)
	}
	if err := s.Decode(new(verdict)); !errors.Is(err, pawl.ErrNoAnswer) {
		t.Errorf("a failed run has an answer: %v", err)
	}
}

func TestEndBeforeTheAnswerIsRefusedWithASchema(t *testing.T) {
	a := pawl.Agent{
		Model: says(scripted.Turn{Text: "x"}), Schema: json.RawMessage(`{"type":"array"}`), Conversation: pawl.Conversation{OnNoToolCall: "nudge"},
		Termination: pawl.Termination{Conditions: []pawl.Condition{{Kind: "budget-exhausted"}, {Kind: "text-includes", Text: "done"}}},
	}
	err := a.Validate()
	if err == nil {
		t.Fatal("the agent is valid")
	}
	want := []string{
		"pawl: agent: Schema: is not that of an object, and no provider answers by another",
		`pawl: agent: OnNoToolCall: is "nudge", and with a Schema an answer without a call must end the run`,
		"pawl: agent: Conditions[1]: would end the run before there is an answer to hold to the Schema",
	}
	if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
		t.Error(diff)
	}
	a = pawl.Agent{Model: a.Model, Schema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"strin"}}}`)}
	if err := a.Validate(); err == nil || !strings.Contains(err.Error(), "/properties/a/type: value must be one of") {
		t.Errorf("a schema that is none: %v", err)
	}
}
