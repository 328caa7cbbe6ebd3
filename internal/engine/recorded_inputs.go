package engine

import (
	"context"
	"fmt"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
)

// RecordedInputs are the messages that a run was given while it went, by the
// cycle that was under way, for [Env.Inputs].
func (e *Engine) RecordedInputs(ctx context.Context, run string) (map[int][]event.InputReceived, error) {
	inputs, cycle := map[int][]event.InputReceived{}, 0
	err := e.past().Refold(ctx, run, func(_ machine.Machine, ev *event.Event) error {
		switch d := ev.Data.(type) {
		case event.CycleStart:
			cycle = d.Cycle
		case event.InputReceived:
			d.Command, d.MessageID = 0, "" // those of the recorded run's inboxes
			inputs[cycle] = append(inputs[cycle], d)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("engine: recorded messages of run %s: %w", run, err)
	}
	return inputs, nil
}

// giveInputs journals the messages of the environment up to a cycle whose answer
// is on the way, as if they had come meanwhile: they are there when it is decided
// what follows on the answer.
func (cs *calls) giveInputs(cycle int) error {
	for ; cs.given <= cycle; cs.given++ {
		for _, said := range cs.env.Inputs[cs.given] {
			if err := cs.stage(cs.env.record.Blobs.Detach(said)); err != nil {
				return err
			}
		}
	}
	return nil
}
