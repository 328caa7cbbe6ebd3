package anthropic

import (
	"fmt"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// decoder folds the events of an answer into a response.
type decoder struct {
	names *wire.Names
	// emit may be nil.
	emit func(llm.Delta)
	// cap is the requested output limit.
	cap int64

	resp   llm.Response
	usage  usage
	blocks []*block
	// places finds blocks by their numbers if there are several.
	places map[int64]*block
	// unfinished counts the open blocks that are useless while incomplete.
	unfinished int
	// content holds complete blocks that are not processed yet.
	content []byte
	parts   int
	scratch []byte
	// started and stopped report that the start and the end of the message have
	// arrived.
	started, stopped bool
}

// find returns a block by its number, which is nearly always the last one.
func (d *decoder) find(index int64) *block {
	if n := len(d.blocks); n > 0 && d.blocks[n-1].index == index {
		return d.blocks[n-1]
	}
	return d.places[index]
}

// keep adds a block.
func (d *decoder) keep(b *block) {
	if n := len(d.blocks); n > 0 {
		if d.places == nil {
			d.places = map[int64]*block{}
		}
		last := d.blocks[n-1]
		d.places[last.index] = last
	}
	d.blocks = append(d.blocks, b)
}

// startBlock begins a block. Calls may be interleaved, as relays of other protocols
// send them. Prose gets its place only if no open block may still be omitted, and ends
// when the next block begins.
func (d *decoder) startBlock(index int64, object []byte) error {
	if d.find(index) != nil {
		return fmt.Errorf("%w: block %d begins twice", errMalformed, index)
	}
	b, err := newBlock(index, object)
	if err != nil {
		return fmt.Errorf("%w: block %d: %w", errMalformed, index, err)
	}
	if b.prose() && d.unfinished > 0 {
		return fmt.Errorf("%w: block %d begins inside a call", errMalformed, index)
	}
	if n := len(d.blocks); n > 0 && d.blocks[n-1].prose() {
		d.blocks[n-1].open = false
	}
	d.keep(b)
	if !b.prose() {
		d.unfinished++
		d.show(b)
	}
	return d.add(b, b.first)
}

// show adds a block to the parts. A block of prose is added with its first character,
// because an empty block is no part.
func (d *decoder) show(b *block) {
	if b.part < 0 {
		b.part = d.parts
		d.parts++
	}
}

func (d *decoder) delta(index int64, object []byte) error {
	b := d.find(index)
	if b == nil || !b.open {
		return fmt.Errorf("%w: a delta of block %d, which is not open", errMalformed, index)
	}
	var kind, value []byte
	m := wire.ScanObject(object)
	for m.Next() {
		switch string(m.Key()) {
		case "type":
			kind = m.Value()
		case "text", "thinking", "partial_json", "signature", "citation":
			value = m.Value()
		}
	}
	if m.Err() != nil {
		return fmt.Errorf("%w: %w", errMalformed, m.Err())
	}
	switch string(kind) {
	case `"text_delta"`, `"thinking_delta"`, `"input_json_delta"`:
		return d.add(b, value)
	case `"signature_delta"`:
		d.show(b)
		return b.sign(value)
	case `"citations_delta"`:
		b.cite(value)
		return nil
	}
	return b.amend(object)
}

// add appends a JSON string to a block's text and shows it. The delta is a substring of
// the stored text, so it is not copied.
func (d *decoder) add(b *block, value []byte) error {
	text, ok := wire.AppendText(d.scratch[:0], value)
	d.scratch = text
	if !ok {
		return fmt.Errorf("%w: block %d: bad escape", errMalformed, b.index)
	}
	if len(text) == 0 {
		return nil
	}
	d.show(b)
	start := b.text.Len()
	b.text.Write(text)
	if d.emit != nil && b.kind != kindItem {
		d.emit(d.deltaOf(b, b.text.String()[start:], start == 0))
	}
	return nil
}

func (d *decoder) deltaOf(b *block, text string, first bool) llm.Delta {
	delta := llm.Delta{Kind: llm.DeltaText, Index: b.part, Text: text}
	switch b.kind {
	case kindThinking:
		delta.Kind = llm.DeltaReasoning
	case kindToolUse:
		delta.Kind = llm.DeltaToolCall
		if first {
			delta.Tool = d.names.Local(b.name)
		}
	}
	return delta
}

// stopBlock ends a block. It shows a call without arguments, because no delta did.
func (d *decoder) stopBlock(index int64) error {
	b := d.find(index)
	if b != nil && b.prose() {
		b.open = false
		return nil
	}
	if b == nil || !b.open {
		return fmt.Errorf("%w: the end of block %d, which is not open", errMalformed, index)
	}
	if err := b.settle(); err != nil {
		return err
	}
	b.open = false
	d.unfinished--
	if b.kind == kindToolUse && b.text.Len() == 0 {
		b.text.Write(b.input)
		if b.text.Len() == 0 {
			b.text.WriteString("{}")
		}
		if d.emit != nil {
			d.emit(d.deltaOf(b, b.text.String(), true))
		}
	}
	return nil
}

// Begun implements [wire.Answer].
func (d *decoder) Begun() bool { return len(d.blocks) > 0 || len(d.content) > len("[]") }

// Response returns the complete answer, or the usable rest of one that broke: its
// prose, and its complete calls and items. The usage of a broken answer is at best the
// usage in its head.
func (d *decoder) Response(complete bool) *llm.Response {
	d.collect()
	d.resp.Usage = d.usage.neutral()
	d.resp.Usage.Estimated = !complete || !d.usage.reported
	if !complete {
		if d.resp.RawFinish == "" && len(d.blocks) > 0 {
			d.resp.Usage.Output = 0 // the head does not count what came after it
		}
		d.resp.RawFinish = ""
		return &d.resp
	}
	d.resp.Finish = d.finish()
	return &d.resp
}

func (d *decoder) collect() {
	d.resp.Parts = make(llm.Parts, 0, d.parts)
	for _, b := range d.blocks {
		if b.part < 0 || b.open && !b.prose() {
			continue
		}
		d.resp.Parts = append(d.resp.Parts, b.toPart(d.names))
	}
}

// finish returns the neutral finish reason. It is ToolUse only if there are calls,
// whatever the service reports; and an answer that used up its output limit was
// truncated, whatever a compatible server reports.
func (d *decoder) finish() llm.Finish {
	switch d.resp.RawFinish {
	case "max_tokens":
		return llm.FinishLength
	case "model_context_window_exceeded":
		return llm.FinishContext
	case "pause_turn", "compaction":
		return llm.FinishPause
	case "refusal":
		return llm.FinishRefusal
	}
	switch {
	case len(d.resp.Parts.ToolCalls()) == 0:
		return llm.FinishEnd
	case d.cap > 0 && d.usage.output >= d.cap:
		return llm.FinishLength
	}
	return llm.FinishTool
}
