package compact

import "github.com/pawlrun/pawl/llm"

// end returns the index after the group that begins at i. An answer and the results of
// its calls form one group.
func end(messages []*llm.Message, i int) int {
	i++
	for i < len(messages) && messages[i].Role == llm.RoleTool {
		i++
	}
	return i
}

// tail returns the index of the first message that is too recent to change. A group
// begins there.
func (s Settings) tail(messages []*llm.Message) int {
	turns, count := s.KeepTurns, s.KeepMessages
	if turns == 0 && count == 0 {
		if s.Strategy == RollingWindow || s.Strategy == PeriodicSummary {
			turns = DefaultKeepTurns
		} else {
			count = DefaultKeepMessages
		}
	}
	if turns > 0 {
		return lastTurns(messages, turns)
	}
	at := max(len(messages)-count, 0)
	for at > 0 && messages[at].Role == llm.RoleTool {
		at--
	}
	return at
}

// lastTurns returns the index at which the last n turns begin. A turn is an answer with
// its results and the user messages before it.
func lastTurns(messages []*llm.Message, n int) int {
	at := len(messages)
	for at > 0 && n > 0 {
		if at--; messages[at].Role == llm.RoleAssistant {
			n--
		}
	}
	for at > 0 && messages[at-1].Role == llm.RoleUser {
		at--
	}
	return at
}

// own reports whether the user wrote a message, as opposed to a message that the loop
// added with the user's role.
func own(m *llm.Message) bool { return m.Role == llm.RoleUser && m.Origin != llm.OriginLoop }

// pinned marks the messages before the tail that compaction never removes: the task,
// and the newest of the user's other messages within budget.
func pinned(messages []*llm.Message, sizes []int, tail, budget int) []bool {
	pins := make([]bool, tail)
	task := -1
	for i, m := range messages[:tail] {
		if own(m) {
			task = i
			pins[i] = true
			break
		}
	}
	for i := tail - 1; i > task; i-- {
		if own(messages[i]) && sizes[i] <= budget {
			pins[i] = true
			budget -= sizes[i]
		}
	}
	return pins
}

// pinStates marks the groups before the tail that contain the newest state of
// something, such as the open todos. It marks the newest groups within budget.
func (w *work) pinStates(budget int) {
	for i := w.tail - 1; i >= 0; i-- {
		if !w.holdsState(w.Messages[i]) {
			continue
		}
		from := i
		for w.Messages[from].Role == llm.RoleTool {
			from--
		}
		size := 0
		for _, n := range w.Sizes[from : i+1] {
			size += n
		}
		if size > budget {
			continue
		}
		budget -= size
		for ; from <= i; from++ {
			w.pins[from] = true
		}
	}
}

// holdsState reports whether a message contains the newest result of a pin.
func (w *work) holdsState(m *llm.Message) bool {
	for r := range results(m) {
		if w.isState(&r) {
			return true
		}
	}
	return false
}

// isState reports whether a result is the newest of its pin.
func (w *work) isState(r *llm.ToolResult) bool { return r.Pin != "" && w.states[r.Pin] == r.CallID }

// statesOf maps each pin to the call that produced its newest result.
func statesOf(messages []*llm.Message) map[string]string {
	var newest map[string]string
	for _, m := range messages {
		if m.Role != llm.RoleTool {
			continue
		}
		for r := range results(m) {
			if r.Pin == "" || r.IsError {
				continue
			}
			if newest == nil {
				newest = map[string]string{}
			}
			newest[r.Pin] = r.CallID
		}
	}
	return newest
}

// ownWords returns the number of tokens of a window that pinned user messages may take.
func ownWords(window int) int { return min(window/5, 20_000) }
