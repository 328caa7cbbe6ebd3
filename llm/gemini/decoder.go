package gemini

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// decoder builds a response from the chunks of a stream, or from one whole answer,
// which has the form of a chunk.
type decoder struct {
	// emit does nothing if there is no listener.
	emit  func(llm.Delta)
	names *wire.Names

	id, model string
	parts     []part
	finish    string
	blocked   string
	// said is the service's explanation of finish or blocked, for people.
	said     string
	usage    llm.Usage
	reported bool
	// made counts the values in arguments that arrive in pieces.
	made    int
	scratch []byte
}

// part is one part of an answer in progress.
type part struct {
	kind      partKind
	text      strings.Builder
	signature string
	// id, name and arguments of a call.
	id, name string
	args     json.RawMessage
	partial  *partialArgs
	raw      json.RawMessage
	media    llm.Media
}

type partKind uint8

const (
	textPart partKind = iota + 1
	thoughtPart
	callPart
	mediaPart
	itemPart
)

func newDecoder(names *wire.Names, emit func(llm.Delta)) *decoder {
	if emit == nil {
		emit = func(llm.Delta) {}
	}
	return &decoder{emit: emit, names: names}
}

// Events decodes a stream. More may follow a finish reason, and the last one counts.
// The stream is complete when the bytes end after a finish reason.
func (d *decoder) Events(events *wire.EventReader) error {
	for {
		_, data, err := events.Next()
		if errors.Is(err, io.EOF) && d.ended() {
			return nil
		}
		if err != nil {
			return err
		}
		if err := d.chunk(data); err != nil {
			return err
		}
	}
}

// DecodeBody decodes an answer that came in one piece, and emits its texts once each.
func (d *decoder) DecodeBody(body []byte) error {
	emit := d.emit
	d.emit = func(llm.Delta) {}
	err := d.chunk(body)
	switch {
	case err != nil || d.ended():
	case wire.Member(body, "candidates") == nil && !d.reported:
		err = wire.Failed(body, classify) // no answer, so it says what is wrong
	default:
		err = wire.ErrSyntax
	}
	wire.EmitResponse(d.Response(err == nil), emit)
	return err
}

// ended reports whether the answer is complete: no call is open, and no code lacks the
// result that Google must add.
func (d *decoder) ended() bool {
	if n := len(d.parts); n > 0 && d.parts[n-1].kind == itemPart && itemType(d.parts[n-1].raw) == "executableCode" {
		return false
	}
	for i := range d.parts {
		if d.parts[i].partial != nil && d.parts[i].partial.open {
			return false
		}
	}
	return d.finish != "" || d.blocked != ""
}

func (d *decoder) chunk(data []byte) error {
	m := wire.ScanObject(data)
	for m.Next() {
		v := m.Value()
		switch string(m.Key()) {
		case "candidates":
			if err := d.candidates(v); err != nil {
				return err
			}
		case "promptFeedback":
			d.feedback(v)
		case "usageMetadata":
			d.readUsage(v)
		case "modelVersion":
			d.model = wire.Text(v)
		case "responseId":
			d.id = wire.Text(v)
		case "error":
			if string(v) != "null" {
				return wire.Failed(data, classify)
			}
		}
	}
	return m.Err()
}

// feedback records why the prompt was not answered.
func (d *decoder) feedback(data []byte) {
	for m := wire.ScanObject(data); m.Next(); {
		switch string(m.Key()) {
		case "blockReason":
			d.blocked = wire.Text(m.Value())
		case "blockReasonMessage":
			d.said = wire.Text(m.Value())
		}
	}
}

func (d *decoder) candidates(data []byte) error {
	list := wire.ScanArray(data)
	for n := 0; list.Next(); n++ {
		if n > 0 {
			continue
		}
		finish, said := "", ""
		m := wire.ScanObject(list.Value())
		for m.Next() {
			switch string(m.Key()) {
			case "content":
				if err := d.content(m.Value()); err != nil {
					return err
				}
			case "finishReason":
				finish = wire.Text(m.Value())
			case "finishMessage":
				said = wire.Text(m.Value())
			}
		}
		if m.Err() != nil {
			return m.Err()
		}
		if finish != "" && finish != "FINISH_REASON_UNSPECIFIED" {
			d.finish, d.said = finish, said
		}
	}
	return list.Err()
}

func (d *decoder) content(data []byte) error {
	m := wire.ScanObject(data)
	for m.Next() {
		if string(m.Key()) != "parts" {
			continue
		}
		list := wire.ScanArray(m.Value())
		for list.Next() {
			// Content after a finish reason continues the answer.
			d.finish = ""
			if err := d.part(list.Value()); err != nil {
				return err
			}
		}
		if list.Err() != nil {
			return list.Err()
		}
	}
	return m.Err()
}

func (d *decoder) part(data []byte) error {
	var text, call, media []byte
	signature, thought, other := "", false, false
	m := wire.ScanObject(data)
	for m.Next() {
		switch string(m.Key()) {
		case "text":
			text = m.Value()
		case "thought":
			thought = wire.True(m.Value())
		case "thoughtSignature":
			signature = wire.Text(m.Value())
		case "functionCall":
			call = m.Value()
		case "inlineData":
			media = m.Value()
		default:
			other = true
		}
	}
	switch {
	case m.Err() != nil:
		return m.Err()
	case call != nil:
		return d.call(call, signature)
	case media != nil:
		d.media(media)
	case text != nil:
		d.text(text, thought, signature)
	case other || signature != "":
		d.parts = append(d.parts, part{kind: itemPart, raw: append(json.RawMessage(nil), data...)})
	}
	return nil
}

// text appends to the open text, or starts one. A signed text, which may be empty, is a
// separate part: Google does not allow merging a part with a signature and one without.
func (d *decoder) text(v []byte, thought bool, signature string) {
	kind, delta := textPart, llm.DeltaText
	if thought {
		kind, delta = thoughtPart, llm.DeltaReasoning
	}
	d.scratch, _ = wire.AppendText(d.scratch[:0], v)
	if len(d.scratch) == 0 && signature == "" {
		return
	}
	last := len(d.parts) - 1
	if last < 0 || d.parts[last].kind != kind || d.parts[last].signature != signature || signature != "" {
		d.parts = append(d.parts, part{kind: kind})
		last++
	}
	p := &d.parts[last]
	p.signature = signature
	if len(d.scratch) == 0 {
		return
	}
	from := p.text.Len()
	p.text.Write(d.scratch)
	d.emit(llm.Delta{Kind: delta, Index: last, Text: p.text.String()[from:]})
}

func (d *decoder) media(data []byte) {
	p := part{kind: mediaPart}
	for m := wire.ScanObject(data); m.Next(); {
		switch string(m.Key()) {
		case "mimeType":
			p.media.MediaType = wire.Text(m.Value())
		case "data":
			p.media.Data, _ = base64.StdEncoding.DecodeString(wire.Text(m.Value()))
		}
	}
	d.parts = append(d.parts, p)
}

// call applies a call, whole or in pieces.
func (d *decoder) call(data []byte, signature string) error {
	p := part{kind: callPart, signature: signature}
	var pieces []byte
	goesOn := false
	m := wire.ScanObject(data)
	for m.Next() {
		switch string(m.Key()) {
		case "id":
			p.id = wire.Text(m.Value())
		case "name":
			p.name = wire.Text(m.Value())
		case "args":
			p.args = append(json.RawMessage(nil), m.Value()...)
		case "partialArgs":
			pieces = m.Value()
		case "willContinue":
			goesOn = wire.True(m.Value())
		}
	}
	if m.Err() != nil {
		return m.Err()
	}
	index := len(d.parts) - 1
	if index < 0 || d.parts[index].partial == nil || !d.parts[index].partial.open {
		if p.id == "" && p.name == "" && len(p.args) == 0 && pieces == nil && !goesOn {
			return nil // it ends a call that has ended, or does not exist
		}
		d.parts = append(d.parts, p)
		index++
		d.emit(llm.Delta{Kind: llm.DeltaToolCall, Index: index, Tool: d.names.Local(p.name), Text: string(p.args)})
	}
	open := &d.parts[index]
	if (goesOn || pieces != nil) && open.partial == nil {
		open.partial = &partialArgs{made: &d.made}
	}
	if open.partial == nil {
		return nil
	}
	open.partial.open = goesOn
	return open.partial.add(pieces)
}
