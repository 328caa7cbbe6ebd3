package openai

import (
	"errors"
	"strings"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// event is one event of a stream. Its fields are slices of the stream's buffer and
// still encoded.
type event struct {
	kind     []byte
	at       int64
	piece    int64
	delta    []byte
	item     []byte
	response []byte
	failure  []byte
	whole    []byte
}

func (e *event) read(data []byte) error {
	*e = event{whole: data}
	m := wire.ScanObject(data)
	for m.Next() {
		switch v := m.Value(); string(m.Key()) {
		case "type":
			e.kind = v
		case "output_index":
			e.at = wire.Int(v)
		case "content_index", "summary_index":
			e.piece = wire.Int(v)
		case "delta":
			e.delta = v
		case "item":
			e.item = v
		case "response":
			e.response = v
		case "error":
			if string(v) != "null" {
				e.failure = v
			}
		}
	}
	return m.Err()
}

// name returns the event's type, from the data if it contains one: some services omit
// the SSE field.
func (e *event) name(field []byte) []byte {
	if len(e.kind) > 2 {
		return e.kind[1 : len(e.kind)-1]
	}
	return field
}

// Events decodes events until one ends the answer.
func (d *decoder) Events(events *wire.EventReader) error {
	for {
		field, data, err := events.Next()
		if err != nil {
			return err
		}
		if string(data) == "[DONE]" {
			continue
		}
		if err := d.event.read(data); err != nil {
			return err
		}
		switch ended, err := d.take(field); {
		case errors.Is(err, errFailed):
			return d.failure(d.event.failure)
		case err != nil:
			return err
		case ended:
			return d.conclude()
		}
	}
}

// errFailed is returned for an event that reports a failure of the service.
var errFailed = errors.New("openai: the service reports a failure")

// take applies the current event and reports whether it was the last one.
func (d *decoder) take(field []byte) (ended bool, err error) {
	e := &d.event
	switch name := e.name(field); string(name) {
	case "response.output_text.delta", "response.refusal.delta":
		d.grow(kindMessage, llm.DeltaText)
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		d.grow(kindReasoning, llm.DeltaReasoning)
	case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta":
		d.grow(kindCall, llm.DeltaToolCall)
	case "response.output_item.added":
		return false, d.added()
	case "response.output_item.done":
		return false, d.itemDone()
	case "response.created":
		return false, d.result.read(e.response)
	case "response.completed", "response.done", "response.incomplete", "response.failed", "response.cancelled":
		return true, d.last(strings.TrimPrefix(string(name), "response."))
	case "error":
		if e.failure == nil {
			e.failure = e.whole
		}
		return false, errFailed
	case "":
		if e.failure != nil {
			return false, errFailed
		}
	}
	return false, nil
}

// last decodes the terminal event. Its name determines the status if the object's
// status is missing or outdated.
func (d *decoder) last(name string) error {
	d.result = result{id: d.result.id, model: d.result.model, usage: d.result.usage, hasUsage: d.result.hasUsage}
	if err := d.result.read(d.event.response); err != nil {
		return err
	}
	switch d.result.status {
	case "", "in_progress", "queued":
		d.result.status = name
		if name == "done" {
			d.result.status = "completed"
		}
	}
	return nil
}

func (d *decoder) added() error {
	o, err := readOutput(d.event.item)
	if err != nil {
		return err
	}
	it := d.open(d.event.at, o.as())
	it.callID = wire.Text(o.callID)
	if it.kind == kindCall {
		it.name = d.offered.nameOf(&o)
		it.strands[0].tool = it.name
	}
	return nil
}

func (d *decoder) itemDone() error {
	o, err := readOutput(d.event.item)
	if err != nil {
		return err
	}
	it := d.find(d.event.at)
	switch {
	case it == nil && d.finished[wire.Text(o.id)]:
		return nil
	case it == nil:
		it = d.open(d.event.at, o.as())
	}
	d.close(it, &o)
	return nil
}

// grow appends the event's delta to its item and emits it. The text of the delta is a
// slice of the received text, so it is not allocated.
func (d *decoder) grow(kind itemKind, as llm.DeltaKind) {
	e := &d.event
	it := d.find(e.at)
	if it == nil {
		it = d.open(e.at, kind)
	}
	text, ok := wire.AppendText(d.scratch[:0], e.delta)
	d.scratch = text
	if !ok || it.kind != kind {
		return
	}
	d.show(it.segment(d, e.piece), as, text, e.piece)
}

// show appends text to a segment and emits it.
func (d *decoder) show(s *segment, as llm.DeltaKind, text []byte, piece int64) {
	if len(text) == 0 {
		return
	}
	start := s.text.Len()
	if as == llm.DeltaReasoning && piece != s.piece && start > 0 {
		s.text.WriteString(thoughtBreak)
	}
	s.piece = piece
	s.text.Write(text)
	if d.emit == nil {
		return
	}
	delta := llm.Delta{Kind: as, Index: s.index, Text: s.text.String()[start:]}
	if start == 0 {
		delta.Tool = s.tool
	}
	d.emit(delta)
}
