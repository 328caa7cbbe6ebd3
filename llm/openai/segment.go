package openai

import (
	"strings"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// itemKind is an item's type in the service's words, as far as its deltas are
// read.
type itemKind string

const (
	kindMessage   itemKind = "message"
	kindReasoning itemKind = "reasoning"
	kindCall      itemKind = "function_call"
)

// item is an item of the answer while it is streamed.
type item struct {
	kind    itemKind
	callID  string
	name    string
	strands []*segment
	// pieces finds the strands by their content, once there are several.
	pieces  map[int64]*segment
	done    bool
	settled settled
}

// segment is the received text of one part of the answer.
type segment struct {
	// content is the part's number within its item, index that in the answer.
	content int64
	index   int
	// piece is the piece of a thought's summary that came last.
	piece int64
	tool  string
	text  strings.Builder
}

// find returns the open item at a place. Services that leave out places have
// all their items at the first, one after the other.
func (d *decoder) find(at int64) *item {
	begun := d.begun[at]
	for n := len(begun); n > 0; n-- {
		if it := begun[n-1]; !it.done {
			return it
		}
		begun = begun[:n-1]
		d.begun[at] = begun
	}
	return nil
}

// open begins an item. All but messages are one part, which has its place from
// now on; a message's parts come with its content.
func (d *decoder) open(at int64, kind itemKind) *item {
	it := &item{kind: kind}
	d.items = append(d.items, it)
	if d.begun == nil {
		d.begun = map[int64][]*item{}
	}
	d.begun[at] = append(d.begun[at], it)
	if it.kind != kindMessage {
		it.segment(d, 0)
	}
	return it
}

// segment finds the text that a delta belongs to, or begins it.
func (it *item) segment(d *decoder, content int64) *segment {
	if it.kind != kindMessage {
		content = 0
	}
	if n := len(it.strands); n > 0 {
		last := it.strands[n-1]
		if last.content == content {
			return last
		}
		if it.pieces == nil {
			it.pieces = map[int64]*segment{}
		}
		it.pieces[last.content] = last
	}
	if s := it.pieces[content]; s != nil {
		return s
	}
	s := &segment{content: content, index: d.shown}
	d.shown++
	it.strands = append(it.strands, s)
	return s
}

// close settles an item with its whole form.
func (d *decoder) close(it *item, o *output) {
	it.done, it.settled = true, o.settle(&d.offered)
	if id := wire.Text(o.id); id != "" {
		if d.finished == nil {
			d.finished = map[string]bool{}
		}
		d.finished[id] = true
	}
	parts := it.settled.parts
	for i := range parts {
		parts[i] = d.reconcile(it.segment(d, int64(i)), parts[i])
	}
	for _, s := range it.strands {
		if it.kind == kindMessage && s.content >= int64(len(parts)) && s.text.Len() > 0 {
			it.settled.parts = append(it.settled.parts, llm.Text{Text: s.text.String()})
		}
	}
}

// reconcile shows what the deltas of a part did not. Where the two disagree,
// what was shown is what the answer holds.
func (d *decoder) reconcile(s *segment, part llm.Part) llm.Part {
	shown := s.text.String()
	switch p := part.(type) {
	case llm.Text:
		if rest, ok := strings.CutPrefix(p.Text, shown); ok {
			d.show(s, llm.DeltaText, []byte(rest), s.piece)
			return p
		}
		p.Text = shown
		return p
	case llm.Reasoning:
		if rest, ok := strings.CutPrefix(p.Text, shown); ok {
			d.show(s, llm.DeltaReasoning, []byte(rest), s.piece)
			return p
		}
		p.Text = shown
		return p
	case llm.ToolCall:
		if s.tool = p.Name; shown == "" {
			d.show(s, llm.DeltaToolCall, []byte(string(p.Args)+p.ArgsText), s.piece)
		}
	}
	return part
}

// assemble builds an item that was never reported whole from its deltas, in an
// answer that was announced as complete. The arguments of a call are unconfirmed
// then, so the call counts as broken off.
func (it *item) assemble() {
	if it.done {
		return
	}
	it.settled.parts = it.received()
	if it.kind == kindCall {
		it.settled.cut = true
		it.settled.parts = llm.Parts{llm.ToolCall{ProviderID: it.callID, Name: it.name, ArgsText: it.strands[0].text.String()}}
	}
}

// received returns the usable part of an answer that broke off: whole items, and
// the text of unfinished ones. It drops an unfinished call, so that its fragment is
// not mistaken for arguments.
func (it *item) received() llm.Parts {
	if it.done {
		return it.settled.parts
	}
	var parts llm.Parts
	for _, s := range it.strands {
		switch {
		case s.text.Len() == 0:
		case it.kind == kindMessage:
			parts = append(parts, llm.Text{Text: s.text.String()})
		case it.kind == kindReasoning:
			parts = append(parts, llm.Reasoning{Text: s.text.String()})
		}
	}
	return parts
}
