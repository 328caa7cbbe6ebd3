package follow

import "github.com/pawlrun/pawl/event"

// Coalesce joins live events of which each goes on where the one before it ended, so
// that what comes at once is told at once. It changes the events that it is given.
func Coalesce(events []Event) []Event {
	out := events[:0]
	for i := range events {
		if len(out) > 0 && joined(&out[len(out)-1], &events[i]) {
			continue
		}
		out = append(out, events[i])
	}
	return out
}

// joined adds a live event to the one before it, where it goes on with that.
func joined(before, e *Event) bool {
	if before.Run != e.Run || before.Seq > 0 {
		return false
	}
	switch d := e.Data.(type) {
	case event.Text:
		if b, ok := before.Data.(event.Text); ok && b.Attempt == d.Attempt && b.Index == d.Index {
			b.Text += d.Text
			before.Data = b
			return true
		}
	case event.Reasoning:
		if b, ok := before.Data.(event.Reasoning); ok && b.Attempt == d.Attempt && b.Index == d.Index {
			b.Text += d.Text
			before.Data = b
			return true
		}
	case event.ToolCallDelta:
		if b, ok := before.Data.(event.ToolCallDelta); ok && b.Attempt == d.Attempt && b.Index == d.Index && d.Tool == "" {
			b.Text += d.Text
			before.Data = b
			return true
		}
	}
	return false
}
