package event

// repeated is a payload whose text an event behind it may say again. Its key is the
// step of its event.
type repeated interface {
	Data
	// leaveOut is the payload without the text, where that is the one given.
	leaveOut(text string) (Data, bool)
	// leftOut says that it has no text, and tell is the payload with it.
	leftOut() bool
	tell(text string) Data
}

// repeating is a payload that repeats data of a step before it.
type repeating interface {
	Data
	repeats() (step, text string)
}

// Once takes texts out of the events of one commit that others behind them in it say
// again, so that each is stored once: the end of a step says what its child said, and
// an iteration of a refinement loop, which is one step, says what that step said. It
// returns the place of the first event that it changed, -1 for none. [Texts] is the
// way back.
func Once(commit []*Event) (first int) {
	first = -1
	before := map[string][]int{}
	for i, e := range commit {
		if d, is := e.Data.(repeating); is {
			step, text := d.repeats()
			for _, at := range before[step] {
				if less, same := commit[at].Data.(repeated).leaveOut(text); same && text != "" {
					if commit[at].Data = less; first < 0 || at < first {
						first = at
					}
				}
			}
			delete(before, step)
		}
		if _, is := e.Data.(repeated); is {
			before[e.Step] = append(before[e.Step], i)
		}
	}
	return first
}

// LeftOut reports whether a text of the event stands in one behind it.
func LeftOut(d Data) bool {
	r, is := d.(repeated)
	return is && r.leftOut()
}

// Texts gives the events of a run that are noted in their order the texts back that
// [Once] took out. Its zero value is ready.
type Texts struct {
	// waiting are the events without their text, by their steps.
	waiting map[string][]*Event
}

// Note takes in the next event, which it may change later: until none is missing.
func (t *Texts) Note(e *Event) {
	if LeftOut(e.Data) {
		if t.waiting == nil {
			t.waiting = map[string][]*Event{}
		}
		t.waiting[e.Step] = append(t.waiting[e.Step], e)
		return
	}
	if d, is := e.Data.(repeating); is && len(t.waiting) > 0 {
		t.Say(d.repeats())
	}
}

// Missing reports whether events were noted whose texts did not come yet.
func (t *Texts) Missing() bool { return len(t.waiting) > 0 }

// Say is what the events of a step that wait for their text say.
func (t *Texts) Say(step, text string) {
	for _, e := range t.waiting[step] {
		e.Data = e.Data.(repeated).tell(text)
	}
	delete(t.waiting, step)
}
