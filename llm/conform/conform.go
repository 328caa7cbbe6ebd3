// Package conform checks whether a provider accepts the conversation of a request, for
// each of the four wires, and names the rule that it violates. It reads the JSON of the
// wire, so any program can check its conversations.
//
// The rules concern the conversation: pairing, order, ids, signatures, roles, empty
// content. A provider answers a violation with status 400, typically after a crash, a
// switch of models or a compaction has lost, duplicated or reordered messages. [Cases]
// has examples of each rule.
package conform

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pawlrun/pawl/llm/internal/wire"
)

// Wire is a wire format, named after its provider.
type Wire string

// The wires.
const (
	// Anthropic is the Messages API.
	Anthropic Wire = "anthropic"
	// Responses is OpenAI's Responses API.
	Responses Wire = "openai"
	// Chat is Chat Completions, as implemented by OpenAI and compatible services.
	Chat Wire = "openai-chat"
	// Gemini is generateContent.
	Gemini Wire = "google"
)

// Wires lists the wires.
func Wires() []Wire { return []Wire{Anthropic, Responses, Chat, Gemini} }

// Violation is a rule that a conversation violates. It is the error of [Lint] and
// [Check].
type Violation struct {
	Wire Wire
	// Rule is the name of one of the wire's [Rules].
	Rule string
	// Item is the index of the message, item or content that violates it.
	Item int
	// CallID is the provider's id of the call that the violation concerns.
	CallID string
	Detail string
}

// Error returns the rule, the place and the problem.
func (v *Violation) Error() string {
	s := fmt.Sprintf("conform: %s: item %d breaks %s: %s", v.Wire, v.Item, v.Rule, v.Detail)
	if v.CallID != "" {
		s += " (call " + v.CallID + ")"
	}
	return s
}

// Options are properties of a request, outside its conversation, that rules depend on.
type Options struct {
	// Model is the model's name. Gemini requires signatures from gemini-3 on; on other
	// wires the request contains the name.
	Model string
	// Stored reports that the provider stores its answers, so that reasoning may be
	// sent back by its id alone. That is the default of OpenAI's services; a request
	// can change it.
	Stored bool
	// Chained reports that the conversation continues an answer that the provider
	// stores, which may contain the calls of its results.
	Chained bool
	// Continued reports that the pieces follow others that were valid and ended without
	// an open call.
	Continued bool
}

// Lint checks a whole request. The error is a *[Violation], or reports that the request
// is not a JSON object with a conversation.
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
		return nil // the whole input may be a single text
	}
	return Check(w, o, Read(w, b.conversation))
}

// Items is the parsed form of a piece of a conversation.
type Items struct {
	elements []element
	// count is the number of messages, items or contents.
	count int
	fault *Violation
}

// element holds the properties of one part of a message that rules depend on.
type element struct {
	item int
	role string
	kind kind
	// id is the provider's id of a call, name the name of its tool.
	id, name string
	// mark reports that a Gemini call is signed, that a text is blank, or that a
	// Responses item is the model's.
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

// Read parses messages, items or contents, separated by commas, as a request contains
// them. A caller can keep the result, so that [Check] of the next request is cheap.
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

// readers parse one message, item or content, and report errors that do not depend on
// its neighbours.
var readers = map[Wire]func(r *Items, raw []byte) *Violation{
	Anthropic: readMessage, Responses: readItem, Chat: readChat, Gemini: readContent,
}

// checkers check the rules about order.
var checkers = map[Wire]func(o Options, elements []element) *Violation{
	Anthropic: checkMessages, Responses: checkItems, Chat: checkChat, Gemini: checkContents,
}

// Check checks the pieces of a conversation, in order, against the rules of a wire. The
// error is a *[Violation].
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

// at sets the position of a violation.
func (v *Violation) at(e element) *Violation {
	v.Item = e.item
	return v
}
