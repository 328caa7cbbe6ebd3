package conform

import (
	"slices"
	"strings"

	"github.com/pawlrun/pawl/llm/internal/wire"
)

// readContent reads a content of generateContent.
func readContent(r *Items, raw []byte) *Violation {
	role, parts := "user", []byte(nil)
	for m := wire.ScanObject(raw); m.Next(); {
		switch string(m.Key()) {
		case "role":
			role = wire.Text(m.Value())
		case "parts":
			parts = m.Value()
		}
	}
	if role == "function" {
		role = "user"
	}
	var fault *Violation
	if role != "user" && role != "model" {
		fault = broken("role", "", "nobody speaks as %q", role)
	}
	if !given(parts) {
		r.elements = append(r.elements, element{role: role})
		return broken("empty-message", "", "a content has no parts")
	}
	if !isList(parts) {
		parts = []byte("[" + string(parts) + "]")
	}
	for p := wire.ScanArray(parts); p.Next(); {
		if f := readPart(r, role, p.Value()); f != nil && fault == nil {
			fault = f
		}
	}
	return fault
}

func readPart(r *Items, role string, raw []byte) *Violation {
	e := element{role: role}
	var callRaw, resultRaw []byte
	filled := false
	for m := wire.ScanObject(raw); m.Next(); {
		switch v := m.Value(); string(m.Key()) {
		case "thoughtSignature", "thought_signature":
			e.mark = given(v)
			filled = filled || e.mark
		case "functionCall", "function_call":
			e.kind, callRaw, filled = call, v, true
		case "functionResponse", "function_response":
			e.kind, resultRaw, filled = result, v, true
		case "text":
			filled = true
			if e.kind == other {
				e.kind = text
			}
		case "thought", "videoMetadata", "partMetadata":
		default:
			filled = true
		}
	}
	if e.kind == call {
		v := readFunction(&e, callRaw, "args")
		r.elements = append(r.elements, e)
		if v == nil && role != "model" {
			v = broken("role", e.id, "a content of the user holds a call")
		}
		return v
	}
	if e.kind == result {
		v := readFunction(&e, resultRaw, "response")
		r.elements = append(r.elements, e)
		if v == nil && role == "model" {
			v = broken("role", e.id, "a content of the model holds a result")
		}
		return v
	}
	r.elements = append(r.elements, e)
	if !filled {
		return broken("empty-part", "", "a part holds nothing")
	}
	return nil
}

// readFunction reads a call or a result; body is the member with its object.
func readFunction(e *element, raw []byte, body string) *Violation {
	var object []byte
	for m := wire.ScanObject(raw); m.Next(); {
		switch string(m.Key()) {
		case "id":
			e.id = wire.Text(m.Value())
		case "name":
			e.name = wire.Text(m.Value())
		case body:
			object = m.Value()
		}
	}
	switch {
	case !idLike(e.name, 128, ".:"):
		return broken("tool-name", e.id, "%q is no name of a function", e.name)
	case object != nil && string(object) != "null" && !isObject(object), object == nil && body == "response":
		return broken("call-"+body, e.id, "the %s of %s are no object", body, e.name)
	}
	return nil
}

// checkContents checks the order of calls and results: the next content answers all
// calls of a content.
func checkContents(o Options, elements []element) *Violation {
	if !o.Continued && len(elements) > 0 && elements[0].role == "model" {
		return broken("first-role", "", "the conversation begins with the model").at(elements[0])
	}
	var open []element
	for from := 0; from < len(elements); {
		to := from
		for to < len(elements) && elements[to].item == elements[from].item {
			to++
		}
		calls, results := ofKind(elements[from:to], call), ofKind(elements[from:to], result)
		if v := answered(open, results, elements[from]); v != nil {
			return v
		}
		open, from = calls, to
	}
	if len(open) > 0 {
		return broken("orphan-call", open[0].id, "a call of %s has no result in the next content", open[0].name).at(open[0])
	}
	return signed(o, elements)
}

func answered(open, results []element, at element) *Violation {
	switch {
	case len(results) > len(open):
		r := results[len(open)]
		return broken("orphan-result", r.id, "%d results stand behind %d calls", len(results), len(open)).at(r)
	case len(results) < len(open):
		c := open[len(results)]
		return broken("orphan-call", c.id, "%d calls have %d results in the next content", len(open), len(results)).at(at)
	}
	for _, c := range open {
		if !slices.ContainsFunc(results, func(r element) bool { return r.name == c.name }) {
			return broken("orphan-call", c.id, "no result in the next content is of %s", c.name).at(at)
		}
	}
	return nil
}

func ofKind(elements []element, k kind) []element {
	return slices.DeleteFunc(slices.Clone(elements), func(e element) bool { return e.kind != k })
}

// signed checks, for a model that thinks, that the first call in each step of the
// current turn is signed. It does not check earlier turns.
func signed(o Options, elements []element) *Violation {
	if !strings.HasPrefix(strings.TrimPrefix(o.Model, "models/"), "gemini-3") {
		return nil
	}
	from := 0
	for i, e := range elements {
		if e.role == "user" && e.kind != result {
			from = i
		}
	}
	last := -1
	for _, e := range elements[from:] {
		if e.kind != call || e.item == last {
			continue
		}
		if last = e.item; !e.mark {
			return broken("call-signature", e.id, "the first call of a step, of %s, has no thoughtSignature", e.name).at(e)
		}
	}
	return nil
}
