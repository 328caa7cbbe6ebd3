package engine

import (
	"iter"
	"slices"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// openCall is a call of the last answer that has no result yet.
type openCall struct {
	id, tool string
	// noted reports whether its tool_call is journalled.
	noted, started bool
	settled        bool
}

// openCalls holds the open calls of the last answer, in its order.
type openCalls struct {
	answer llm.Parts
	calls  []openCall
}

func (o *openCalls) all() iter.Seq[openCall] {
	return func(yield func(openCall) bool) {
		for _, c := range o.calls {
			if !c.settled && !yield(c) {
				return
			}
		}
	}
}

// note folds an event about the calls.
func (o *openCalls) note(data event.Data) {
	switch x := data.(type) {
	case event.ModelResponse:
		o.answered(x)
	case event.ToolCall:
		o.change(x.CallID, func(c *openCall) { c.noted, c.tool = true, x.Tool })
	case event.ToolStarted:
		o.change(x.CallID, func(c *openCall) { c.started = true })
	case event.ToolInputRequired:
		o.change(x.CallID, func(c *openCall) { c.started = x.Live })
	case event.ToolAttemptFailed:
		o.change(x.CallID, func(c *openCall) { c.started = false })
	case event.ToolResult:
		o.change(x.CallID, func(c *openCall) { c.settled = true })
	}
}

func (o *openCalls) answered(x event.ModelResponse) {
	o.answer, o.calls = llm.Parts(x.Parts), o.calls[:0]
	for _, c := range x.ToolCalls {
		o.calls = append(o.calls, openCall{id: c.CallID, tool: c.Tool})
	}
}

func (o *openCalls) change(id string, to func(*openCall)) {
	if c := o.find(id); c != nil && !c.settled {
		to(c)
	}
}

// find returns the call of an id, or nil.
func (o *openCalls) find(id string) *openCall {
	for i := range o.calls {
		if o.calls[i].id == id {
			return &o.calls[i]
		}
	}
	return nil
}

// unnoted returns the open calls without a tool_call, as the model made them.
func (o *openCalls) unnoted() []llm.ToolCall {
	var calls []llm.ToolCall
	for _, asked := range o.answer.ToolCalls() {
		if c := o.find(asked.CallID); c != nil && !c.noted && !c.settled {
			calls = append(calls, asked)
		}
	}
	return calls
}

// openChild is a child whose outcome is unknown here.
type openChild struct {
	// run is the child's id, call the call that it answers, and step its step; empty
	// for none.
	run, call, step string
}

// openChildren holds the open children of a run. The cost of an event does not
// depend on their number.
type openChildren struct {
	byRun map[string]openChild
	// order holds the ids, oldest first, including some that have ended.
	order []string
}

// note folds an event about the children.
func (o *openChildren) note(data event.Data) {
	switch x := data.(type) {
	case event.ChildStarted:
		if o.byRun == nil {
			o.byRun = map[string]openChild{}
		}
		if len(o.order) > 2*len(o.byRun)+64 {
			o.order = slices.DeleteFunc(o.order, func(run string) bool { _, open := o.byRun[run]; return !open })
		}
		o.byRun[x.Child] = openChild{run: x.Child, call: x.CallID, step: x.Step}
		o.order = append(o.order, x.Child)
	case event.ChildFinished:
		delete(o.byRun, x.Child)
	}
}

// all returns the open children, oldest first.
func (o *openChildren) all() (open []openChild) {
	for _, run := range o.order {
		if c, is := o.byRun[run]; is {
			open = append(open, c)
		}
	}
	return open
}

// of returns the child with a run id, and whether it is open.
func (o *openChildren) of(run string) (openChild, bool) {
	c, open := o.byRun[run]
	return c, open
}
