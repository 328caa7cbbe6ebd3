package llm_test

import (
	"fmt"
	"testing"

	"github.com/pawlrun/pawl/llm"
)

// A memo holds what the conversation holds, however much has left that, and
// forgets nothing that is still there.
func TestAMemoForgetsWhatLeftTheConversation(t *testing.T) {
	var memo llm.Memo
	encoded := 0
	encode := func(m *llm.Message) []byte { encoded++; return []byte(m.Text()) }
	ask := func(messages []*llm.Message) {
		memo.RequestPrefix("wire", "", &llm.Request{Messages: messages}, func() []byte { return nil })
		for _, m := range messages {
			if got := string(memo.Message("wire", m, encode).Bytes); got != m.Text() {
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
