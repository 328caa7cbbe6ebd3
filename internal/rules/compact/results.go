package compact

import (
	"iter"
	"slices"
	"unicode/utf8"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

const (
	// stubTokens is the size in tokens above which replacing a result by a stub saves
	// room.
	stubTokens = 60
	// spareChars is the number of characters that spare keeps at each end of a result
	// in the tail.
	spareChars = 4000
	// squeezeMost and squeezeLeast bound the number of characters that squeeze keeps at
	// each end of the newest results: the first attempt and the last.
	squeezeMost, squeezeLeast = 8000, 250
	// clampSlack is the number of characters by which a result must exceed its two ends
	// to be clamped, because the line between them takes room, too.
	clampSlack = 200
)

// results returns the tool results of a message.
func results(m *llm.Message) iter.Seq[llm.ToolResult] {
	return func(yield func(llm.ToolResult) bool) {
		for _, p := range m.Parts {
			if r, ok := p.(llm.ToolResult); ok && !yield(r) {
				return
			}
		}
	}
}

// spare shortens results without a model call, as far as the goal requires: it replaces
// results before the tail by stubs, clamps those in the tail except the last answer's,
// and removes those that a later result repeats. It returns nil if that is not worth
// it.
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

// lastResults returns the index of the last message with tool results.
func (w *work) lastResults() int {
	last := len(w.Messages)
	for last > 0 && w.Messages[last-1].Role != llm.RoleTool {
		last--
	}
	return max(last-1, 0)
}

// clears returns the calls in messages[from:to] whose results are worth a stub.
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

// dedupe adds the repeated results to d and removes them from the results to clamp.
func (w *work) dedupe(d *event.HistoryCompressed) {
	d.Repeated = w.repeats(d.Cleared)
	d.Clamped = slices.DeleteFunc(slices.Clone(d.Clamped), func(c event.ClampedResult) bool {
		return slices.ContainsFunc(d.Repeated, func(r event.RepeatedResult) bool { return r.CallID == c.CallID })
	})
}

// repeats returns the results, except those of the calls in gone, that a later result
// of the same tool repeats or that a newer state of the same pin replaces.
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

// squeeze shortens the newest results: it replaces all but the last answer's by stubs,
// and clamps those as far as the goal requires. It removes their images and files last,
// because the model has not seen them yet.
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

// withMedia returns the calls in messages[from:] whose results contain images or files.
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

// clamps returns the results in messages[from:to] that are longer than two ends of
// chars characters.
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
