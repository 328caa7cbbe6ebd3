package openaichat

import (
	"slices"
	"strings"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// Models write reasoning as text at the beginning of an answer, between the tags of
// their family. A server that knows the family removes the tags; others do not.

// tags are the tags of one family.
type tags struct {
	open string
	// closes are the tags that end the thought; the first one in the text counts.
	closes []string
	// prefilled reports that a prompt may end with the opening tag, so that the answer
	// begins after it.
	prefilled bool
}

// families are the tags of DeepSeek, Qwen and most others, of Mistral, and of gpt-oss.
var families = []tags{
	{"<think>", []string{"</think>"}, true},
	{"[THINK]", []string{"[/THINK]"}, true},
	{"<|channel|>analysis<|message|>", []string{"<|end|><|start|>assistant<|channel|>final<|message|>", "<|channel|>final<|message|>"}, false},
}

// callTag and callEnd enclose a call that a model wrote as text.
const callTag, callEnd = "<tool_call>", "</tool_call>"

// stage is the state of decoding an answer's text.
type stage uint8

const (
	// stageText: the rest is text, whatever tags it contains.
	stageText stage = iota
	// stageBegin: an opening tag may follow.
	stageBegin
	// stageThought: reasoning up to a closing tag.
	stageThought
	// stageOpen: text that is reasoning if a closing tag without an opening one
	// follows.
	stageOpen
	// stageCall: a call as text, up to the end of the answer.
	stageCall
)

// tagged separates reasoning and calls from the text of an answer.
type tagged struct {
	stage  stage
	family *tags
	// held is text that may be a tag or the beginning of one.
	held string
	// calls reports that the model writes calls as text, offered that there are tools.
	calls, offered bool
	// begun reports that there was text of any kind.
	begun bool
	// presumed reports that the previous answer began after an opening tag, so that
	// this one is shown as reasoning until its kind is known. lone reports that this
	// answer did so too.
	presumed, lone bool
	// blanks holds the leading white space of a thought.
	blanks string
}

// past reports whether a thought, possibly empty, has ended.
func (t *tagged) past() bool { return t.family != nil || t.lone }

// say applies the next piece of the answer's text.
func (d *decoder) say(text string) {
	d.tags.held += text
	d.tags.begun = d.tags.begun || text != ""
	for d.tags.held != "" && d.advance() {
	}
}

// advance decides about as much of the held text as possible, and reports whether it
// can continue.
func (d *decoder) advance() bool {
	t := &d.tags
	switch t.stage {
	case stageBegin:
		return d.begins()
	case stageThought:
		return d.thinks(t.family.closes)
	case stageOpen:
		return d.opens()
	case stageCall:
		return false
	}
	d.growText(&d.text, partText, llm.DeltaText, t.held)
	t.held = ""
	return false
}

// begins looks for an opening tag at the beginning of the answer, or of its text after
// a thought.
func (d *decoder) begins() bool {
	t := &d.tags
	rest := strings.TrimLeft(t.held, " \t\r\n")
	if t.past() {
		t.held = rest // white space after a thought belongs to its tag
	}
	for i := range families {
		switch f := &families[i]; {
		case strings.HasPrefix(rest, f.open):
			t.held, t.stage, t.family = rest[len(f.open):], stageThought, f
			return true
		case strings.HasPrefix(f.open, rest):
			return false
		}
	}
	switch {
	case !t.calls:
	case strings.HasPrefix(rest, callTag):
		t.stage = stageCall
		return false
	case strings.HasPrefix(callTag, rest):
		return false
	}
	switch {
	case t.past() || d.thought.open: // the service may have separated the reasoning
		t.stage = stageText
	default:
		t.stage = stageOpen
	}
	return true
}

// thinks applies the text of a thought up to its closing tag.
func (d *decoder) thinks(closes []string) bool {
	t := &d.tags
	if at, length := firstOf(t.held, closes...); at >= 0 {
		d.think(t.held[:at])
		t.held, t.stage = t.held[at+length:], stageBegin
		return true
	}
	keep := unfinished(t.held, closes...)
	d.think(t.held[:len(t.held)-keep])
	t.held = t.held[len(t.held)-keep:]
	return false
}

// think appends to the thought, without its leading white space.
func (d *decoder) think(text string) {
	if !d.thought.open {
		begin := strings.TrimLeft(text, " \t\r\n")
		d.tags.blanks += text[:len(text)-len(begin)]
		text = begin
	}
	d.growText(&d.thought, partThought, llm.DeltaReasoning, text)
}

// opens applies text that a closing tag turns into reasoning although no opening tag
// precedes it, because the prompt ended with the opening tag. A closing tag in code is
// text.
func (d *decoder) opens() bool {
	t, p := &d.tags, &d.text
	if t.presumed {
		p = &d.thought
	}
	before := 0
	if p.open {
		before = 1
	}
	opened, _ := firstOf(t.held, d.prefilled.opens...)
	at, length := firstOf(t.held, d.prefilled.closes...)
	switch {
	case len(d.order) > before, opened >= 0 && (at < 0 || opened < at):
		d.settleText()
		return true
	case at < 0:
		ready := len(t.held) - unfinished(t.held, d.prefilled.all...)
		d.growOpen(t.held[:ready])
		t.held = t.held[ready:]
		return false
	case (strings.Count(p.b.String(), "`")+strings.Count(t.held[:at], "`"))%2 == 1:
		d.growOpen(t.held[:at+length])
		t.held = t.held[at+length:]
		return true
	}
	thought := t.held[:at]
	if d.text.open {
		thought = d.text.b.String() + thought
		d.recall()
	}
	t.held, t.lone, t.stage = t.held[at+length:], true, stageBegin
	d.think(thought)
	return true
}

// growOpen appends text whose kind is not yet known.
func (d *decoder) growOpen(text string) {
	if d.tags.presumed {
		d.think(text)
	} else {
		d.growText(&d.text, partText, llm.DeltaText, text)
	}
}

// settleText turns text whose kind was unknown into text.
func (d *decoder) settleText() {
	t := &d.tags
	t.stage = stageText
	if !t.presumed {
		return
	}
	text := t.blanks + d.thought.b.String()
	if d.thought.open {
		d.recall()
	}
	others := d.order
	d.order = nil
	d.growText(&d.text, partText, llm.DeltaText, text)
	d.order = append(d.order, others...)
}

// recall retracts everything that was shown, and clears the text and the thought.
func (d *decoder) recall() {
	d.emit(llm.Delta{Kind: llm.DeltaReset})
	d.order = slices.DeleteFunc(d.order, func(k partKind) bool { return k == partText || k == partThought })
	d.text, d.thought = piece{}, piece{}
}

// endText decides about the held text at the end of an answer.
func (d *decoder) endText() {
	t := &d.tags
	held := t.held
	t.held = ""
	switch t.stage {
	case stageThought:
		d.think(held)
	case stageOpen:
		d.settleText()
		d.growText(&d.text, partText, llm.DeltaText, held)
	case stageCall:
		if !d.callsFrom(held) {
			d.growText(&d.text, partText, llm.DeltaText, held)
		}
	default:
		d.growText(&d.text, partText, llm.DeltaText, held)
	}
	t.stage = stageText
}

// callsFrom begins the calls in the text of an answer, if it consists only of calls and
// all of them are valid.
func (d *decoder) callsFrom(text string) bool {
	list, whole := textCalls(text)
	if !whole || len(d.calls) > 0 {
		return false
	}
	names := make([]string, len(list))
	args := make([][]byte, len(list))
	for i, object := range list {
		if !wire.Valid([]byte(object)) {
			return false
		}
		for m := wire.ScanObject([]byte(object)); m.Next(); {
			switch string(m.Key()) {
			case "name":
				names[i] = wire.Text(m.Value())
			case "arguments", "parameters":
				args[i] = m.Value()
			}
		}
		if names[i] == "" {
			return false
		}
	}
	for i, name := range names {
		c := d.begin(int64(len(d.calls)))
		c.name = name
		d.arguments(c, args[i], name)
	}
	return true
}

// textCalls returns the contents of the calls in a text, and whether the text contains
// nothing else. A model that stops at the closing tag omits the last one.
func textCalls(text string) (list []string, whole bool) {
	rest := strings.TrimSpace(text)
	for rest != "" {
		inner, ok := strings.CutPrefix(rest, callTag)
		if !ok {
			return nil, false
		}
		inner, rest, _ = strings.Cut(inner, callEnd)
		list, rest = append(list, strings.TrimSpace(inner)), strings.TrimSpace(rest)
	}
	return list, len(list) > 0
}

// firstOf returns the offset and the length of the first of some words in a text; at is
// -1 if there is none.
func firstOf(text string, words ...string) (at, length int) {
	at = -1
	for _, w := range words {
		if i := strings.Index(text, w); i >= 0 && (at < 0 || i < at) {
			at, length = i, len(w)
		}
	}
	return at, length
}

// unfinished returns the length of the longest suffix of a text that may be the
// beginning of one of the words.
func unfinished(text string, words ...string) int {
	longest := 0
	for _, w := range words {
		for n := min(len(w)-1, len(text)); n > longest; n-- {
			if strings.HasSuffix(text, w[:n]) {
				longest = n
			}
		}
	}
	return longest
}

// prefilledTags holds the tags of the families whose opening tag a prompt may contain.
type prefilledTags struct{ opens, closes, all []string }

func newPrefilledTags() *prefilledTags {
	var p prefilledTags
	for _, f := range families {
		if f.prefilled {
			p.opens, p.closes = append(p.opens, f.open), append(p.closes, f.closes...)
		}
	}
	p.all = slices.Concat(p.opens, p.closes)
	return &p
}
