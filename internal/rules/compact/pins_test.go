package compact_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/rules/compact"
	"github.com/pawlrun/pawl/llm"
)

// turn returns a call and its result, which change may modify.
func turn(id, output string, change func(*llm.ToolResult)) []*llm.Message {
	asked, answered := call(id, output)
	if change != nil {
		r := answered.Parts[0].(llm.ToolResult)
		change(&r)
		answered.Parts[0] = r
	}
	return []*llm.Message{asked, answered}
}

func pin(name string) func(*llm.ToolResult) { return func(r *llm.ToolResult) { r.Pin = name } }

// The user's newest messages stay up to a fifth of the window. Without that limit, many
// user messages would leave no room for work.
func TestTheUsersOwnWordsStayWithinTheirShare(t *testing.T) {
	messages := []*llm.Message{llm.UserText("the task")}
	for i := range 12 {
		messages = append(messages, llm.UserText(fmt.Sprintf("word %d: %s", i, strings.Repeat("abc ", 98)))) // 100 tokens
		messages = append(messages, turn(fmt.Sprint("c", i), strings.Repeat("result ", 60), nil)...)
	}
	messages = append(messages, talk(3)[1:]...)
	// The last seven have 702 tokens.
	for window, first := range map[int]int{3600: 5, 702 * 5: 5, 701 * 5: 6} {
		after, d := carry(t, compact.Settings{Strategy: compact.SummarizeOlder}, situation(messages, window), "sum")
		if d == nil {
			t.Fatalf("in a window of %d nothing was done", window)
		}
		for i := range 12 {
			if kept := strings.Contains(texts(after), fmt.Sprintf("word %d:", i)); kept != (i >= first) {
				t.Errorf("in a window of %d word %d is there: %t", window, i, kept)
			}
		}
	}
}

// A failed update of a todo list is not its newest state.
func TestAStateThatFailedReplacesNone(t *testing.T) {
	messages := slices.Concat(
		[]*llm.Message{llm.UserText("the task")},
		turn("list", "open: mend it", pin("todo")),
		turn("failed", "cannot write the list", func(r *llm.ToolResult) { r.Pin, r.IsError = "todo", true }),
		talk(20)[1:])
	after, d := carry(t, compact.Settings{Strategy: compact.RollingWindow}, situation(messages, 2500), "")
	if d == nil || !strings.Contains(all(after), "open: mend it") {
		t.Errorf("%+v", d)
	}
}

// Shortening keeps a state whole, however long it is.
func TestAStateIsNotShortened(t *testing.T) {
	long := strings.Repeat("a line of the plan\n", 700)
	messages := slices.Concat(talk(5), turn("plan", long, pin("plan")), turn("log", long, nil), turn("new", "fine", nil))
	_, d := carry(t, compact.Settings{KeepMessages: 6}, situation(messages, 15_000), "sum")
	if d == nil || len(d.Clamped) != 1 || d.Clamped[0].CallID != "log" {
		t.Errorf("%+v", d)
	}
}

// Two results with different pictures do not repeat each other, even if their texts are
// equal.
func TestAPictureRepeatsNothing(t *testing.T) {
	messages := talk(2)
	for i := range 12 {
		messages = append(messages, turn(fmt.Sprint("text", i), strings.Repeat("the same text ", 85), nil)...)
	}
	for i := range 2 {
		messages = append(messages, turn(fmt.Sprint("seen", i), strings.Repeat("the same text ", 85), func(r *llm.ToolResult) {
			r.Media = []llm.Media{{MediaType: "image/png", Data: []byte{byte(i)}}}
		})...)
	}
	_, d := carry(t, compact.Settings{KeepMessages: 28}, situation(messages, 12_000), "sum")
	if d == nil || len(d.Repeated) != 11 {
		t.Fatalf("%+v", d)
	}
	for _, r := range d.Repeated {
		if !strings.HasPrefix(r.CallID, "text") || r.By != "text11" {
			t.Errorf("%s is taken for %s again", r.CallID, r.By)
		}
	}
}

// The text of a result with a picture does not reflect the picture's cost, so the
// result is cleared however short its text is.
func TestAnOldPictureIsClearedHoweverFewItsWords(t *testing.T) {
	messages := talk(1)
	for i := range 4 {
		messages = append(messages, turn(fmt.Sprint("seen", i), "a picture", func(r *llm.ToolResult) {
			r.Media = []llm.Media{{MediaType: "image/png", Data: []byte{byte(i)}}}
		})...)
	}
	messages = append(messages, talk(3)[1:]...)
	after, d := carry(t, compact.Settings{}, situation(messages, 7000), "")
	if d == nil || !slices.Contains(d.Cleared, "seen0") {
		t.Fatalf("%+v", d)
	}
	if r := after[4].Parts[0].(llm.ToolResult); len(r.Media) != 0 {
		t.Errorf("%+v", r)
	}
}

// A state that a newer one replaces is redundant, even among the newest results and if
// the two differ.
func TestAStateGivesWayToTheNewerOne(t *testing.T) {
	state := func(i int) string { return strings.Repeat(fmt.Sprint("state ", i, " "), 800) }
	messages := talk(1)
	for i := range 3 {
		messages = append(messages, turn(fmt.Sprint("todo", i), state(i), pin("todo"))...)
	}
	messages = append(messages, turn("other", state(3), nil)...)
	_, d := carry(t, compact.Settings{KeepMessages: 8}, situation(messages, 9000), "sum")
	want := []event.RepeatedResult{{CallID: "todo0", By: "todo2"}, {CallID: "todo1", By: "todo2"}}
	if d == nil || !slices.Equal(d.Repeated, want) {
		t.Errorf("%+v", d)
	}
}

// Clamping a result that is hardly longer than its two ends makes it no shorter,
// however many bytes its characters have, so it stays unchanged.
func TestAResultThatIsHardlyLongerThanItsEndsIsLeftAlone(t *testing.T) {
	for _, c := range []struct {
		output string
		want   bool
	}{
		{strings.Repeat("x", 8200), false},
		{strings.Repeat("x", 8300), true},
		{strings.Repeat("日", 8200), false},
		{strings.Repeat("日", 8300), true},
	} {
		messages := slices.Concat(talk(30), turn("long", strings.Repeat("x", 20_000), nil), turn("near", c.output, nil), turn("new", "fine", nil))
		_, d := carry(t, compact.Settings{KeepMessages: 6}, situation(messages, 15_000), "sum")
		if d == nil || d.Strategy != "clear-results" || (len(d.Clamped) == 2) != c.want {
			t.Errorf("%d bytes: %+v", len(c.output), d)
		}
	}
}

// If even the shortest ends of the newest results do not fit, only the last of several
// equal results stays.
func TestTheNewestResultsThatSayTheSameStayOnce(t *testing.T) {
	asked, answered := call("c0", strings.Repeat("the same ", 50))
	for i := range 9 {
		more, result := call(fmt.Sprint("c", i+1), strings.Repeat("the same ", 50))
		asked.Parts, answered.Parts = append(asked.Parts, more.Parts[1]), append(answered.Parts, result.Parts...)
	}
	in := situation([]*llm.Message{llm.UserText("task"), asked, answered}, 900)
	in.Must = true
	after, d := carry(t, compact.Settings{Strategy: compact.RollingWindow}, in, "")
	if d == nil || len(d.Repeated) != 9 || d.Repeated[0] != (event.RepeatedResult{CallID: "c0", By: "c9"}) ||
		after[2].Parts[9].(llm.ToolResult).Output != answered.Parts[9].(llm.ToolResult).Output {
		t.Errorf("%+v", d)
	}
}
