package compact

import (
	"iter"
	"slices"
	"unicode/utf8"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

const (
	// stubTokens is the size from which on a result is worth a stub.
	stubTokens = 60
	// spareChars is what each end of a result in the tail keeps at the least
	// while nothing must leave.
	spareChars = 4000
	// squeezeMost and squeezeLeast are what each end of the newest results keeps,
	// at first and in the end, when the request must become shorter.
	squeezeMost, squeezeLeast = 8000, 250
	// clampSlack is how many characters a result has to be longer than its two ends
	// for the line between them to be worth it.
	clampSlack = 200
)

// results are the tool results of a message.
func results(m *llm.Message) iter.Seq[llm.ToolResult] {
	return func(yield func(llm.ToolResult) bool) {
		for _, p := range m.Parts {
			if r, ok := p.(llm.ToolResult); ok && !yield(r) {
				return
			}
		}
	}
}

// spare shortens results as far as the goal requires without a model call: those
// before the tail become stubs, those of the tail except the last answer's keep
// their ends, and those that a later result repeats are removed. It returns nil
// if that is not worth it.
func (w *work) spare() *event.HistoryCompressed {
	last := w.lastResults()
	d := event.HistoryCompressed{Cleared: w.clears(0, w.tail)}
	rungs := []func(){
		func() {},
		func() { d.Clamped = w.clamps(w.tail, last, spareChars) },
		func() { w.dedupe(&d) },
	}
	var best *event.HistoryCompressed
	for _, climb := range rungs {
		climb()
		if next := w.change(ClearResults, d); next != nil {
			best = next
			if int(next.TokensAfter) <= w.goal {
				break
			}
		}
	}
	return best
}

// lastResults is the place of the results of the last answer that has some.
func (w *work) lastResults() int {
	last := len(w.Messages)
	for last > 0 && w.Messages[last-1].Role != llm.RoleTool {
		last--
	}
	return max(last-1, 0)
}

// clears are the calls whose results, in the messages from one place to
// another, are worth a stub.
func (w *work) clears(from, to int) []string {
	var ids []string
	for _, m := range w.Messages[from:max(from, to)] {
		for r := range results(m) {
			if worthAStub(&r) && !w.isState(&r) {
				ids = append(ids, r.CallID)
			}
		}
	}
	return ids
}

func worthAStub(r *llm.ToolResult) bool { return Tokens(r.Output) > stubTokens || len(r.Media) > 0 }

// dedupe adds to a step the results that a later one repeats; they need no
// clamping then.
func (w *work) dedupe(d *event.HistoryCompressed) {
	d.Repeated = w.repeats(d.Cleared)
	d.Clamped = slices.DeleteFunc(slices.Clone(d.Clamped), func(c event.ClampedResult) bool {
		return slices.ContainsFunc(d.Repeated, func(r event.RepeatedResult) bool { return r.CallID == c.CallID })
	})
}

// repeats are the results, but for those that are gone, that a later one says
// again: the same tool's with the same output, or a newer state of the same
// thing.
func (w *work) repeats(gone []string) []event.RepeatedResult {
	stubs := make(map[string]bool, len(gone))
	for _, id := range gone {
		stubs[id] = true
	}
	var out []event.RepeatedResult
	later := map[[2]string]string{}
	for _, m := range slices.Backward(w.Messages) {
		for _, p := range slices.Backward(m.Parts) {
			r, ok := p.(llm.ToolResult)
			if !ok || len(r.Media) > 0 || !worthAStub(&r) || stubs[r.CallID] {
				continue
			}
			key := [2]string{r.Name, r.Output}
			by, again := later[key]
			if newest := w.states[r.Pin]; !again && newest != "" {
				by, again = newest, true
			}
			if again && !w.isState(&r) {
				out = append(out, event.RepeatedResult{CallID: r.CallID, By: by})
				continue
			}
			later[key] = r.CallID
		}
	}
	slices.Reverse(out)
	return out
}

// squeeze shortens what is newest: all results but those of the last answer
// become stubs, and those are clamped as far as it takes. What pictures and files
// they bring leaves last, because the model has not seen them yet.
func (w *work) squeeze() *event.HistoryCompressed {
	last := w.lastResults()
	d := event.HistoryCompressed{Cleared: w.clears(0, last)}
	best := w.change(ClearResults, d)
	for chars := squeezeMost; chars >= squeezeLeast && (best == nil || int(best.TokensAfter) > w.goal); chars /= 2 {
		d.Clamped = w.clamps(last, len(w.Messages), chars)
		if next := w.change(ClearResults, d); next != nil {
			best = next
		}
	}
	if best == nil || int(best.TokensAfter) > w.goal {
		w.dedupe(&d)
		if next := w.change(ClearResults, d); next != nil {
			best = next
		}
	}
	if best == nil || int(best.TokensAfter) > w.goal {
		d.Cleared = append(d.Cleared, w.withMedia(last)...)
		if next := w.change(ClearResults, d); next != nil {
			best = next
		}
	}
	return best
}

// withMedia are the calls, from one place on, whose results bring pictures or files.
func (w *work) withMedia(from int) []string {
	var ids []string
	for _, m := range w.Messages[from:] {
		for r := range results(m) {
			if len(r.Media) > 0 && !w.isState(&r) {
				ids = append(ids, r.CallID)
			}
		}
	}
	return ids
}

// clamps are the results, in the messages from one place to another, that are
// longer than their two ends.
func (w *work) clamps(from, to, chars int) []event.ClampedResult {
	var clamped []event.ClampedResult
	for _, m := range w.Messages[from:max(from, to)] {
		for r := range results(m) {
			if utf8.RuneCountInString(r.Output) > 2*chars+clampSlack && !w.isState(&r) {
				clamped = append(clamped, event.ClampedResult{CallID: r.CallID, Chars: chars})
			}
		}
	}
	return clamped
}
