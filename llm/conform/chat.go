package conform

import "github.com/pawlrun/pawl/llm/internal/wire"

// readChat reads a message of Chat Completions.
func readChat(r *Items, raw []byte) *Violation {
	role, id := "", ""
	var content, calls []byte
	thought := false
	for m := wire.ScanObject(raw); m.Next(); {
		switch string(m.Key()) {
		case "role":
			role = wire.Text(m.Value())
		case "content":
			content = m.Value()
		case "tool_calls":
			calls = m.Value()
		case "tool_call_id":
			id = wire.Text(m.Value())
		case "reasoning", "reasoning_content", "reasoning_details", "refusal", "audio", "function_call", "images":
			thought = thought || given(m.Value())
		}
	}
	switch role {
	case "tool":
		r.elements = append(r.elements, element{role: role, kind: result, id: id})
		return nil
	case "assistant":
		r.elements = append(r.elements, element{role: role, kind: text, mark: !given(content)})
		if string(calls) == "[]" {
			return broken("empty-calls", "", "tool_calls is an empty list; leave it out")
		}
		if !given(content) && !given(calls) && !thought {
			return broken("empty-message", "", "a message of the assistant holds neither text nor call")
		}
		return readChatCalls(r, calls)
	case "user", "system", "developer", "function":
		r.elements = append(r.elements, element{role: role, kind: text})
		if !given(content) {
			return broken("empty-message", "", "a message of the %s says nothing", role)
		}
		return nil
	}
	r.elements = append(r.elements, element{role: role})
	return broken("role", "", "nobody speaks as %q", role)
}

func readChatCalls(r *Items, list []byte) *Violation {
	if !isList(list) {
		return nil
	}
	for c := wire.ScanArray(list); c.Next(); {
		e := element{role: "assistant", kind: call}
		custom := false
		var arguments []byte
		for m := wire.ScanObject(c.Value()); m.Next(); {
			switch string(m.Key()) {
			case "id":
				e.id = wire.Text(m.Value())
			case "custom":
				custom = true
			case "function":
				for f := wire.ScanObject(m.Value()); f.Next(); {
					switch string(f.Key()) {
					case "name":
						e.name = wire.Text(f.Value())
					case "arguments":
						arguments = f.Value()
					}
				}
			}
		}
		r.elements = append(r.elements, e)
		switch {
		case custom:
		case !idLike(e.name, 128, ".:"):
			return broken("tool-name", e.id, "%q is no name of a function", e.name)
		case !isText(arguments):
			return broken("call-arguments", e.id, "the arguments of a call are no text")
		}
	}
	return nil
}

// checkChat checks the order of calls and results: the messages directly after a call's
// message answer its calls, one each.
func checkChat(_ Options, elements []element) *Violation {
	var open []element
	var answered int
	closeAll := func() *Violation {
		for _, c := range open {
			if !c.mark {
				return broken("orphan-call", c.id, "a call has no message of role tool behind it").at(c)
			}
		}
		open, answered = open[:0], 0
		return nil
	}
	for i, e := range elements {
		if e.kind == call {
			if e.id != "" && find(open, e.id) >= 0 {
				return broken("duplicate-call", e.id, "two calls of a message have this id").at(e)
			}
			e.mark = false
			open = append(open, e)
			continue
		}
		if e.kind != result {
			if i > 0 {
				if v := closeAll(); v != nil {
					return v
				}
			}
			continue
		}
		n := find(open, e.id)
		if e.id == "" && answered < len(open) {
			n = answered // some services give their calls no ids
		}
		switch {
		case n < 0:
			return broken("orphan-result", e.id, "a message of role tool answers no call before it").at(e)
		case open[n].mark:
			return broken("duplicate-result", e.id, "a call has a second result").at(e)
		}
		open[n].mark = true
		answered++
	}
	return closeAll()
}
