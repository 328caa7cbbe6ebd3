package lean

import (
	"encoding/json"
	"iter"
	"strconv"
)

// answer is what came of a stream. Its buffers are used again by the next one.
type answer struct {
	text  []byte
	calls []call
}

type call struct {
	id, name, args []byte
	result         string
}

// read takes in one chunk.
func (a *answer) read(chunk []byte, onText func(string)) {
	for choice := range elements(member(chunk, "choices")) {
		for name, value := range Members(member(choice, "delta")) {
			switch string(name) {
			case "content":
				before := len(a.text)
				if a.text = appendText(a.text, value); len(a.text) > before && onText != nil {
					onText(string(a.text[before:]))
				}
			case "tool_calls":
				for part := range elements(value) {
					a.readCall(part)
				}
			}
		}
	}
}

func (a *answer) readCall(part []byte) {
	i, _ := strconv.Atoi(string(member(part, "index")))
	for len(a.calls) <= i {
		if len(a.calls) == cap(a.calls) {
			a.calls = append(a.calls, call{})
			continue
		}
		a.calls = a.calls[:len(a.calls)+1]
		c := &a.calls[len(a.calls)-1]
		c.id, c.name, c.args = c.id[:0], c.name[:0], c.args[:0]
	}
	c := &a.calls[i]
	c.id = appendText(c.id, member(part, "id"))
	for name, value := range Members(member(part, "function")) {
		switch string(name) {
		case "name":
			c.name = appendText(c.name, value)
		case "arguments":
			c.args = appendText(c.args, value)
		}
	}
}

// appendTo appends the answer and the results of its calls to a request.
func (a *answer) appendTo(body []byte) []byte {
	body = append(quote(append(body, `,{"role":"assistant","content":`...), a.text), `,"tool_calls":[`...)
	for i, c := range a.calls {
		if i > 0 {
			body = append(body, ',')
		}
		body = quote(append(body, `{"id":`...), c.id)
		body = quote(append(body, `,"type":"function","function":{"name":`...), c.name)
		body = append(quote(append(body, `,"arguments":`...), c.args), "}}"...)
	}
	body = append(body, "]}"...)
	for _, c := range a.calls {
		body = quote(append(body, `,{"role":"tool","tool_call_id":`...), c.id)
		body = append(quote(append(body, `,"content":`...), c.result), '}')
	}
	return body
}

// quote appends a JSON string.
func quote[T string | []byte](to []byte, text T) []byte {
	to = append(to, '"')
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			to = append(to, '\\', c)
		case c < ' ':
			to = append(to, '\\', 'u', '0', '0', '0'+c>>4, "0123456789abcdef"[c&15])
		default:
			to = append(to, c)
		}
	}
	return append(to, '"')
}

// appendText appends what a JSON string says, and nothing where there is none.
func appendText(to, value []byte) []byte {
	if len(value) < 2 || value[0] != '"' {
		return to
	}
	for _, c := range value {
		if c == '\\' {
			var text string
			_ = json.Unmarshal(value, &text)
			return append(to, text...)
		}
	}
	return append(to, value[1:len(value)-1]...)
}

// Text is what a JSON string says.
func Text(value []byte) string { return string(appendText(nil, value)) }

// member is the value of a member of an object, or nil.
func member(object []byte, name string) []byte {
	for n, value := range Members(object) {
		if string(n) == name {
			return value
		}
	}
	return nil
}

// Members are the names and values of an object, as they are written.
func Members(object []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		for at := open(object, '{'); at < len(object) && object[at] == '"'; {
			end := behind(object, at)
			value := space(object, space(object, end)+1)
			next := behind(object, value)
			if !yield(object[at+1:end-1], object[value:next]) {
				return
			}
			at = comma(object, next)
		}
	}
}

// elements are the values of an array.
func elements(array []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for at := open(array, '['); at < len(array) && array[at] != ']'; {
			next := behind(array, at)
			if !yield(array[at:next]) {
				return
			}
			at = comma(array, next)
		}
	}
}

// open is where the first thing in an object or array is; the end where there is none.
func open(text []byte, bracket byte) int {
	at := space(text, 0)
	if at == len(text) || text[at] != bracket {
		return len(text)
	}
	return space(text, at+1)
}

// comma is what follows behind a value and its comma.
func comma(text []byte, at int) int {
	if at = space(text, at); at < len(text) && text[at] == ',' {
		at = space(text, at+1)
	}
	return at
}

func space(text []byte, at int) int {
	for at < len(text) && (text[at] == ' ' || text[at] == '\n' || text[at] == '\t' || text[at] == '\r') {
		at++
	}
	return at
}

// behind is where the value that begins at a place has ended.
func behind(text []byte, at int) int {
	depth := 0
	for ; at < len(text); at++ {
		switch text[at] {
		case '"':
			for at++; at < len(text) && text[at] != '"'; at++ {
				if text[at] == '\\' {
					at++
				}
			}
		case '{', '[':
			depth++
			continue
		case '}', ']':
			depth--
		case ',', ':', ' ', '\n', '\t', '\r':
			continue
		default:
			for at+1 < len(text) && text[at+1] > ' ' && text[at+1] != ',' && text[at+1] != '}' && text[at+1] != ']' {
				at++
			}
		}
		if depth <= 0 {
			return min(at+1, len(text))
		}
	}
	return len(text)
}
