package openai

import (
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// decoder reads one answer, whichever form it comes in.
type decoder struct {
	offered offered
	// emit is nil without a listener.
	emit func(llm.Delta)
	// limit is the output that was asked for at most, 0 where none was.
	limit int64
	items []*item
	// begun are the items by their places, without those at the end of each that
	// are done; finished are the ids of those that are, so that one which is
	// reported twice counts once.
	begun    map[int64][]*item
	finished map[string]bool
	// shown counts the parts that have a place in the answer so far.
	shown   int
	event   event
	scratch []byte
	result  result
	// ended is the answer once it has come to its end.
	ended *llm.Response
}

// DecodeBody reads a response object.
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
			d.result.failure = raw // no response, so it says what is wrong
		}
	}
	return d.conclude()
}

// conclude turns a response object and the items that were streamed before it
// into the answer. Some services leave the items out of the object, others do
// not stream them: whichever has more is taken.
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
	// An answer that used up its limit was cut, whatever its status says.
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

// Response is the answer, or what was received of one that did not come to its
// end.
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

// response is the answer so far, without its end.
func (d *decoder) response(parts llm.Parts) *llm.Response {
	resp := &llm.Response{Parts: parts, Usage: d.result.usage, Model: d.result.model, ID: d.result.id}
	resp.Usage.Estimated = !d.result.hasUsage
	return resp
}

// failure is the error of an answer that the service gave up on.
func (d *decoder) failure(said []byte) error {
	e := &llm.Error{}
	describe(e, said)
	wire.Refine(e, said)
	if e.Message == "" {
		e.Message = "the answer is " + d.result.status + ", and the service does not say why"
	}
	return e
}
