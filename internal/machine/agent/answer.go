package agent

import (
	"fmt"

	"github.com/pawlrun/pawl/event"
)

// maxInvalidAnswers is how many answers of a run may fail its schema. Each but
// the last is fed back with what is wrong with it.
const maxInvalidAnswers = 3

// kindInvalidAnswer is the class of the failure, and the kind of the end, of a
// run whose answers did not fit its schema.
const kindInvalidAnswer = "invalid_answer"

func invalidNudge(problem string) string {
	return "Your answer does not match the JSON schema of this task: " + problem +
		". Answer again with the whole JSON value and nothing else: no other words, no code fence."
}

// truncatedNudge asks for the rest of a text, or for a value that fits: no
// model goes on in the middle of one when it is held to a schema.
func (c *Config) truncatedNudge() string {
	if len(c.Schema) == 0 {
		return cutNudge
	}
	return "Your last answer was cut off at the output limit, so it is no whole JSON value. " +
		"Answer again with a shorter one that matches the schema."
}

// check takes in what became of the cycle's answer when it was held against the schema.
func (t *turn) check(r *run, d event.AnswerChecked) error {
	if r.phase != phaseSettled || len(r.cfg.Schema) == 0 && r.cfg.textSchema() == nil || d.Cycle != r.cycle || t.checked != nil {
		return fmt.Errorf("%w: the answer of cycle %d is checked in cycle %d", ErrMisfit, d.Cycle, r.cycle)
	}
	t.checked = &d
	if d.Problem != "" {
		t.invalid++
	}
	return nil
}
