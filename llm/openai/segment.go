package openai

import (
	"strings"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// itemKind is an item's type for decoding its deltas, by the service's name.
type itemKind string

const (
	kindMessage   itemKind = "message"
	kindReasoning itemKind = "reasoning"
	kindCall      itemKind = "function_call"
)

// item is an item of the answer in progress.
type item struct {
	kind    itemKind
	callID  string
	name    string
	strands []*segment
	// pieces finds the segments by their content index, if there are several.
	pieces  map[int64]*segment
	done    bool
	settled settled
}

// segment is the received text of one part of the answer.
type segment struct {
	// content is the part's index within its item, index that in the answer.
	content int64
	index   int
	// piece is the index of the last piece of a reasoning summary.
	piece int64
	tool  string
	text  strings.Builder
}

// find returns the open item at a place. With services that omit places, all items are
// at the first one, one after the other.
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

// open begins an item. Every item but a message is one part with its place from now on;
// the parts of a message begin with their content.
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

// segment returns the segment that a delta belongs to, and creates it if necessary.
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

// close settles an item with its complete form.
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

// reconcile emits the text of a part that its deltas did not contain. If they disagree,
// the emitted text counts.
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

// assemble builds an item from its deltas if its complete form never arrived but the
// answer is complete. The arguments of a call are unconfirmed then, so the call counts
// as incomplete.
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

// received returns the usable part of an incomplete answer: whole items, and the text
// of unfinished ones. It drops an unfinished call, so that its fragment is not mistaken
// for arguments.
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
