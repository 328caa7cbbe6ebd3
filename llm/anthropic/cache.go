package anthropic

import "github.com/pawlrun/pawl/llm"

// cacheMark is the member that ends a cached stretch of the request.
const cacheMark = `,"cache_control":{"type":"ephemeral"}`

// blockEnd is how every encoded message ends: its last block, the list, the
// message itself.
const blockEnd = `}]}`

// marks chooses the messages whose last block ends a cached stretch: the end of
// this request, which the next one reads, and the end of the last one. The
// second matters where an answer and its results hold more than the 20 blocks
// that the service looks back (FIELD 4.1). With the one on the prefix that makes
// three of the four that a request may have. Answers are never marked: a
// thinking block takes no mark. -1 stands for none.
func (m *Model) marks(messages []*llm.Message) [2]int {
	marked := [2]int{-1, -1}
	if !m.cache {
		return marked
	}
	n := 0
	inAnswer := true
	for i := len(messages) - 1; i >= 0 && n < len(marked); i-- {
		if messages[i].Role == llm.RoleAssistant {
			inAnswer = true
			continue
		}
		if inAnswer {
			marked[n] = i
			n++
			inAnswer = false
		}
	}
	return marked
}

// appendMarked puts the mark into a message's last block without touching its
// encoded bytes: they are memoised, and are the same when the mark moves on.
func appendMarked(segments []llm.Segment, message llm.Segment) []llm.Segment {
	head := message
	head.Bytes = message.Bytes[:len(message.Bytes)-len(blockEnd)]
	return append(segments, head, llm.NewSegment([]byte(cacheMark+blockEnd)))
}
