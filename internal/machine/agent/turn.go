package agent

import (
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// turn is what is remembered of answers beyond their cycle: the text that the
// run would end with, and how often in a row something odd has happened.
type turn struct {
	// answer is the text of the last answer with what it went on from, said
	// the last one that is not blank.
	answer string
	said   string
	// all is the text of all answers, where the run's output is that.
	all string
	// resultAsked says that the model was told to give its result.
	resultAsked bool
	// unfinished: the next answer goes on where this one stopped.
	unfinished bool

	nudges      int
	empties     int
	truncations int
	malformed   int
	pauses      int

	// checked is what became of this cycle's answer when it was held against the
	// run's schema, nil before that; invalid counts those that did not fit.
	checked *event.AnswerChecked
	invalid int
}

// answered takes in an answer's text. An answer that was cut off or paused is one
// text with what follows it; a JSON value that was cut off is given again, whole.
func (t *turn) answered(d *event.ModelResponse, calls int, value, all bool) {
	text := llm.Parts(d.Parts).Text()
	t.appendAll(text, all)
	if t.unfinished {
		text = t.answer + text
	}
	t.answer = text
	if strings.TrimSpace(text) != "" {
		t.said = text
	}
	t.unfinished = calls == 0 && (d.FinishReason == llm.FinishLength && !value || d.FinishReason == llm.FinishPause)
}

func (t *turn) appendAll(text string, all bool) {
	if !all || strings.TrimSpace(text) == "" {
		return
	}
	if t.all != "" && !t.unfinished {
		t.all += "\n\n"
	}
	t.all += text
}

// settled counts the answers in a row that were odd, once their cycle is over.
func (t *turn) settled(d *event.ModelResponse, calls int, truncated bool) {
	count := func(n *int, hit bool) {
		if hit {
			*n++
		} else {
			*n = 0
		}
	}
	f := d.FinishReason
	count(&t.empties, f == llm.FinishEnd && calls == 0 && !spoken(llm.Parts(d.Parts)))
	count(&t.truncations, truncated)
	count(&t.pauses, f == llm.FinishPause)
	count(&t.malformed, malformed(f, calls))
	if calls > 0 {
		t.nudges = 0
	}
}

// malformed reports whether the model meant to call a tool and did not manage to. A
// finish "tool" without a call is that, too: it is no final answer (ALF-13).
func malformed(f llm.Finish, calls int) bool {
	return f == llm.FinishMalformed || f == llm.FinishTool && calls == 0
}

// runnable reports whether the calls of an answer with this finish may run: what
// counts is that they are there, not what the provider called it.
func runnable(f llm.Finish) bool {
	return f == llm.FinishTool || f == llm.FinishEnd || f == llm.FinishPause
}

// spoken reports whether an answer holds something: text, a call, or an item.
func spoken(parts llm.Parts) bool {
	for _, p := range parts {
		switch p := p.(type) {
		case llm.Text:
			if strings.TrimSpace(p.Text) != "" {
				return true
			}
		case llm.Reasoning:
		default:
			return true
		}
	}
	return false
}

// sentence joins what a reason or a message is made of, skipping what is empty.
func sentence(parts ...string) string {
	kept := parts[:0]
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, ": ")
}
