package conform

import (
	"strings"

	"github.com/pawlrun/pawl/llm/internal/wire"
)

// readItem reads an input item of the Responses API.
func readItem(r *Items, raw []byte) *Violation {
	var i struct{ kind, role, id, name, execution string }
	var content, arguments, sealed []byte
	for m := wire.ScanObject(raw); m.Next(); {
		switch string(m.Key()) {
		case "type":
			i.kind = wire.Text(m.Value())
		case "role":
			i.role = wire.Text(m.Value())
		case "call_id":
			i.id = wire.Text(m.Value())
		case "name":
			i.name = wire.Text(m.Value())
		case "execution":
			i.execution = wire.Text(m.Value())
		case "content":
			content = m.Value()
		case "arguments":
			arguments = m.Value()
		case "encrypted_content":
			sealed = m.Value()
		}
	}
	if i.kind == "" && i.role != "" {
		i.kind = "message"
	}
	add := func(e element) { e.name = i.kind; r.elements = append(r.elements, e) }
	switch {
	case i.kind == "message":
		add(element{role: i.role, kind: text, mark: i.role == "assistant"})
		return readSaid(i.role, content)
	case i.kind == "reasoning":
		add(element{kind: reasoning, mark: given(sealed) || given(content)})
	case strings.HasPrefix(i.kind, "tool_search_") && i.execution != "client":
		add(element{kind: other, mark: true}) // the service's own search, which has no result item
	case isOutput(i.kind):
		add(element{kind: result, id: i.id})
		if i.id == "" {
			return broken("call-id", "", "a %s names no call", i.kind)
		}
	case i.kind == "function_call":
		add(element{kind: call, id: i.id, mark: true})
		switch {
		case i.id == "" || len(i.id) > 64:
			return broken("call-id", i.id, "the id of a call has %d characters, and 1 to 64 are taken", len(i.id))
		case !idLike(i.name, 128, ""):
			return broken("tool-name", i.id, "%q is no name of a function", i.name)
		case !isText(arguments):
			return broken("call-arguments", i.id, "the arguments of a call are no text")
		}
	case outputOf[i.kind] != "" && i.id != "":
		add(element{kind: call, id: i.id, mark: true})
	default:
		add(element{kind: other, mark: true})
	}
	return nil
}

// outputOf maps the calls that the client answers to the items with their results.
var outputOf = map[string]string{
	"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output",
	"computer_call": "computer_call_output", "local_shell_call": "local_shell_call_output",
	"shell_call": "shell_call_output", "apply_patch_call": "apply_patch_call_output",
	"tool_search_call": "tool_search_output",
}

func isOutput(kind string) bool {
	for _, output := range outputOf {
		if kind == output {
			return true
		}
	}
	return false
}

// readSaid checks the role and the parts of a message.
func readSaid(role string, content []byte) *Violation {
	switch role {
	case "user", "assistant", "system", "developer":
	default:
		return broken("role", "", "nobody speaks as %q", role)
	}
	if !isList(content) {
		return nil
	}
	for p := wire.ScanArray(content); p.Next(); {
		kind := ""
		for m := wire.ScanObject(p.Value()); m.Next(); {
			if string(m.Key()) == "type" {
				kind = wire.Text(m.Value())
			}
		}
		if role == "assistant" == strings.HasPrefix(kind, "input_") {
			return broken("content-type", "", "a message of the %s holds a part of type %s", role, kind)
		}
	}
	return nil
}

// checkItems checks items that belong together: a call and its output, reasoning and
// the item that it produced.
func checkItems(o Options, elements []element) *Violation {
	open, closed := map[string]int{}, map[string]bool{}
	for i, e := range elements {
		switch e.kind {
		case call:
			// Some services reuse an id after its call was answered.
			if _, waits := open[e.id]; waits {
				return broken("duplicate-call", e.id, "two calls have this id").at(e)
			}
			open[e.id] = i
		case result:
			_, waits := open[e.id]
			switch {
			case !waits && closed[e.id]:
				return broken("duplicate-result", e.id, "a call has a second output").at(e)
			case !waits && !o.Chained:
				return broken("orphan-result", e.id, "an output of a call that was not made before it").at(e)
			}
			delete(open, e.id)
			closed[e.id] = true
		case reasoning:
			if v := ledTo(o, elements[i:]); v != nil {
				return v
			}
		}
	}
	first := len(elements)
	for _, i := range open {
		first = min(first, i)
	}
	if first < len(elements) {
		return broken("orphan-call", elements[first].id, "a call has no output").at(elements[first])
	}
	return nil
}

// ledTo checks reasoning, the first of the elements: it must be encrypted if the
// service does not store answers, and an item of the model must follow it.
func ledTo(o Options, elements []element) *Violation {
	e := elements[0]
	if !o.Stored && !e.mark {
		return broken("sealed-reasoning", "", "reasoning without its content, which the service has not kept").at(e)
	}
	for _, next := range elements[1:] {
		if next.kind != reasoning {
			if !next.mark {
				break
			}
			return nil
		}
	}
	return broken("reasoning-pair", "", "reasoning is not followed by what it led to").at(e)
}
