package replay

import (
	"context"
	"fmt"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine"
)

// Inputs returns the messages that a run received while it ran, by the cycle in which
// they arrived, for [Env.Inputs].
func Inputs(ctx context.Context, past drive.Past, run string) (map[int][]event.InputReceived, error) {
	inputs, cycle := map[int][]event.InputReceived{}, 0
	err := past.Refold(ctx, run, func(_ machine.Machine, ev *event.Event) error {
		switch d := ev.Data.(type) {
		case event.CycleStart:
			cycle = d.Cycle
		case event.InputReceived:
			d.Command, d.MessageID = 0, "" // these ids belong to the inbox of the recorded run
			inputs[cycle] = append(inputs[cycle], d)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("replay: recorded messages of run %s: %w", run, err)
	}
	return inputs, nil
}
