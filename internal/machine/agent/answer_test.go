package agent_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/llm"
)

func TestAnswersThatMustMatchASchema(t *testing.T) {
	asked := agent.Config{Schema: json.RawMessage(`{"type":"object"}`)}
	golden(t, "answer-schema", []scenario{
		{"a valid answer ends the run", asked, func(p *play) {
			p.answer(asks("looking", "read a"))
			p.results("c1.1=A")
			p.answer(says("{\"a\":1}\n"))
		}},
		{"an invalid answer goes back with what is wrong with it", asked, func(p *play) {
			p.answer(says("it is one"))
			p.answer(says(`{"a":1}`))
		}},
		{"the third invalid answer ends the run as a failure", asked, func(p *play) {
			p.answer(says("one"))
			p.answer(asks("", "read a"))
			p.results("c2.1=A")
			p.answer(says("two"))
			p.answer(says("three"))
		}},
		{"no cycle is left to answer again", agent.Config{Schema: asked.Schema, Limits: cycles(1)}, func(p *play) {
			p.answer(says("one"))
		}},
		{"an answer that was cut off is asked for again as a whole", asked, func(p *play) {
			p.answer(finish(llm.FinishLength, says(`{"a":`)))
			p.answer(says(`{"a":1}`))
		}},
		{"an answer that was paused is one value with what follows it", asked, func(p *play) {
			p.answer(finish(llm.FinishPause, says(`{"a":`)))
			p.answer(says(`1}`))
		}},
		{"what a tool ends the run with is held to the schema too", asked, func(p *play) {
			p.answer(asks("", "done x"))
			p.result("c1.1", event.ToolResult{Output: "no object", EndsRun: true})
			p.answer(asks("", "done y"))
			p.result("c2.1", event.ToolResult{Output: `{"a":1}`, EndsRun: true})
		}},
		{"a message that came meanwhile is read before the answer is judged", asked, func(p *play) {
			p.command(event.InputReceived{Text: "in French"})
			p.answer(says("one"))
			p.answer(says(`{"a":1}`))
		}},
	})
}

func TestACheckOfAnAnswerHasItsPlace(t *testing.T) {
	p := newPlay(t, agent.Config{})
	if err := p.try(event.AnswerChecked{Cycle: 1}); !errors.Is(err, agent.ErrMisfit) {
		t.Errorf("a run without a schema takes a check: %v", err)
	}
}
