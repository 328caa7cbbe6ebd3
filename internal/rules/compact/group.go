package compact

import "github.com/pawlrun/pawl/llm"

// end is the index after the group that begins at i: an answer and the results
// of its calls stay together.
func end(messages []*llm.Message, i int) int {
	i++
	for i < len(messages) && messages[i].Role == llm.RoleTool {
		i++
	}
	return i
}

// tail is the index of the first message that stays as it is because it is
// new. It is the beginning of a group.
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

// lastTurns is the beginning of the last n turns: answers with their results
// and what was said to the model before them.
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

// own reports whether a message is the user's word, and not what the loop says in
// the user's place.
func own(m *llm.Message) bool { return m.Role == llm.RoleUser && m.Origin != llm.OriginLoop }

// pinned marks the messages before the tail that stay whatever happens: the
// task, and of the user's other words the newest within a budget.
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

// pinStates marks the groups before the tail that hold the newest state of
// something, such as the open todos: the newest groups within a budget.
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

// holdsState reports whether a message has a result that is the newest of its pin.
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

// statesOf are the calls whose results are the newest of their pins.
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

// ownWords is the share of a window that the user's own words may keep.
func ownWords(window int) int { return min(window/5, 20_000) }
