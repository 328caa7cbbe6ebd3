package openai

import (
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// answer reads one answer, whichever form it comes in.
type answer struct {
	offered offered
	// emit is nil where nobody looks on.
	emit func(llm.Delta)
	// limit is the output that was asked for at most, 0 where none was.
	limit int64
	items []*item
	// shown counts the parts that have a place in the answer so far.
	shown   int
	event   event
	scratch []byte
	result  result
	// ended is the answer once it has come to its end.
	ended *llm.Response
}

// Whole reads a response object.
func (a *answer) Whole(raw []byte) error {
	if err := a.result.read(raw); err != nil {
		return err
	}
	if a.result.status == "" {
		a.result.status = "completed"
		if a.result.output == nil || a.result.failure != nil {
			a.result.status = "failed"
		}
		if a.result.output == nil && a.result.failure == nil {
			a.result.failure = raw // no response, so it says what is wrong
		}
	}
	return a.conclude()
}

// conclude turns a response object and the items that were streamed before it
// into the answer. Some services leave the items out of the object, others do
// not stream them: whichever has more is taken.
func (a *answer) conclude() error {
	if err := a.takeOutput(); err != nil {
		return err
	}
	var parts llm.Parts
	var refused, cut bool
	for _, it := range a.items {
		it.assemble()
		parts = append(parts, it.settled.parts...)
		refused = refused || it.settled.refusal
		cut = cut || it.settled.cut
	}
	// An answer that used up its limit was cut, whatever its status says (F8).
	cut = cut || a.limit > 0 && a.result.usage.Output >= a.limit && hasCalls(parts)
	finish, raw, ok := a.result.finish(parts, refused, cut)
	if !ok {
		return a.failure(a.result.failure)
	}
	a.ended = a.response(parts)
	a.ended.Finish, a.ended.RawFinish = finish, raw
	return nil
}

func (a *answer) takeOutput() error {
	var given [][]byte
	list := wire.ScanArray(a.result.output)
	if len(a.result.output) == 0 {
		return nil
	}
	for list.Next() {
		given = append(given, list.Value())
	}
	if err := list.Err(); err != nil {
		return err
	}
	if len(given) < len(a.items) {
		return nil
	}
	for i, raw := range given {
		if i < len(a.items) && a.items[i].done {
			continue
		}
		o, err := readOutput(raw)
		if err != nil {
			return err
		}
		if i == len(a.items) {
			a.open(int64(i), o.as())
		}
		a.close(a.items[i], &o)
	}
	return nil
}

// Response is the answer, or what was received of one that did not come to its
// end.
func (a *answer) Response(complete bool) *llm.Response {
	if complete {
		return a.ended
	}
	var parts llm.Parts
	for _, it := range a.items {
		parts = append(parts, it.received()...)
	}
	resp := a.response(parts)
	resp.Finish = llm.FinishFailed
	return resp
}

// response is the answer so far, without its end.
func (a *answer) response(parts llm.Parts) *llm.Response {
	resp := &llm.Response{Parts: parts, Usage: a.result.usage, Model: a.result.model, ID: a.result.id}
	resp.Usage.Estimated = !a.result.hasUsage
	return resp
}

// failure is the error of an answer that the service gave up on.
func (a *answer) failure(said []byte) error {
	e := &llm.Error{}
	describe(e, said)
	if e.Message == "" {
		e.Message = "the answer is " + a.result.status + ", and the service does not say why"
	}
	return e
}
