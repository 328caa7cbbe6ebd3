package flow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
)

// itemsEnd is the result of a loop over items: the items and their passes.
type itemsEnd struct {
	items  []json.RawMessage
	passes []passEnd
}

// ofItem completes the end of a pass over an item. A pass whose steps were all skipped
// counts as skipped.
func (end *passEnd) ofItem(s *scope, edition int) {
	if edition > 0 && !slices.ContainsFunc(s.steps, func(n *node) bool { return n.status != event.StepStatusSkipped }) {
		end.status = event.StepStatusSkipped
	}
	lasts := s.lasts()
	end.plain = len(end.result) == 0 || len(lasts) == 1 && lasts[0].step().Command != nil && !json.Valid([]byte(end.content))
}

// value returns the pass's result, or its content if it has no result, or null if it
// did not complete.
func (end *passEnd) value() json.RawMessage {
	switch {
	case end.status != event.StepStatusCompleted:
		return json.RawMessage("null")
	case end.plain:
		raw, _ := json.Marshal(end.content)
		return raw
	}
	return end.result
}

// results returns the values of all passes as a JSON array.
func (e *itemsEnd) results() json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('[')
	for i := range e.passes {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(e.passes[i].value())
	}
	b.WriteByte(']')
	return b.Bytes()
}

// section returns the loop's section in the tasks of later steps: the results of all
// passes in the order of the items. One fence encloses the section, so that no item can
// end it.
func (e *itemsEnd) section() string {
	var b strings.Builder
	for i := range e.passes {
		end := &e.passes[i]
		if i > 0 {
			b.WriteString("\n\n")
		}
		fmt.Fprintf(&b, "### Item %d: %s", i, e.items[i])
		switch {
		case end.status == "":
			b.WriteString("\nIts status is cancelled.")
		case end.status != event.StepStatusCompleted:
			b.WriteString("\nIts status is " + string(end.status) + ".")
		}
		if end.error != nil {
			b.WriteString("\n" + end.error.Message)
		}
		if len(end.result) > 0 && !end.plain && string(end.result) != end.content {
			b.WriteString("\nResult: " + string(end.result))
		}
		if end.content != "" {
			b.WriteString("\n" + end.content)
		}
	}
	return b.String()
}
