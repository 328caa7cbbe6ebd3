package control_test

import (
	"errors"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/machine/versions"
	"github.com/pawlrun/pawl/journal"
)

// The process that answers for the run refuses a limit that is too low, and the sender
// receives the error.
func TestWhoeverRaisesALimitTooLittleIsToldWhoeverAnswers(t *testing.T) {
	for value, small := range map[float64]bool{1: true, 2: false} {
		o := parkedAs(t, `identity: {name: writer}
model_policy: {primary: scripted/turns.yaml}
tools: {allow: [fs.write]}
budgets: {max_model_turns: 1, actions: {max_model_turns: ask}}
`, func(*event.RunStarted) {})
		sender := behindSender{o.store, func() {
			if err := o.engine.Send(t.Context(), journal.Command{Run: o.run, Kind: journal.Pause, By: "ben"}); err != nil {
				t.Error(err)
			}
		}}
		e := engine.New(sender, versions.Make, engine.Options{})
		t.Cleanup(func() { _ = e.Close() })
		c := journal.Command{Kind: journal.Raise, Setting: "max_model_turns", Value: value, By: "ann"}
		d, err := control.New(sender, e).Send(t.Context(), o.row(), byAnn(c))
		var refused *engine.RaiseError
		if told := errors.As(err, &refused) && refused.AtLeast == 2 && refused.Setting == "max_model_turns" && refused.Run == o.run; told != small || !small && (err != nil || !d.Taken) {
			t.Errorf("raised to %v: %+v, %v", value, d, err)
		}
	}
}
