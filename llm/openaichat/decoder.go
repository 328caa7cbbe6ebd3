package openaichat

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// decoder builds a response from chunks, or from one whole answer.
type decoder struct {
	// emit does nothing if there is no listener.
	emit  func(llm.Delta)
	names *wire.Names

	id, model string
	text      piece
	thought   piece
	tags      tagged
	// named is the name of the member that contained the reasoning, if it must be sent
	// back under the same name.
	named    string
	echoes   bool
	refusal  piece
	details  []*detail
	detailAt map[detailPlace]*detail
	hosted   reported
	calls    []*call
	numbers  map[int64]*numbered
	order    []partKind
	finish   string
	usage    llm.Usage
	// pieces reports that deltas had content.
	pieces bool
	// counted reports that usage was requested, reported that it arrived.
	counted  bool
	reported bool
	scratch  []byte
	// learn receives whether the answer began after an opening tag.
	learn func(prefilled bool)
	// prefilled are the tags that an answer may close without opening them.
	prefilled *prefilledTags
}

// piece is a growing text; its deltas are slices of it.
type piece struct {
	b     strings.Builder
	index int
	open  bool
}

// partKind is the kind of a part of the answer, in order of appearance.
type partKind uint8

const (
	partThought partKind = iota + 1
	partText
	partRefusal
	partCall
)

func newDecoder(m *Model, req *llm.Request, emit func(llm.Delta)) *decoder {
	if emit == nil {
		emit = func(llm.Delta) {}
	}
	offered := len(req.Tools) > 0
	d := &decoder{
		emit: emit, names: m.names.For(req.Tools, maxToolName), numbers: map[int64]*numbered{}, counted: !m.profile.NoUsageOption,
		echoes: m.profile.Echo == EchoSame, hosted: reported{asked: len(m.profile.Hosted) > 0 && len(req.ProviderTools) > 0},
		learn: func(prefilled bool) { m.prefilled.Store(req.Model, prefilled) }, prefilled: m.tags,
	}
	if !m.profile.NoTags {
		prefilled, _ := m.prefilled.Load(req.Model)
		d.tags = tagged{stage: stageBegin, calls: offered && m.profile.TextCalls, offered: offered, presumed: prefilled == true}
	}
	return d
}

// Events decodes a stream. Some services never send [DONE]; their answer is complete
// once a finish reason and the requested usage have arrived, however the connection
// ends.
func (d *decoder) Events(events *wire.EventReader) error {
	err := d.events(events)
	d.endText()
	if err == nil && d.text.open {
		d.learn(d.tags.lone)
	}
	return err
}

func (d *decoder) events(events *wire.EventReader) error {
	for {
		_, data, err := events.Next()
		if err != nil && d.finish != "" && (d.reported || !d.counted && errors.Is(err, io.EOF)) {
			return nil
		}
		if err != nil {
			return err
		}
		data = bytes.TrimSpace(data)
		if string(data) == "[DONE]" {
			if d.finish == "" {
				return io.ErrUnexpectedEOF
			}
			return nil
		}
		if err := d.chunk(data); err != nil {
			return err
		}
	}
}

// DecodeBody decodes an answer that is not streamed. A success status with an error in
// the body is an error. It emits each text once, the reasoning first as in a stream.
func (d *decoder) DecodeBody(body []byte) error {
	emit := d.emit
	d.emit, d.tags.presumed = func(llm.Delta) {}, false
	err := d.chunk(bytes.TrimSpace(body))
	d.endText()
	switch {
	case err != nil || d.finish != "":
	case wire.Member(body, "choices") == nil && !d.reported:
		err = wire.Failed(body, classify) // no answer, so it says what is wrong
	default:
		err = wire.ErrSyntax
	}
	if i := slices.Index(d.order, partThought); i > 0 {
		d.order = slices.Insert(slices.Delete(d.order, i, i+1), 0, partThought)
	}
	wire.EmitResponse(d.Response(err == nil), emit)
	return err
}

// chunk applies one object of a stream, or a whole answer.
func (d *decoder) chunk(data []byte) error {
	m := wire.ScanNested(data)
	for m.Next() {
		if string(m.Key()) == "choices" {
			list := m.Array()
			if err := d.choices(&list); err != nil {
				return err
			}
			m.Pass(&list)
			continue
		}
		v := m.Value()
		if m.Err() != nil {
			break
		}
		switch string(m.Key()) {
		case "id":
			if d.id == "" {
				d.id = wire.Text(v)
			}
		case "model":
			if d.model == "" {
				d.model = wire.Text(v)
			}
		case "usage":
			d.readUsage(v)
		case "x_groq":
			if usage := wire.Member(v, "usage"); usage != nil && !d.reported {
				d.readUsage(usage)
			}
		case "error":
			if string(v) != "null" {
				return wire.Failed(data, classify)
			}
		case "object":
			if string(v) == `"error"` {
				return wire.Failed(data, classify)
			}
		}
	}
	return m.Err()
}

// choices applies the first choice. Perplexity sends the message so far with each
// delta, and an empty delta in a whole answer, so a message counts only if no delta had
// content.
func (d *decoder) choices(list *wire.Members) error {
	for n := 0; list.Next(); n++ {
		if n > 0 {
			continue
		}
		var message []byte
		m := list.Object()
		for m.Next() {
			switch string(m.Key()) {
			case "delta":
				delta := m.Object()
				if err := d.delta(&delta); err != nil {
					return err
				}
				m.Pass(&delta)
				d.pieces = d.pieces || d.tags.begun || len(d.order)+len(d.details) > 0
			case "message":
				message = m.Value()
			case "finish_reason":
				if f := wire.Text(m.Value()); f != "" {
					d.finish = f
				}
			case "usage":
				d.readUsage(m.Value())
			}
		}
		if m.Err() != nil {
			return m.Err()
		}
		list.Pass(&m)
		if message != nil && !d.pieces {
			if err := d.delta(wire.ScanNested(message)); err != nil {
				return err
			}
		}
	}
	return list.Err()
}

// delta applies a piece of the answer. Services with a second name for reasoning repeat
// its text under that name (vLLM 0.11.1 to 0.15).
func (d *decoder) delta(m *wire.Members) error {
	thought := d.thought.b.Len()
	for m.Next() {
		if string(m.Key()) == "tool_calls" {
			list := m.Array()
			if err := d.toolCalls(&list); err != nil {
				return err
			}
			m.Pass(&list)
			continue
		}
		v := m.Value()
		if m.Err() != nil {
			break
		}
		switch string(m.Key()) {
		case "content":
			d.content(v)
		case "reasoning_content", "reasoning":
			if d.tags.stage == stageOpen && d.tags.presumed && len(v) > len(`""`) && v[0] == '"' {
				d.endText() // the service separates the reasoning itself
				thought = d.thought.b.Len()
			}
			if d.thought.b.Len() == thought {
				d.grow(&d.thought, partThought, llm.DeltaReasoning, v)
				if d.named == "" && d.thought.open {
					d.named = string(m.Key())
				}
			}
		case "reasoning_details":
			d.readDetails(v)
		case "refusal":
			d.grow(&d.refusal, partRefusal, llm.DeltaText, v)
		case "annotations":
			d.hosted.annotate(v)
		case "executed_tools":
			d.hosted.execute(v)
		}
	}
	return m.Err()
}

// content applies a string, or a list of typed pieces from some services.
func (d *decoder) content(v []byte) {
	if len(v) == 0 || v[0] != '[' {
		d.appendQuotedText(v)
		return
	}
	for list := wire.ScanArray(v); list.Next(); {
		for m := wire.ScanObject(list.Value()); m.Next(); {
			switch string(m.Key()) {
			case "text":
				d.appendQuotedText(m.Value())
			case "thinking":
				for inner := wire.ScanArray(m.Value()); inner.Next(); {
					d.grow(&d.thought, partThought, llm.DeltaReasoning, wire.Member(inner.Value(), "text"))
				}
			}
		}
	}
}

// grow appends to a text and emits the addition. The delta is a slice of the growing
// text, so it is not allocated.
func (d *decoder) grow(p *piece, kind partKind, delta llm.DeltaKind, v []byte) {
	d.scratch, _ = wire.AppendText(d.scratch[:0], v)
	if from := d.begun(p, kind, len(d.scratch)); from >= 0 {
		p.b.Write(d.scratch)
		d.emit(llm.Delta{Kind: delta, Index: p.index, Text: p.b.String()[from:]})
	}
}

// growText is grow for decoded text.
func (d *decoder) growText(p *piece, kind partKind, delta llm.DeltaKind, text string) {
	if from := d.begun(p, kind, len(text)); from >= 0 {
		p.b.WriteString(text)
		d.emit(llm.Delta{Kind: delta, Index: p.index, Text: p.b.String()[from:]})
	}
}

// begun opens a part for n more bytes of its text, and returns the offset where they
// begin, or -1 if n is 0.
func (d *decoder) begun(p *piece, kind partKind, n int) int {
	if n == 0 {
		return -1
	}
	if !p.open {
		p.open, p.index = true, len(d.order)
		d.order = append(d.order, kind)
	}
	return p.b.Len()
}

// appendQuotedText applies a piece of the answer's text, usually after the decoder has stopped
// looking for tags.
func (d *decoder) appendQuotedText(v []byte) {
	if d.tags.stage == stageText {
		d.grow(&d.text, partText, llm.DeltaText, v)
		return
	}
	d.scratch, _ = wire.AppendText(d.scratch[:0], v)
	d.say(string(d.scratch))
}

// Begun implements [wire.Answer].
func (d *decoder) Begun() bool { return len(d.order) > 0 || len(d.details) > 0 }

// Response returns what has arrived. It omits the calls of an incomplete answer,
// because they cannot be trusted.
func (d *decoder) Response(complete bool) *llm.Response {
	r := &llm.Response{ID: d.id, Model: d.model, RawFinish: d.finish, Usage: d.usage}
	r.Usage.Estimated = !d.reported
	calls := d.calls
	for _, kind := range d.order {
		switch kind {
		case partThought:
			r.Parts = append(r.Parts, llm.Reasoning{Text: d.thought.b.String(), Signature: d.signature(), Raw: d.rawThought()})
		case partText:
			r.Parts = append(r.Parts, llm.Text{Text: d.text.b.String()})
		case partRefusal:
			r.Parts = append(r.Parts, llm.Text{Text: d.refusal.b.String()})
		case partCall:
			if !complete {
				continue
			}
			r.Parts = append(r.Parts, calls[0].asPart(d.names, len(d.calls)-len(calls)))
			calls = calls[1:]
		}
	}
	if !d.thought.open && len(d.details) > 0 {
		r.Parts = append(llm.Parts{llm.Reasoning{Signature: d.signature(), Raw: d.rawDetails()}}, r.Parts...)
	}
	if item, ok := d.hosted.item(); ok && (d.text.open || len(d.calls) > 0) {
		r.Parts = append(r.Parts, item)
	}
	r.Finish = d.neutralFinish()
	return r
}

func (d *decoder) neutralFinish() llm.Finish {
	switch d.finish {
	case "length", "max_tokens":
		return llm.FinishLength
	case "content_filter":
		return llm.FinishRefusal
	case "model_length":
		return llm.FinishContext
	case "error", "":
		return llm.FinishFailed
	}
	switch {
	case d.refusal.open:
		return llm.FinishRefusal
	case len(d.calls) > 0:
		return llm.FinishTool
	case d.tags.offered:
		if _, calls := textCalls(d.text.b.String()); calls {
			return llm.FinishMalformed // the model meant calls, so this is no answer
		}
	}
	return llm.FinishEnd
}
