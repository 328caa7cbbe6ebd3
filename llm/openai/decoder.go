package openai

import (
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// decoder decodes one answer, streamed or whole.
type decoder struct {
	offered offered
	// emit is nil if there is no listener.
	emit func(llm.Delta)
	// limit is the requested output limit, 0 for none.
	limit int64
	items []*item
	// begun holds the items by their places, without the leading ones that are done.
	// finished holds the ids of those that are done, so that an item that is reported
	// twice counts once.
	begun    map[int64][]*item
	finished map[string]bool
	// shown counts the parts that have a place in the answer.
	shown   int
	event   event
	scratch []byte
	result  result
	// ended is the complete answer, nil before that.
	ended *llm.Response
}

// DecodeBody decodes a response object.
func (d *decoder) DecodeBody(raw []byte) error {
	if err := d.result.read(raw); err != nil {
		return err
	}
	if d.result.status == "" {
		d.result.status = "completed"
		if d.result.output == nil || d.result.failure != nil {
			d.result.status = "failed"
		}
		if d.result.output == nil && d.result.failure == nil {
			d.result.failure = raw // not a response but an error
		}
	}
	return d.conclude()
}

// conclude builds the answer from a response object and the items streamed before it.
// Some services omit the items from the object, others do not stream them; the larger
// set is used.
func (d *decoder) conclude() error {
	if err := d.takeOutput(); err != nil {
		return err
	}
	var parts llm.Parts
	var refused, cut bool
	for _, it := range d.items {
		it.assemble()
		parts = append(parts, it.settled.parts...)
		refused = refused || it.settled.refusal
		cut = cut || it.settled.cut
	}
	// An answer that used up its limit was truncated, whatever its status is.
	cut = cut || d.limit > 0 && d.result.usage.Output >= d.limit && len(parts.ToolCalls()) > 0
	finish, raw, ok := d.result.finish(parts, refused, cut)
	if !ok {
		return d.failure(d.result.failure)
	}
	d.ended = d.response(parts)
	d.ended.Finish, d.ended.RawFinish = finish, raw
	return nil
}

func (d *decoder) takeOutput() error {
	var given [][]byte
	list := wire.ScanArray(d.result.output)
	if len(d.result.output) == 0 {
		return nil
	}
	for list.Next() {
		given = append(given, list.Value())
	}
	if err := list.Err(); err != nil {
		return err
	}
	if len(given) < len(d.items) {
		return nil
	}
	for i, raw := range given {
		if i < len(d.items) && d.items[i].done {
			continue
		}
		o, err := readOutput(raw)
		if err != nil {
			return err
		}
		if i == len(d.items) {
			d.open(int64(i), o.as())
		}
		d.close(d.items[i], &o)
	}
	return nil
}

// Begun implements [wire.Answer].
func (d *decoder) Begun() bool { return len(d.items) > 0 }

// Response returns the answer, or the received part of an incomplete one.
func (d *decoder) Response(complete bool) *llm.Response {
	if complete {
		return d.ended
	}
	var parts llm.Parts
	for _, it := range d.items {
		parts = append(parts, it.received()...)
	}
	resp := d.response(parts)
	resp.Finish = llm.FinishFailed
	return resp
}

// response returns the answer so far, without its end.
func (d *decoder) response(parts llm.Parts) *llm.Response {
	resp := &llm.Response{Parts: parts, Usage: d.result.usage, Model: d.result.model, ID: d.result.id}
	resp.Usage.Estimated = !d.result.hasUsage
	return resp
}

// failure returns the error of an answer that the service aborted.
func (d *decoder) failure(said []byte) error {
	e := &llm.Error{}
	describe(e, said)
	wire.Refine(e, said)
	if e.Message == "" {
		e.Message = "the answer is " + d.result.status + ", and the service does not say why"
	}
	return e
}
