package event

import (
	"fmt"
)

// Once takes texts out of the events of one commit that others behind them in it say
// again, so that each is stored once: the end of a step says what its child said, and
// an iteration of a refinement loop, which is one step, says what that step said. It
// returns the place of the first event that it changed, -1 for none. [Texts] is the
// way back.
func Once(commit []*Event) (first int) {
	children, steps := map[string]int{}, map[string]int{}
	first = len(commit)
	for i, e := range commit {
		switch d := e.Data.(type) {
		case ChildFinished:
			children[e.Step] = i
		case StepFinished:
			at, ended := children[d.Step]
			delete(children, d.Step)
			if ended && commit[at].leaveOut(d.Content) {
				first = min(first, at)
			}
			steps[d.Step] = i
		case Iteration:
			pass := d.pass()
			at, ended := steps[pass]
			delete(steps, pass)
			if ended && d.Exit != "" && commit[at].leaveOut(d.Output) {
				first = min(first, at)
			}
		}
	}
	if first == len(commit) {
		return -1
	}
	return first
}

// leaveOut takes out of an event what one behind it says, and reports whether it said
// the same.
func (e *Event) leaveOut(text string) bool {
	switch d := e.Data.(type) {
	case ChildFinished:
		if o := &d.Outcome; d.CallID == "" && text != "" && o.FinalOutput == text && o.LastOutput == text {
			d.Behind, o.FinalOutput, o.LastOutput = true, "", ""
			e.Data = d
			return true
		}
	case StepFinished:
		if text != "" && d.Content == text {
			d.Behind, d.Content = true, ""
			e.Data = d
			return true
		}
	}
	return false
}

// pass is the id of the step that the iteration is, of a loop around one.
func (d Iteration) pass() string {
	if len(d.Item) > 0 {
		return fmt.Sprintf("%s[%d]", d.Step, d.Index)
	}
	return fmt.Sprintf("%s.%d", d.Step, d.Index)
}

// LeftOut reports whether a text of the event stands in one behind it.
func LeftOut(d Data) bool {
	switch d := d.(type) {
	case ChildFinished:
		return d.Behind
	case StepFinished:
		return d.Behind
	}
	return false
}

// Texts gives the events of a run that are noted in their order the texts back that
// [Once] took out. Its zero value is ready.
type Texts struct {
	// children wait for the end of their step and steps for their iteration, by the
	// ids of the steps; a step that waits brings its child.
	children map[string]*Event
	steps    map[string][]*Event
	missing  int
}

// Note takes in the next event, which it may change later: until nothing is missing.
func (t *Texts) Note(e *Event) {
	switch d := e.Data.(type) {
	case ChildFinished:
		if d.Behind {
			put(&t.children, e.Step, e)
			t.missing++
		}
	case StepFinished:
		wait := []*Event{e}
		if child := t.children[d.Step]; child != nil {
			delete(t.children, d.Step)
			wait = append(wait, child)
		}
		if d.Behind {
			put(&t.steps, d.Step, wait)
			t.missing++
		} else {
			t.say(wait[1:], d.Content)
		}
	case Iteration:
		if len(t.steps) > 0 {
			t.say(t.steps[d.pass()], d.Output)
			delete(t.steps, d.pass())
		}
	}
}

// Missing reports whether events were noted whose texts did not come yet.
func (t *Texts) Missing() bool { return t.missing > 0 }

func (t *Texts) say(in []*Event, text string) {
	for _, e := range in {
		t.missing--
		switch d := e.Data.(type) {
		case ChildFinished:
			d.Behind, d.Outcome.FinalOutput, d.Outcome.LastOutput = false, text, text
			e.Data = d
		case StepFinished:
			d.Behind, d.Content = false, text
			e.Data = d
		}
	}
}

func put[V any](m *map[string]V, key string, v V) {
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[key] = v
}
