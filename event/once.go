package event

// repeated is a payload whose text a later event may repeat. Its key is the step of its
// event.
type repeated interface {
	Data
	// leaveOut returns the payload without its text, if that equals text.
	leaveOut(text string) (Data, bool)
	// leftOut reports that it has no text, and tell returns the payload with it.
	leftOut() bool
	restore(text string) Data
}

// repeating is a payload that repeats an earlier text of a step.
type repeating interface {
	Data
	repeats() (step, text string)
}

// Dedupe removes texts from the events of one commit that later events of the commit
// repeat, so that each is stored once: the end of a step repeats its child's text, and
// an iteration of a refinement loop, which is one step, repeats that step's text. It
// returns the index of the first changed event, -1 for none. [Texts] restores them.
func Dedupe(commit []*Event) (first int) {
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

// LeftOut reports whether a later event contains a text of the event.
func LeftOut(d Data) bool {
	r, is := d.(repeated)
	return is && r.leftOut()
}

// Texts restores the texts that [Dedupe] removed from a run's events, which must be noted
// in order. Its zero value is ready for use.
type Texts struct {
	// waiting holds the events without their text, by step.
	waiting map[string][]*Event
}

// Note adds the next event, which it may change later, until no text is missing.
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

// Missing reports whether texts of noted events are still missing.
func (t *Texts) Missing() bool { return len(t.waiting) > 0 }

// Say sets the text of the events of a step that lack it.
func (t *Texts) Say(step, text string) {
	for _, e := range t.waiting[step] {
		e.Data = e.Data.(repeated).restore(text)
	}
	delete(t.waiting, step)
}
