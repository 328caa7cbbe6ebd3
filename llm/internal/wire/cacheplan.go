package wire

// Turn is one rendered message, as far as a cache plan looks at it.
type Turn struct {
	// Answer says that the model said it. Answers are never marked: their last
	// block may be thought, which takes no mark.
	Answer bool
	// Blocks bounds the content blocks that it became; 0 means that nothing of
	// it is on the wire.
	Blocks int
}

// PlanMarks chooses the turns at whose ends a provider shall remember the
// request, most useful first and at most limit. The first is the end of this
// request, which the next one reads; the second the end of the request before,
// where this one finds what that one wrote however wide the fan-out in between
// was. What is left of the limit bridges messages without an answer between
// them that hold more blocks than a provider looks back from a mark: an empty
// answer leaves none, so the end of the request before is among them. It looks
// at as many turns as it must, from the last one back.
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
