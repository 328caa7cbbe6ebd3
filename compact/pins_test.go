package compact_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/compact"
	"github.com/pawlrun/pawl/llm"
)

// turn is a call with its result, as its owner changes it.
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

// What users said stays up to a fifth of the window, the newest first; without
// a bound, a talkative user would leave no room for the work.
func TestTheUsersOwnWordsStayWithinTheirShare(t *testing.T) {
	messages := []*llm.Message{llm.UserText("the task")}
	for i := range 12 {
		messages = append(messages, llm.UserText(fmt.Sprintf("word %d: %s", i, strings.Repeat("abc ", 98)))) // 100 tokens
		messages = append(messages, turn(fmt.Sprint("c", i), strings.Repeat("result ", 60), nil)...)
	}
	messages = append(messages, talk(3)[1:]...)
	after, d := carry(t, compact.Settings{Strategy: compact.SummarizeOlder}, situation(messages, 3600), "sum")
	if d == nil {
		t.Fatal("nothing was done")
	}
	for i := range 12 {
		if kept := strings.Contains(texts(after), fmt.Sprintf("word %d:", i)); kept != (i >= 5) {
			t.Errorf("word %d is there: %t", i, kept)
		}
	}
}

// A todo list that could not be written is not the newest one.
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

// Shortening leaves a state whole, however long it is.
func TestAStateIsNotShortened(t *testing.T) {
	long := strings.Repeat("a line of the plan\n", 700)
	messages := slices.Concat(talk(5), turn("plan", long, pin("plan")), turn("log", long, nil), turn("new", "fine", nil))
	_, d := carry(t, compact.Settings{KeepMessages: 6}, situation(messages, 15_000), "sum")
	if d == nil || len(d.Clamped) != 1 || d.Clamped[0].CallID != "log" {
		t.Errorf("%+v", d)
	}
}

// Two pictures are not the same because the words beside them are.
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
