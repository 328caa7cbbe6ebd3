package compact_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/rules/compact"
	"github.com/pawlrun/pawl/llm"
)

// workday generates conversations that contain everything that compaction must keep:
// the task, further user messages, changing todos, and sealed reasoning.
type workday struct {
	r     *rand.Rand
	ids   int
	said  []string
	todos string
}

func (d *workday) task() *llm.Message {
	d.said = append(d.said, "the task: mend it, and never touch main.go")
	return llm.UserText(d.said[0])
}

// more returns one cycle, sometimes followed by a user message.
func (d *workday) more() []*llm.Message {
	asked := &llm.Message{Role: llm.RoleAssistant, Origin: "m/a", Parts: llm.Parts{
		llm.Reasoning{Text: strings.Repeat("hm ", d.r.IntN(200)), Signature: strings.Repeat("s", d.r.IntN(600))},
		llm.Text{Text: "I go on"},
	}}
	results := &llm.Message{Role: llm.RoleTool}
	add := func(name, output, pin string) {
		d.ids++
		id := fmt.Sprint("c", d.ids)
		asked.Parts = append(asked.Parts, llm.ToolCall{CallID: id, Name: name, Args: json.RawMessage(`{"n":1}`)})
		results.Parts = append(results.Parts, llm.ToolResult{CallID: id, Name: name, Output: output, Pin: pin})
	}
	for range 1 + d.r.IntN(3) {
		add("read", strings.Repeat("line ", d.r.IntN(300)), "")
	}
	if d.todos == "" || d.r.IntN(6) == 0 {
		d.todos = fmt.Sprintf("todo after call %d: mend it, because the tests fail", d.ids)
		add("todo", d.todos+strings.Repeat(" (open)", 30), "todo")
	}
	messages := []*llm.Message{asked, results}
	if d.r.IntN(40) == 0 && len(d.said) < 8 {
		d.said = append(d.said, fmt.Sprint("and mind rule ", len(d.said)))
		messages = append(messages, llm.UserText(d.said[len(d.said)-1]))
	}
	return messages
}

// all returns all text of a conversation that a model reads.
func all(messages []*llm.Message) string {
	var b strings.Builder
	for _, m := range messages {
		b.WriteString(m.Text() + "\n")
		for _, p := range m.Parts {
			if r, ok := p.(llm.ToolResult); ok {
				b.WriteString(r.Output + "\n")
			}
		}
	}
	return b.String()
}

var allStrategies = []compact.Strategy{"", compact.RollingWindow, compact.PeriodicSummary, compact.SummarizeOlder}

// However often a conversation is compacted, the task, the user's messages, the denials
// and the open todos stay verbatim, and the size never grows.
func TestAHundredCompactionsKeepWhatMustNotGetLost(t *testing.T) {
	const denied = "shell.exec rm was rejected by ann: never delete anything"
	for _, strategy := range allStrategies {
		t.Run("strategy "+string(strategy), func(t *testing.T) {
			day := &workday{r: rand.New(rand.NewPCG(7, uint64(len(strategy))))}
			s := compact.Settings{Strategy: strategy}
			const window = 8000
			messages, done, compacted := []*llm.Message{day.task()}, 0, false
			for round := 0; done < 100 && round < 5000; round++ {
				messages = append(messages, day.more()...)
				in := situation(messages, window)
				in.Decisions, in.Summaries = []string{denied}, done
				used := compact.Messages(messages) + in.Overhead
				if in.Must = used > window; !s.Due(used, window) {
					continue
				}
				after, d := carry(t, s, in, "what was done so far")
				if d == nil {
					t.Fatalf("round %d: nothing can be done about %d tokens", round, used)
				}
				if got := compact.Messages(after) + in.Overhead; got >= used || int64(got) != d.TokensAfter {
					t.Fatalf("round %d: %d tokens became %d", round, used, got)
				}
				messages, done, compacted = after, done+1, compacted || d.Summary != ""
				text := all(messages)
				for _, want := range append(day.said, day.todos) {
					if !strings.Contains(text, want) {
						t.Fatalf("round %d: %q is gone:\n%.2000s", round, want, text)
					}
				}
				if compacted && !strings.Contains(text, denied) {
					t.Fatalf("round %d: the denial is gone", round)
				}
			}
			if done < 100 || len(day.said) < 8 {
				t.Errorf("%d compactions, %d things said", done, len(day.said))
			}
		})
	}
}

// The sealed reasoning is twice as long as the window.
func TestThoughtsTwiceAsLongAsTheWindowAreCompacted(t *testing.T) {
	const window = 20_000
	for _, strategy := range allStrategies {
		messages := []*llm.Message{llm.UserText("the task")}
		for i := range 20 {
			asked, answered := call(fmt.Sprint("c", i), "short")
			asked.Parts = append(llm.Parts{llm.Reasoning{Signature: strings.Repeat("x", 8000)}}, asked.Parts...)
			messages = append(messages, asked, answered)
		}
		if size := compact.Messages(messages); size < 2*window {
			t.Fatalf("%d tokens", size)
		}
		s := compact.Settings{Strategy: strategy}
		for n := 0; s.Due(compact.Messages(messages)+10, window); n++ {
			in := situation(messages, window)
			in.Must = compact.Messages(messages)+10 > window
			after, d := carry(t, s, in, "what happened")
			if d == nil || n > 10 {
				t.Fatalf("%s: after %d compactions %d tokens are left", strategy, n, compact.Messages(messages))
			}
			messages = after
		}
		if messages[0].Text() != "the task" {
			t.Errorf("%s: the task is gone", strategy)
		}
	}
}

// The newest state stays whole and in its place, together with its group. Older states
// do not.
func TestOnlyTheNewestStateOfAThingStays(t *testing.T) {
	messages := []*llm.Message{llm.UserText("the task")}
	for i := range 30 {
		asked, answered := call(fmt.Sprint("c", i), strings.Repeat("result ", 60))
		if i < 20 && i%5 == 0 {
			r := answered.Parts[0].(llm.ToolResult)
			r.Pin, r.Output = []string{"todo", "plan"}[i/5%2], strings.Repeat(fmt.Sprint("state ", i, " "), 40)
			answered.Parts[0] = r
		}
		messages = append(messages, asked, answered)
	}
	for _, strategy := range allStrategies {
		after, d := carry(t, compact.Settings{Strategy: strategy}, situation(messages, 3500), "sum")
		if d == nil {
			t.Fatalf("%s did nothing", strategy)
		}
		text := all(after)
		for i, want := range map[int]bool{0: false, 5: false, 10: true, 15: true} {
			if got := strings.Contains(text, fmt.Sprint("state ", i, " ")); got != want {
				t.Errorf("%s: state %d is there: %t", strategy, i, got)
			}
		}
		for _, at := range []int{21, 22, 31, 32} { // the calls with their results
			found := false
			for _, m := range after {
				found = found || m == messages[at]
			}
			if !found {
				t.Errorf("%s: message %d is not there as it was", strategy, at)
			}
		}
	}
}

// A state that fills the window alone does not keep other messages from being removed.
func TestAStateTooLargeToKeepIsNotKept(t *testing.T) {
	messages := talk(20)
	r := messages[2].Parts[0].(llm.ToolResult)
	r.Pin, r.Output = "todo", strings.Repeat("endless ", 2000)
	messages[2].Parts[0] = r
	in := situation(messages, 5000)
	in.Must = true
	after, d := carry(t, compact.Settings{Strategy: compact.RollingWindow}, in, "")
	if d == nil || d.TokensAfter > 4000 || strings.Contains(all(after), "endless") {
		t.Errorf("%+v", d)
	}
}

// The steps without a model call run in order, each only if the one before was not
// enough, and a summary comes only after them.
func TestTheLadderClearsThenClampsThenDedupesThenSummarises(t *testing.T) {
	long := func(n int, text string) string { return strings.Repeat(text, n/len(text)) }
	grow := func(outputs ...string) []*llm.Message {
		messages := []*llm.Message{llm.UserText("the task")}
		for i, output := range outputs {
			asked, answered := call(fmt.Sprint("c", i), output)
			messages = append(messages, asked, answered)
		}
		return messages
	}
	small := "ok"
	for name, c := range map[string]struct {
		messages                   []*llm.Message
		cleared, clamped, repeated []string
		summary                    bool
	}{
		"old results alone": {messages: grow(long(36000, "a "), small, small, small), cleared: []string{"c0"}},
		"a long one among the newest, too": {
			messages: grow(long(12000, "a "), long(24000, "b "), small, small), cleared: []string{"c0"}, clamped: []string{"c1"},
		},
		"the same three times among the newest": {
			messages: grow(small, long(12000, "b "), long(12000, "b "), long(12000, "b ")),
			repeated: []string{"c1", "c2"},
		},
		"a result that is no longer than a stub stays": {
			messages: grow(long(36000, "a "), long(240, "b "), small, small, small), cleared: []string{"c0"},
		},
		"a result that is longer does not": {
			messages: grow(long(36000, "a "), long(244, "b "), small, small, small), cleared: []string{"c0", "c1"},
		},
		"what is repeated is not shortened, too": {
			messages: grow(small, small, long(12000, "b "), long(12000, "b "), long(4000, "c ")), clamped: []string{"c3"}, repeated: []string{"c2"},
		},
		"nothing to clear": {messages: append(grow(small), func() []*llm.Message {
			var said []*llm.Message
			for i := range 12 {
				nudge := llm.UserText("go on")
				nudge.Origin = llm.OriginLoop
				said = append(said, nudge, &llm.Message{Role: llm.RoleAssistant, Parts: llm.Parts{llm.Text{Text: long(3000, fmt.Sprint("word", i, " "))}}})
			}
			return said
		}()...), summary: true},
	} {
		t.Run(name, func(t *testing.T) {
			plan := compact.Settings{}.Next(situation(c.messages, 10_000))
			if (plan.Summary != nil) != c.summary || plan.Change == nil {
				t.Fatalf("%+v", plan)
			}
			var clamped, repeated []string
			for _, r := range plan.Change.Clamped {
				clamped = append(clamped, r.CallID)
			}
			for _, r := range plan.Change.Repeated {
				repeated = append(repeated, r.CallID)
			}
			got := [][]string{plan.Change.Cleared, clamped, repeated}
			if diff := cmp.Diff([][]string{c.cleared, c.clamped, c.repeated}, got); diff != "" {
				t.Errorf("cleared, clamped, repeated (-want +got):\n%s", diff)
			}
		})
	}
}

// At the end of the ladder only the floor is left, and nothing more can be removed.
func TestTheLadderEndsWhereNothingMoreCanLeave(t *testing.T) {
	in := situation([]*llm.Message{llm.UserText(strings.Repeat("the task ", 2000))}, 1000)
	in.Must, in.Trigger = true, event.CompressOverflow
	for _, strategy := range allStrategies {
		if plan := (compact.Settings{Strategy: strategy}).Next(in); plan.Change != nil || plan.Summary != nil {
			t.Errorf("%s: %+v", strategy, plan)
		}
	}
}

// The fates match the effect of a compaction on each message.
func TestEveryMessageHasItsFate(t *testing.T) {
	day := &workday{r: rand.New(rand.NewPCG(3, 4))}
	messages := []*llm.Message{day.task()}
	for range 40 {
		messages = append(messages, day.more()...)
	}
	for _, strategy := range allStrategies {
		in := situation(messages, 8000)
		in.Must = true
		after, d := carry(t, compact.Settings{Strategy: strategy}, in, "sum")
		if d == nil {
			t.Fatalf("%s did nothing", strategy)
		}
		fates, err := compact.Fates(messages, *d)
		if err != nil {
			t.Fatal(err)
		}
		counts := map[compact.Fate]int{}
		for i, fate := range fates {
			counts[fate]++
			there := false
			for _, m := range after {
				there = there || m == messages[i]
			}
			if there != (fate == compact.Stayed) {
				t.Errorf("%s: message %d is said to have %s, and is there as it was: %t", strategy, i, fate, there)
			}
		}
		if stays := counts[compact.Stayed] + counts[compact.Shortened]; counts[compact.Left] != d.Dropped || stays != d.Kept-min(len(d.Summary), 1) {
			t.Errorf("%s: %v of %+v", strategy, counts, d)
		}
	}
	if _, err := compact.Fates(messages[:3], event.HistoryCompressed{Removed: []event.MessageRange{{From: 2, To: 9}}}); err == nil {
		t.Error("messages that are not there left")
	}
}
