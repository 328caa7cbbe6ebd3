package follow

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
	if before.Run != e.Run || before.Seq > 0 || !continues(before.Data, e.Data) {
		return false
	}
	before.Data = withText(before.Data, textOf(before.Data)+textOf(e.Data))
	return true
}
