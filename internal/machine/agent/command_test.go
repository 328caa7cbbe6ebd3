package agent_test

import (
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/stop"
)

func conditionOn(text string) agent.Config {
	return agent.Config{Conditions: []stop.Condition{{Kind: stop.TextIncludes, Text: text}}}
}

// rows: ALF-8
func TestCommands(t *testing.T) {
	golden(t, "command", []scenario{
		{"a message joins the history at the next boundary", agent.Config{}, func(p *play) {
			p.answer(asks("", "read a"))
			p.command(event.InputReceived{Text: "also b"})
			p.results("c1.1=A")
			p.said("also b")
			p.answer(says("done"))
		}},
		{"a file joins the history with its message, or alone", agent.Config{}, func(p *play) {
			photo := llm.Media{MediaType: "image/png", Name: "photo.png", Data: []byte("png")}
			p.answer(asks("", "read a"))
			p.command(event.InputReceived{Text: " ", Media: []llm.Media{photo}})
			p.command(event.InputReceived{Text: "like this", Media: []llm.Media{photo}})
			p.results("c1.1=A")
			p.said("like this")
			p.answer(says("done"))
		}},
		{"a message that comes with the final answer is answered", agent.Config{}, func(p *play) {
			p.command(event.InputReceived{Text: "wait, also b"})
			p.answer(says("done"))
			p.said("wait, also b")
			p.answer(says("done with b"))
		}},
		{"a message that comes with an answer to be nudged takes the nudge's place", agent.Config{OnNoToolCall: agent.NoToolCallNudge}, func(p *play) {
			p.command(event.InputReceived{Text: "go on"})
			p.answer(says("hm"))
			p.said("go on")
		}},
		{"a message at the ceiling is kept for the run that continues", agent.Config{Limits: cycles(1)}, func(p *play) {
			p.command(event.InputReceived{Text: "too late"})
			p.answer(says("done"))
			p.said("too late")
		}},
		{"a message for later waits for the end of the run", agent.Config{}, func(p *play) {
			p.answer(asks("", "read a"))
			p.command(event.InputReceived{Text: "and then c", Command: 1, Later: true})
			p.command(event.InputReceived{Text: "also b", Command: 2})
			p.results("c1.1=A")
			p.said("also b")
			p.answer(says("done"))
			p.said("and then c")
		}},
		{"the mode changes from the next call on, and never to bypass", agent.Config{Policy: policy.Rules{Declared: true}}, func(p *play) {
			p.command(event.InputReceived{Mode: "plan"})
			p.answer(asks("", "send a"))
			p.command(event.InputReceived{Mode: "bypass"})
			p.answer(asks("", "send a"))
			p.command(event.InputReceived{Mode: "default"})
			p.answer(asks("", "send a"))
			p.results("c3.1=A")
			p.answer(says("done"))
		}},
		{"a message is replaced and taken back until it is read", agent.Config{}, func(p *play) {
			p.answer(asks("", "read a"))
			p.command(event.InputReceived{Text: "also b", Command: 1})
			p.command(event.InputReceived{Text: "never mind", Command: 2})
			p.command(event.InputReceived{Text: "also c", Command: 3, Replaces: 1})
			p.command(event.InputReceived{Command: 4, Replaces: 2})
			p.results("c1.1=A")
			p.said("also c")
			p.command(event.InputReceived{Text: "also d", Command: 5, Replaces: 3})
			p.command(event.InputReceived{Command: 6, Replaces: 3})
			p.answer(says("done"))
			p.said("also d")
			p.answer(says("done too"))
		}},
		{"a message does not undo a condition, and is kept", conditionOn("finished"), func(p *play) {
			p.command(event.InputReceived{Text: "one"})
			p.command(event.InputReceived{Text: "two"})
			p.answer(says("finished"))
		}},
		{"a pause parks at the next boundary, and resume goes on", agent.Config{}, func(p *play) {
			p.answer(asks("", "read a"))
			p.command(event.PauseRequested{})
			p.results("c1.1=A")
			p.resume()
			p.answer(says("done"))
		}},
		{"a pause does not hold up an end", agent.Config{}, func(p *play) {
			p.command(event.PauseRequested{})
			p.answer(says("done"))
		}},
		{"cancelled while paused", agent.Config{}, func(p *play) {
			p.command(event.PauseRequested{})
			p.answer(asks("", "read a"))
			p.results("c1.1=A")
			p.cancel()
		}},
		{"cancelled while paused, by a driver that then takes the run up", agent.Config{}, func(p *play) {
			p.command(event.PauseRequested{})
			p.answer(asks("", "read a"))
			p.results("c1.1=A")
			p.apply(event.CancelRequested{Reason: "enough"})
			p.resume()
		}},
		{"cancelled twice is cancelled once, for the first reason", agent.Config{}, func(p *play) {
			p.command(event.CancelRequested{Reason: "first"})
			p.command(event.CancelRequested{Reason: "second"})
			p.stop()
		}},
		{"a cancel wins over the final answer that came with it", agent.Config{}, func(p *play) {
			p.command(event.CancelRequested{})
			p.answer(says("done"))
		}},
	})
}

// said fails unless the newest word to the model is text.
func (p *play) said(text string) {
	p.t.Helper()
	messages, err := p.live.Conversation()
	if err != nil {
		p.t.Fatal(err)
	}
	if last := messages[len(messages)-1]; last.Role != llm.RoleUser || last.Text() != text {
		p.t.Errorf("the last message is %s %q, not %q", last.Role, last.Text(), text)
	}
}
