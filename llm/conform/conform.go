// Package conform says whether the conversation of a request is one that its
// provider takes, for each of the four wires, and names the rule that it
// breaks. It reads the JSON that goes over the wire, so that any program can
// hold its own histories to the same rules.
//
// The rules are those about history: pairing, order, ids, signatures, roles,
// empty content. They are the ones that a provider answers with status 400
// where a loop has lost, doubled or reordered something, as a crash, a switch of
// models or a compaction makes it do. The cases that show each rule are [Cases].
package conform

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pawlrun/pawl/llm/internal/wire"
)

// Wire is one of the wire formats, by the name of the provider that has it.
type Wire string

// The wires.
const (
	// Anthropic is the Messages API.
	Anthropic Wire = "anthropic"
	// Responses is OpenAI's Responses API.
	Responses Wire = "openai"
	// Chat is Chat Completions, as OpenAI and compatible services have it.
	Chat Wire = "openai-chat"
	// Gemini is generateContent.
	Gemini Wire = "google"
)

// Wires lists the wires.
func Wires() []Wire { return []Wire{Anthropic, Responses, Chat, Gemini} }

// Violation is a rule that a conversation breaks. It is the error of [Lint] and
// [Check].
type Violation struct {
	Wire Wire
	// Rule is the name of one of the wire's [Rules].
	Rule string
	// Item is the index of the message, item or content that breaks it.
	Item int
	// CallID is the call that it is about, by the provider's id.
	CallID string
	Detail string
}

// Error names the rule, the place and what is wrong there.
func (v *Violation) Error() string {
	s := fmt.Sprintf("conform: %s: item %d breaks %s: %s", v.Wire, v.Item, v.Rule, v.Detail)
	if v.CallID != "" {
		s += " (call " + v.CallID + ")"
	}
	return s
}

// Options are what a rule must know of a request beside its conversation.
type Options struct {
	// Model is the model's name. Gemini's signatures are demanded from
	// gemini-3 on; other wires have it in the request.
	Model string
	// Stored says that the provider keeps what it answered, so that reasoning
	// may come back by its id alone. Of OpenAI's services that is the default;
	// the request says so.
	Stored bool
	// Chained says that the conversation goes on from an answer that the
	// provider keeps, so that the calls of results may lie there.
	Chained bool
	// Continued says that the pieces go on behind others that were found in
	// order, and that had no open call at their end.
	Continued bool
}

// Lint checks a whole request. The error is a *[Violation], or says that the
// request is no JSON object with a conversation.
func Lint(w Wire, request []byte, o Options) error {
	b, err := bodyOf(w, request)
	if err != nil {
		return err
	}
	o.Model = cmp.Or(o.Model, b.model)
	o.Stored, o.Chained = o.Stored || b.stored, o.Chained || b.chained
	if w == Anthropic && b.marks > maxMarks {
		return &Violation{Wire: w, Rule: "cache-marks", Detail: fmt.Sprintf("%d breakpoints are set, and a fifth is refused", b.marks)}
	}
	if b.bare {
		return nil // a request may give its whole input as one text
	}
	return Check(w, o, Read(w, b.conversation))
}

// Items are what a piece of a conversation shows of itself.
type Items struct {
	elements []element
	// count is the number of messages, items or contents.
	count int
	fault *Violation
}

// element is one part of a message, as far as a rule asks for it.
type element struct {
	item int
	role string
	kind kind
	// id is the provider's id of a call, name the tool's.
	id, name string
	// mark says: of Gemini's call, that it is signed; of a text, that it is
	// blank; of a Responses item, that it is the model's.
	mark bool
}

type kind uint8

const (
	other kind = iota
	text
	reasoning
	call
	result
)

// Read takes in messages, items or contents, separated by commas, as they stand
// in a request. Reading a message once and keeping what it gave makes [Check] of
// the next request cheap.
func Read(w Wire, conversation []byte) Items {
	list := make([]byte, 0, len(conversation)+2)
	list = append(list, '[')
	list = append(list, trimComma(conversation)...)
	list = append(list, ']')
	var r Items
	read := readers[w]
	m := wire.ScanArray(list)
	for ; m.Next(); r.count++ {
		from := len(r.elements)
		var fault *Violation
		if isObject(m.Value()) {
			fault = read(&r, m.Value())
		} else {
			fault = broken("json", "", "is no JSON object")
		}
		for i := range r.elements[from:] {
			r.elements[from+i].item = r.count
		}
		if fault != nil && r.fault == nil {
			fault.Wire, fault.Item, r.fault = w, r.count, fault
		}
	}
	if m.Err() != nil && r.fault == nil {
		r.fault = &Violation{Wire: w, Rule: "json", Item: r.count, Detail: "is no JSON object"}
	}
	return r
}

func trimComma(b []byte) []byte {
	if len(b) > 0 && b[0] == ',' {
		return b[1:]
	}
	return b
}

// readers take in one message, item or content, and say what is wrong with it
// whatever stands around it.
var readers = map[Wire]func(r *Items, raw []byte) *Violation{
	Anthropic: readMessage, Responses: readItem, Chat: readChat, Gemini: readContent,
}

// checkers hold a conversation to the rules about what follows what.
var checkers = map[Wire]func(o Options, elements []element) *Violation{
	Anthropic: checkMessages, Responses: checkItems, Chat: checkChat, Gemini: checkContents,
}

// Check holds the pieces of a conversation, in order, to the rules of a wire.
// The error is a *[Violation].
func Check(w Wire, o Options, pieces ...Items) error {
	var all []element
	if len(pieces) == 1 {
		all = pieces[0].elements
	}
	at := 0
	for _, p := range pieces {
		if p.fault != nil {
			v := *p.fault
			v.Item += at
			return &v
		}
		if len(pieces) > 1 {
			all = slices.Grow(all, len(p.elements))
			for _, e := range p.elements {
				e.item += at
				all = append(all, e)
			}
		}
		at += p.count
	}
	if at == 0 {
		return &Violation{Wire: w, Rule: "empty", Detail: "the conversation holds nothing"}
	}
	if v := checkers[w](o, all); v != nil {
		v.Wire = w
		return v
	}
	return nil
}

func broken(rule, callID, detail string, args ...any) *Violation {
	return &Violation{Rule: rule, CallID: callID, Detail: fmt.Sprintf(detail, args...)}
}

// at puts a violation at an element.
func (v *Violation) at(e element) *Violation {
	v.Item = e.item
	return v
}
