package conform

import (
	"slices"

	"github.com/pawlrun/pawl/llm/internal/wire"
)

// readMessage reads a message of the Messages API.
func readMessage(r *Items, raw []byte) *Violation {
	role, content := "", []byte(nil)
	for m := wire.ScanObject(raw); m.Next(); {
		switch string(m.Key()) {
		case "role":
			role = wire.Text(m.Value())
		case "content":
			content = m.Value()
		}
	}
	var fault *Violation
	if role != "user" && role != "assistant" && role != "system" {
		fault = broken("role", "", "nobody speaks as %q", role)
	}
	switch {
	case isText(content):
		r.elements = append(r.elements, element{role: role, kind: text, mark: blank(content)})
	case !given(content):
		r.elements = append(r.elements, element{role: role, kind: text, mark: true})
	case isList(content):
		for b := wire.ScanArray(content); b.Next(); {
			if f := readBlock(r, role, b.Value()); f != nil && fault == nil {
				fault = f
			}
		}
	}
	return fault
}

func readBlock(r *Items, role string, raw []byte) *Violation {
	var b struct{ kind, id, resultOf, name, signature string }
	var body, input []byte
	for m := wire.ScanObject(raw); m.Next(); {
		switch string(m.Key()) {
		case "type":
			b.kind = wire.Text(m.Value())
		case "id":
			b.id = wire.Text(m.Value())
		case "tool_use_id":
			b.resultOf = wire.Text(m.Value())
		case "name":
			b.name = wire.Text(m.Value())
		case "signature", "data":
			b.signature = wire.Text(m.Value())
		case "text":
			body = m.Value()
		case "input":
			input = m.Value()
		}
	}
	add := func(e element) { e.role = role; r.elements = append(r.elements, e) }
	switch b.kind {
	case "text":
		add(element{kind: text, mark: blank(body)})
		if blank(body) {
			return broken("empty-text", "", "a text block is blank")
		}
	case "thinking", "redacted_thinking":
		add(element{kind: reasoning})
		if b.signature == "" {
			return broken("thinking-signature", "", "a %s block has no signature", b.kind)
		}
		if role != "assistant" {
			return broken("role", "", "a %s's message holds thinking", role)
		}
	case "tool_use":
		add(element{kind: call, id: b.id, name: b.name})
		switch {
		case role != "assistant":
			return broken("role", b.id, "a %s's message holds a call", role)
		case !idLike(b.id, 1<<10, ""):
			return broken("call-id", b.id, "the id of a call has other characters than letters, digits, _ and -")
		case !idLike(b.name, 200, ""):
			return broken("tool-name", b.id, "%q is no name of a tool", b.name)
		case !isObject(input):
			return broken("call-input", b.id, "the input of a call is no object")
		}
	case "tool_result":
		add(element{kind: result, id: b.resultOf})
		if role != "user" {
			return broken("role", b.resultOf, "an %s's message holds a result", role)
		}
	default:
		add(element{kind: other})
	}
	return nil
}

// checkMessages checks the order of calls and results. The service treats adjacent
// messages of one role as one turn.
func checkMessages(o Options, elements []element) *Violation {
	if !o.Continued && len(elements) > 0 && elements[0].role == "assistant" {
		return broken("first-role", "", "the conversation begins with the assistant").at(elements[0])
	}
	var open []element
	for from := 0; from < len(elements); {
		to := from
		for to < len(elements) && elements[to].role == elements[from].role {
			to++
		}
		turn, last := elements[from:to], to == len(elements)
		if v := emptyTurn(turn, last); v != nil {
			return v
		}
		if turn[0].role == "assistant" {
			var v *Violation
			if open, v = callsOf(turn); v != nil {
				return v
			}
			from = to
			continue
		}
		if v := answersInFront(turn, open); v != nil {
			return v
		}
		open, from = nil, to
	}
	if len(open) > 0 {
		return broken("orphan-call", open[0].id, "a call has no result in the next message").at(open[0])
	}
	return nil
}

func emptyTurn(turn []element, last bool) *Violation {
	for _, e := range turn {
		if e.kind != text || !e.mark {
			return nil
		}
	}
	if last && turn[0].role == "assistant" {
		return nil
	}
	return broken("empty-message", "", "a message of the %s has no content", turn[0].role).at(turn[0])
}

func callsOf(turn []element) ([]element, *Violation) {
	var calls []element
	for _, e := range turn {
		if e.kind != call {
			continue
		}
		if find(calls, e.id) >= 0 {
			return nil, broken("duplicate-call", e.id, "two calls of a message have this id").at(e)
		}
		calls = append(calls, e)
	}
	if last := turn[len(turn)-1]; last.kind == reasoning {
		return nil, broken("thinking-last", "", "a message of the assistant ends with thinking").at(last)
	}
	return calls, nil
}

// answersInFront checks that a turn of the user begins with one result for each open
// call.
func answersInFront(turn []element, open []element) *Violation {
	var answered []element
	other := false
	for _, e := range turn {
		switch {
		case e.kind != result:
			other = true
		case find(answered, e.id) >= 0:
			return broken("duplicate-result", e.id, "a call has a second result").at(e)
		case find(open, e.id) < 0:
			return broken("orphan-result", e.id, "a result of a call that the message before did not make").at(e)
		case other:
			return broken("results-first", e.id, "a result stands behind other content").at(e)
		default:
			answered = append(answered, e)
		}
	}
	for _, c := range open {
		if find(answered, c.id) < 0 {
			return broken("orphan-call", c.id, "a call has no result in the next message").at(c)
		}
	}
	return nil
}

// find returns the index of the element with an id, or -1.
func find(elements []element, id string) int {
	return slices.IndexFunc(elements, func(e element) bool { return e.id == id })
}
