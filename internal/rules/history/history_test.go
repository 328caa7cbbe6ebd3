package history_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/rules/history"
	"github.com/pawlrun/pawl/llm"
)

func call(id string) llm.ToolCall {
	return llm.ToolCall{CallID: id, ProviderID: "p-" + id, Name: "read", Args: json.RawMessage(`{}`)}
}

func result(id string) llm.ToolResult {
	return llm.ToolResult{CallID: id, Name: "read", Output: "out " + id}
}

func says(parts ...llm.Part) *llm.Message { return &llm.Message{Role: llm.RoleAssistant, Parts: parts} }

func tells(parts ...llm.Part) *llm.Message { return &llm.Message{Role: llm.RoleTool, Parts: parts} }

func TestACycleBecomesOneGroup(t *testing.T) {
	var h history.History
	h.User("do it")
	thought := llm.Reasoning{Text: "hm", Signature: "sig"}
	// As in the journal: tool_call contains the arguments.
	h.Assistant(llm.Parts{thought, llm.Text{Text: "look"}, llm.ToolCall{CallID: "c1", ProviderID: "p1", Name: "read"}, llm.ToolCall{CallID: "c2", ProviderID: "p1", Name: "read"}}, "m/a")
	if _, err := h.Messages(); !errors.Is(err, history.ErrOpenCalls) {
		t.Fatalf("open calls gave %v", err)
	}
	for i, c := range []event.ToolCall{{CallID: "c1", Args: json.RawMessage(`{"n":1}`)}, {CallID: "c2", ArgsText: `{"n":`}} {
		if err := h.Call(i, c); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Results([]llm.ToolResult{result("c1"), result("c2")}); err != nil {
		t.Fatal(err)
	}
	got, err := h.Messages()
	if err != nil {
		t.Fatal(err)
	}
	want := []*llm.Message{
		llm.UserText("do it"),
		{Role: llm.RoleAssistant, Origin: "m/a", Parts: llm.Parts{
			thought, llm.Text{Text: "look"},
			llm.ToolCall{CallID: "c1", ProviderID: "p1", Name: "read", Args: json.RawMessage(`{"n":1}`)},
			llm.ToolCall{CallID: "c2", ProviderID: "p1", Name: "read", ArgsText: `{"n":`},
		}},
		tells(
			llm.ToolResult{CallID: "c1", ProviderID: "p1", Name: "read", Output: "out c1"},
			llm.ToolResult{CallID: "c2", ProviderID: "p1", Name: "read", Output: "out c2"},
		),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestResultsMustBeThoseOfTheOpenCalls(t *testing.T) {
	for name, results := range map[string][]llm.ToolResult{
		"too few":     {result("c1")},
		"too many":    {result("c1"), result("c2"), result("c3")},
		"wrong order": {result("c2"), result("c1")},
		"twice":       {result("c1"), result("c1")},
	} {
		var h history.History
		h.User("go")
		h.Assistant(llm.Parts{call("c1"), call("c2")}, "m/a")
		if err := h.Results(results); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if _, err := h.Messages(); !errors.Is(err, history.ErrOpenCalls) {
			t.Errorf("%s: the calls are not open any more: %v", name, err)
		}
	}
	var h history.History
	if err := h.Results(nil); err == nil {
		t.Error("results of nothing: accepted")
	}
	if err := h.Call(0, event.ToolCall{CallID: "c1"}); err == nil {
		t.Error("a call of nothing: accepted")
	}
}

func TestOnlyAnOpenCallIsCompleted(t *testing.T) {
	var h history.History
	h.User("go")
	h.Assistant(llm.Parts{call("c1"), call("c2")}, "m/a")
	for n, ok := range map[int]bool{-1: false, 0: true, 1: true, 2: false} {
		if err := h.Call(n, event.ToolCall{CallID: fmt.Sprint("c", n+1)}); (err == nil) != ok {
			t.Errorf("call %d of two: %v", n, err)
		}
	}
}

func TestConversationAwaitsAnswerUntilModelsLastWord(t *testing.T) {
	var h history.History
	if h.AwaitsAnswer() {
		t.Error("an empty conversation awaits an answer")
	}
	for range 2 {
		h.User("go")
		if !h.AwaitsAnswer() {
			t.Error("what a user said awaits no answer")
		}
		h.Assistant(llm.Parts{llm.Text{Text: "done"}}, "m/a")
		if h.AwaitsAnswer() {
			t.Error("an answer awaits one")
		}
	}
}

func TestAnAnswerThatProvidersRefuseIsLeftOut(t *testing.T) {
	for name, parts := range map[string]llm.Parts{
		"nothing": nil, "thought alone": {llm.Reasoning{Text: "hm"}}, "blank": {llm.Text{Text: " \n"}},
	} {
		var h history.History
		h.User("go")
		h.Assistant(parts, "m/a")
		if h.Len() != 1 || !h.AwaitsAnswer() {
			t.Errorf("%s: %d messages", name, h.Len())
		}
	}
}

func TestWhatARequestHoldsStaysWhenTheHistoryGrows(t *testing.T) {
	var h history.History
	h.User("one")
	before, err := h.Messages()
	if err != nil {
		t.Fatal(err)
	}
	h.User("two")
	_ = append(before, llm.UserText("mine"))
	after, err := h.Messages()
	if err != nil {
		t.Fatal(err)
	}
	if len(before) != 1 || len(after) != 2 || after[1].Text() != "two" || before[0] != after[0] {
		t.Errorf("before %v, after %v", before, after)
	}
}

// rows: HAR-3, HAR-29
func TestLintNamesTheRuleThatAConversationBreaks(t *testing.T) {
	user := llm.UserText("go")
	for _, tt := range []struct {
		name     string
		messages []*llm.Message
		rule     history.Rule
		at       int
		call     string
	}{
		{"a call without results", []*llm.Message{user, says(call("c1"))}, history.RuleOrphanCall, 1, "c1"},
		{"a call that somebody talks over", []*llm.Message{user, says(call("c1")), user}, history.RuleOrphanCall, 1, "c1"},
		{"one of two calls without a result", []*llm.Message{user, says(call("c1"), call("c2")), tells(result("c1"))}, history.RuleOrphanCall, 2, "c2"},
		{"a result of no call", []*llm.Message{user, tells(result("c1"))}, history.RuleOrphanResult, 1, "c1"},
		{"a result of another call", []*llm.Message{user, says(call("c1")), tells(result("c9"))}, history.RuleOrphanResult, 2, "c9"},
		{"a second result", []*llm.Message{user, says(call("c1"), call("c2")), tells(result("c1"), result("c1"))}, history.RuleDuplicateResult, 2, "c1"},
		{"a second message of results", []*llm.Message{user, says(call("c1")), tells(result("c1")), tells(result("c1"))}, history.RuleOrphanResult, 3, "c1"},
		{"results out of order", []*llm.Message{user, says(call("c1"), call("c2")), tells(result("c2"), result("c1"))}, history.RuleResultOrder, 2, "c2"},
		{"two calls with one id", []*llm.Message{user, says(call("c1"), call("c1"))}, history.RuleDuplicateCall, 1, "c1"},
		{"an empty answer", []*llm.Message{user, says()}, history.RuleEmptyMessage, 1, ""},
		{"thought alone", []*llm.Message{user, says(llm.Reasoning{Text: "hm"})}, history.RuleEmptyMessage, 1, ""},
		{"a user who says nothing", []*llm.Message{llm.UserText(" ")}, history.RuleEmptyMessage, 0, ""},
		{"no results in their message", []*llm.Message{user, tells()}, history.RuleEmptyMessage, 1, ""},
		{"no message", []*llm.Message{nil}, history.RuleEmptyMessage, 0, ""},
		{"a user who calls", []*llm.Message{{Role: llm.RoleUser, Parts: llm.Parts{call("c1")}}}, history.RuleRole, 0, ""},
		{"a model that gives results", []*llm.Message{user, says(llm.Text{Text: "x"}, result("c1"))}, history.RuleRole, 1, "c1"},
		{"text among results", []*llm.Message{user, says(call("c1")), tells(llm.Text{Text: "x"}, result("c1"))}, history.RuleRole, 2, ""},
		{"a system message of the user's", []*llm.Message{user, {Role: llm.RoleSystem, Parts: llm.Parts{llm.Text{Text: "obey"}}}}, history.RuleRole, 1, ""},
		{"a system message with a picture", []*llm.Message{user, {Role: llm.RoleSystem, Origin: llm.OriginLoop, Parts: llm.Parts{llm.Media{}}}}, history.RuleRole, 1, ""},
		{"a system message that says nothing", []*llm.Message{user, {Role: llm.RoleSystem, Origin: llm.OriginLoop}}, history.RuleEmptyMessage, 1, ""},
		{"nobody's message", []*llm.Message{{Role: "judge", Parts: llm.Parts{llm.Text{Text: "obey"}}}}, history.RuleRole, 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			broken, ok := errors.AsType[*history.LintError](history.Lint(tt.messages))
			if !ok {
				t.Fatalf("got %v", history.Lint(tt.messages))
			}
			if broken.Rule != tt.rule || broken.Message != tt.at || broken.CallID != tt.call {
				t.Errorf("got %s at %d about %q: %v", broken.Rule, broken.Message, broken.CallID, broken)
			}
			if named := strings.HasSuffix(broken.Error(), " (call "+tt.call+")"); named != (tt.call != "") {
				t.Errorf("it says %v", broken)
			}
		})
	}
	whole := []*llm.Message{
		user, says(llm.Text{Text: "x"}, call("c1"), call("c2")), tells(result("c1"), result("c2")),
		user, user, says(call("c3")), tells(result("c3")), says(llm.Text{Text: "done"}),
	}
	if err := history.Lint(whole); err != nil {
		t.Errorf("a whole conversation: %v", err)
	}
}

func TestABrokenHistoryIsAnErrorBeforeItIsPaidFor(t *testing.T) {
	var h history.History
	h.Append(llm.UserText("go"), says(call("c1")), llm.UserText("and?"))
	if _, err := h.Messages(); err == nil {
		t.Error("accepted")
	}
}

// TestARequestCostsWhatIsNewInIt bounds the work of one more message, however
// long the conversation is.
func TestARequestCostsWhatIsNewInIt(t *testing.T) {
	grow := func(h *history.History, n int) {
		for i := range n {
			id := fmt.Sprint("c", h.Len(), "-", i)
			h.Assistant(llm.Parts{call(id)}, "m/a")
			if err := h.Results([]llm.ToolResult{result(id)}); err != nil {
				t.Fatal(err)
			}
			if _, err := h.Messages(); err != nil {
				t.Fatal(err)
			}
		}
	}
	perCycle := func(length int) float64 {
		var h history.History
		h.User("go")
		grow(&h, length)
		return testing.AllocsPerRun(100, func() {
			if _, err := h.Messages(); err != nil {
				t.Fatal(err)
			}
		})
	}
	if n := perCycle(2000); n > 0 {
		t.Errorf("a request without anything new allocates %v times", n)
	}
}

func BenchmarkMessages(b *testing.B) {
	for _, length := range []int{10, 1000} {
		b.Run(fmt.Sprint(length, " cycles"), func(b *testing.B) {
			var h history.History
			h.User("go")
			for i := range length {
				id := fmt.Sprint("c", i)
				h.Assistant(llm.Parts{call(id)}, "m/a")
				if err := h.Results([]llm.ToolResult{result(id)}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				h.User("more")
				if _, err := h.Messages(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// The removed answer may already have been part of a request.
func TestWhatIsBrokenOffIsCheckedAnew(t *testing.T) {
	var h history.History
	h.User("go")
	h.Assistant(llm.Parts{llm.Item{Type: "server_tool_use", Raw: json.RawMessage(`{"id":"s"}`)}}, "m/a")
	if _, err := h.Messages(); err != nil {
		t.Fatal(err)
	}
	h.BreakOff()
	if messages, err := h.Messages(); err != nil || len(messages) != 1 {
		t.Errorf("%d messages, %v", len(messages), err)
	}
	h.Append(says(call("c1")))
	if _, err := h.Messages(); err == nil {
		t.Error("a call without a result is not found behind what was broken off")
	}
}
