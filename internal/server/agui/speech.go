package agui

import (
	"fmt"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// message adds a complete message of another participant.
func (t *Translator) message(role, id, text string) {
	if text == "" {
		return
	}
	t.emit(nil, Event{Type: "TEXT_MESSAGE_START", MessageID: id, Role: role})
	t.emit(nil, Event{Type: "TEXT_MESSAGE_CONTENT", MessageID: id, Delta: text})
	t.emit(nil, Event{Type: "TEXT_MESSAGE_END", MessageID: id})
}

// speech translates the output of models.
func (t *Translator) speech(a *agent, e *event.Event) {
	id := func(attempt int) string {
		id := fmt.Sprintf("%s-%d-%d", a.run, e.Cycle, attempt)
		if a.again > 0 {
			id += fmt.Sprintf("-again%d", a.again)
		}
		return id
	}
	switch d := e.Data.(type) {
	case event.Text:
		t.think(a, "", "")
		t.appendText(a, id(d.Attempt), d.Text)
	case event.Reasoning:
		t.think(a, id(d.Attempt)+"-reasoning", d.Text)
	case event.TextReset:
		t.takeBack(a)
		a.again++
	case event.ModelAttemptFailed:
		t.takeBack(a)
		a.again = 0
	case event.ModelResponse:
		a.last = ""
		if d.Purpose == "" {
			t.answer(a, id(d.Attempt), d.Parts)
		}
		t.closeMessages(a)
		a.again = 0
	case event.InputReceived:
		if a == t.open[0] {
			t.message("user", fmt.Sprintf("%s-%d", t.run, e.Seq), d.Text)
		}
	}
}

// answer adds the parts of a complete answer that were not streamed.
func (t *Translator) answer(a *agent, id string, parts []llm.Part) {
	whole := llm.Parts(parts).Text()
	if a.thought == "" && a.text == "" {
		for _, p := range parts {
			if r, ok := p.(llm.Reasoning); ok {
				t.think(a, id+"-reasoning", r.Text)
			}
		}
	}
	t.think(a, "", "")
	if a.text != "" && !strings.HasPrefix(whole, a.said.String()) {
		t.takeBack(a)
		id += "-whole"
	}
	rest := strings.TrimPrefix(whole, a.said.String())
	if a.text == "" && rest == "" {
		return
	}
	t.appendText(a, id, rest)
	a.last = a.text
}

// appendText appends to a message and starts it if necessary.
func (t *Translator) appendText(a *agent, id, text string) {
	if a.text == "" {
		a.text = id
		t.emit(a, Event{Type: "TEXT_MESSAGE_START", MessageID: id, Role: "assistant"})
	}
	if text != "" {
		a.said.WriteString(text)
		t.emit(a, Event{Type: "TEXT_MESSAGE_CONTENT", MessageID: a.text, Delta: text})
	}
}

// think appends to a thought, or ends it if id is empty.
func (t *Translator) think(a *agent, id, text string) {
	if a.thought != "" && a.thought != id {
		t.emit(a, Event{Type: "REASONING_MESSAGE_END", MessageID: a.thought})
		t.emit(a, Event{Type: "REASONING_END", MessageID: a.thought})
		a.thought = ""
	}
	if id == "" || text == "" {
		return
	}
	if a.thought == "" {
		a.thought = id
		t.emit(a, Event{Type: "REASONING_START", MessageID: id})
		t.emit(a, Event{Type: "REASONING_MESSAGE_START", MessageID: id, Role: "reasoning"})
	}
	t.emit(a, Event{Type: "REASONING_MESSAGE_CONTENT", MessageID: id, Delta: text})
}

// takeBack ends a message that is void. AG-UI cannot retract text, so the event has
// its own name.
func (t *Translator) takeBack(a *agent) {
	void := a.text
	t.closeMessages(a)
	if void != "" {
		t.emit(a, Event{Type: "CUSTOM", Name: "pawl.text.reset", Value: map[string]string{"messageId": void}})
	}
}

func (t *Translator) closeMessages(a *agent) {
	t.think(a, "", "")
	if a.text != "" {
		t.emit(a, Event{Type: "TEXT_MESSAGE_END", MessageID: a.text})
	}
	a.text = ""
	a.said.Reset()
}
