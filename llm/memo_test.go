package llm_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/llm"
)

// A memo holds what the conversation holds, however much has left that, and
// forgets nothing that is still there.
func TestAMemoForgetsWhatLeftTheConversation(t *testing.T) {
	var memo llm.Memo
	encoded := 0
	encode := func(dst []byte, m *llm.Message) []byte { encoded++; return append(dst, m.Text()...) }
	ask := func(messages []*llm.Message) {
		memo.RequestPrefix("wire", "", &llm.Request{Messages: messages}, func() []byte { return nil })
		segments := memo.Messages("wire", messages, encode)
		for i, m := range messages {
			if got := string(segments[i].Bytes); got != m.Text() {
				t.Fatalf("%q is encoded as %q", m.Text(), got)
			}
		}
	}
	var messages []*llm.Message
	for n := range 10_000 {
		messages = append(messages, llm.UserText(fmt.Sprint(n)))
		if len(messages) > 100 {
			messages = append([]*llm.Message{messages[0]}, messages[60:]...)
		}
		ask(messages)
	}
	if encoded != 10_000 {
		t.Errorf("10,000 messages were encoded %d times", encoded)
	}
	if n := memo.Len(); n > 2*len(messages)+300 {
		t.Errorf("%d messages are remembered of %d", n, len(messages))
	}
}

// What a memo gives for a list of messages is what it gives for each of them,
// whatever was asked before: another list, another wire, one that an encoder
// panicked over.
func TestAListIsEncodedAsItsMessagesAre(t *testing.T) {
	a, b, c, d, bad := llm.UserText("a"), llm.UserText("b"), llm.UserText("c"), llm.UserText("d"), llm.UserText("bad")
	var memo llm.Memo
	ask := func(wire string, messages ...*llm.Message) (said string) {
		defer func() { _ = recover() }()
		for _, s := range memo.Messages(wire, messages, func(dst []byte, m *llm.Message) []byte {
			if m == bad {
				panic(m)
			}
			return append(append(dst, wire...), m.Text()...)
		}) {
			said += string(s.Bytes) + " "
		}
		return said
	}
	for _, asked := range []struct {
		wire     string
		messages []*llm.Message
		want     string
	}{
		{"1", []*llm.Message{a, b, c}, "1a 1b 1c "},
		{"1", []*llm.Message{a, d, c}, "1a 1d 1c "},
		{"1", []*llm.Message{a, b, bad}, ""},
		{"1", []*llm.Message{a, d, c}, "1a 1d 1c "},
		{"2", []*llm.Message{a, d}, "2a 2d "},
		{"1", []*llm.Message{a}, "1a "},
		{"1", nil, ""},
		{"1", []*llm.Message{c, b, a, d}, "1c 1b 1a 1d "},
	} {
		if got := ask(asked.wire, asked.messages...); got != asked.want {
			t.Errorf("got %q, want %q", got, asked.want)
		}
	}
}

// Messages share the room that they are encoded in, and nothing of it is kept: a
// long history is held in as many bytes as it has.
func TestWhatIsRememberedHasNoRoomToSpare(t *testing.T) {
	var memo llm.Memo
	var messages []*llm.Message
	for n := range 100 {
		messages = append(messages, llm.UserText(strings.Repeat("x", 100*n)))
	}
	for i, s := range memo.Messages("wire", messages, func(dst []byte, m *llm.Message) []byte { return append(dst, m.Text()...) }) {
		if len(s.Bytes) != 100*i || cap(s.Bytes) > len(s.Bytes)+len(s.Bytes)/4+64 {
			t.Errorf("message %d of %d bytes is held in %d", i, 100*i, cap(s.Bytes))
		}
	}
}
