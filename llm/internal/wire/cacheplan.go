package wire

// Turn holds the properties of an encoded message that a cache plan depends on.
type Turn struct {
	// Answer reports that the message is the model's. Answers are never marked, because
	// their last block may be reasoning, which accepts no mark.
	Answer bool
	// Blocks is an upper bound on its content blocks; 0 means that the message is not
	// on the wire.
	Blocks int
}

// PlanMarks chooses the turns whose ends are marked for the provider's cache, most
// useful first and at most limit. The first mark is at the end of this request, for the
// next request to read. The second is at the end of the previous request, so that this
// one finds its cache entry however many messages are in between. The rest bridge
// sequences of messages without an answer between them that have more blocks than the
// provider searches back from a mark; an empty answer has no blocks, so the end of the
// previous request may be among them. It examines only as many turns as necessary, from
// the last one back.
func PlanMarks(turns int, turn func(i int) Turn, limit, lookBack int) []int {
	marks := make([]int, 0, max(limit, 0))
	answered, blocks, bridge, wide := true, 0, -1, false
	for i := turns - 1; i >= 0 && len(marks) < min(limit, 2); i-- {
		t := turn(i)
		switch {
		case t.Blocks == 0:
		case t.Answer:
			answered = true
		case answered:
			marks, answered = append(marks, i), false
			blocks += t.Blocks
		case len(marks) == 1:
			if blocks <= lookBack {
				bridge = i
			} else {
				wide = true
			}
			blocks += t.Blocks
		}
	}
	if wide && bridge >= 0 && len(marks) < limit {
		marks = append(marks, bridge)
	}
	return marks
}
