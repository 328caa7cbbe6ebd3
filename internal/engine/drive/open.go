package drive

import (
	"iter"
	"slices"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// OpenCall is a call of the last answer that has no result yet.
type OpenCall struct {
	ID, Tool string
	// noted reports whether its tool_call is journalled. Started reports whether an
	// attempt at it is under way.
	noted, Started bool
	settled        bool
}

// OpenCalls holds the open calls of the last answer, in its order.
type OpenCalls struct {
	answer llm.Parts
	calls  []OpenCall
}

// Len returns how many calls the last answer made.
func (o *OpenCalls) Len() int { return len(o.calls) }

// UnderWay reports whether an attempt at a call is under way.
func (o *OpenCalls) UnderWay(id string) bool {
	c := o.find(id)
	return c != nil && c.Started && !c.settled
}

// All returns the open calls.
func (o *OpenCalls) All() iter.Seq[OpenCall] {
	return func(yield func(OpenCall) bool) {
		for _, c := range o.calls {
			if !c.settled && !yield(c) {
				return
			}
		}
	}
}

// Note folds an event about the calls.
func (o *OpenCalls) Note(data event.Data) {
	switch x := data.(type) {
	case event.ModelResponse:
		o.answered(x)
	case event.ToolCall:
		o.change(x.CallID, func(c *OpenCall) { c.noted, c.Tool = true, x.Tool })
	case event.ToolStarted:
		o.change(x.CallID, func(c *OpenCall) { c.Started = true })
	case event.ToolInputRequired:
		o.change(x.CallID, func(c *OpenCall) { c.Started = x.Live })
	case event.ToolAttemptFailed:
		o.change(x.CallID, func(c *OpenCall) { c.Started = false })
	case event.ToolResult:
		o.change(x.CallID, func(c *OpenCall) { c.settled = true })
	}
}

func (o *OpenCalls) answered(x event.ModelResponse) {
	o.answer, o.calls = llm.Parts(x.Parts), o.calls[:0]
	for _, c := range x.ToolCalls {
		o.calls = append(o.calls, OpenCall{ID: c.CallID, Tool: c.Tool})
	}
}

func (o *OpenCalls) change(id string, to func(*OpenCall)) {
	if c := o.find(id); c != nil && !c.settled {
		to(c)
	}
}

// find returns the call of an id, or nil.
func (o *OpenCalls) find(id string) *OpenCall {
	for i := range o.calls {
		if o.calls[i].ID == id {
			return &o.calls[i]
		}
	}
	return nil
}

// Unnoted returns the open calls without a tool_call, as the model made them.
func (o *OpenCalls) Unnoted() []llm.ToolCall {
	var calls []llm.ToolCall
	for _, asked := range o.answer.ToolCalls() {
		if c := o.find(asked.CallID); c != nil && !c.noted && !c.settled {
			calls = append(calls, asked)
		}
	}
	return calls
}

// OpenChild is a child whose outcome is unknown here.
type OpenChild struct {
	// Run is the child's id, Call the call that it answers, and Step its step; empty
	// for none.
	Run, Call, Step string
}

// OpenChildren holds the open children of a run. The cost of an event does not
// depend on their number.
type OpenChildren struct {
	byRun map[string]OpenChild
	// order holds the ids, oldest first, including some that have ended.
	order []string
}

// Note folds an event about the children.
func (o *OpenChildren) Note(data event.Data) {
	switch x := data.(type) {
	case event.ChildStarted:
		if o.byRun == nil {
			o.byRun = map[string]OpenChild{}
		}
		if len(o.order) > 2*len(o.byRun)+64 {
			o.order = slices.DeleteFunc(o.order, func(run string) bool { _, open := o.byRun[run]; return !open })
		}
		o.byRun[x.Child] = OpenChild{Run: x.Child, Call: x.CallID, Step: x.Step}
		o.order = append(o.order, x.Child)
	case event.ChildFinished:
		delete(o.byRun, x.Child)
	}
}

// All returns the open children, oldest first.
func (o *OpenChildren) All() (open []OpenChild) {
	for _, run := range o.order {
		if c, is := o.byRun[run]; is {
			open = append(open, c)
		}
	}
	return open
}

// Of returns the child with a run id, and whether it is open.
func (o *OpenChildren) Of(run string) (OpenChild, bool) {
	c, open := o.byRun[run]
	return c, open
}
