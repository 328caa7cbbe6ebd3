package follow

// Coalesce joins consecutive live events that continue each other, so that a reader
// gets them as one. It changes the given events.
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

// joined appends a live event to the previous one, if it continues that.
func joined(before, e *Event) bool {
	if before.Run != e.Run || before.Seq > 0 || !continues(before.Data, e.Data) {
		return false
	}
	before.Data = withText(before.Data, textOf(before.Data)+textOf(e.Data))
	return true
}
