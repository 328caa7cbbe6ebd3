package history_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/internal/rules/history"
	"github.com/pawlrun/pawl/llm"
)

// begun returns a provider-side call; came returns its result.
func begun(kind, id string) llm.Item {
	return llm.Item{Type: kind, Raw: json.RawMessage(`{"id":"` + id + `"}`)}
}

func came(kind, of string) llm.Item {
	return llm.Item{Type: kind, Raw: json.RawMessage(`{"tool_use_id":"` + of + `"}`)}
}

// holding returns a history of whole messages, as between two requests.
func holding(t *testing.T, messages ...*llm.Message) *history.History {
	t.Helper()
	var h history.History
	h.Append(messages...)
	if _, err := h.Messages(); err != nil {
		t.Fatal(err)
	}
	return &h
}

func TestWhatAProviderWasStillDoingIsTakenFromItsLastAnswer(t *testing.T) {
	task, words := llm.UserText("go"), llm.Text{Text: "I look."}
	search, found := begun("server_tool_use", "s1"), came("web_search_tool_result", "s1")
	half := begun("server_tool_use", "s2")
	answer := func(parts ...llm.Part) *llm.Message {
		m := says(parts...)
		m.Origin = "m/a"
		return m
	}
	for name, tt := range map[string]struct{ before, after []*llm.Message }{
		"the items at the end of a paused answer": {
			[]*llm.Message{task, answer(words, search, found, words, half, half)},
			[]*llm.Message{task, answer(words, search, found, words)},
		},
		"items of any kind at its end": {
			[]*llm.Message{task, answer(words, search, found, begun("web_search_call", "w1"))}, []*llm.Message{task, answer(words)},
		},
		"all of an answer that then says nothing": {
			[]*llm.Message{task, answer(llm.Reasoning{Text: "hm"}, half)}, []*llm.Message{task},
		},
		"a half-done call beside calls of ours": {
			[]*llm.Message{task, answer(words, search, found, half, call("c1")), tells(result("c1"))},
			[]*llm.Message{task, answer(words, search, found, call("c1")), tells(result("c1"))},
		},
		"nothing of an answer that is whole":          {[]*llm.Message{task, answer(words)}, []*llm.Message{task, answer(words)}},
		"all of the only message":                     {[]*llm.Message{answer(half)}, []*llm.Message{}},
		"nothing where nobody has answered":           {[]*llm.Message{task}, []*llm.Message{task}},
		"nothing behind what a user has said":         {[]*llm.Message{task, answer(words, half), task}, []*llm.Message{task, answer(words, half), task}},
		"nothing of a conversation without an answer": {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := holding(t, tt.before...)
			handedOut, err := h.Messages()
			if err != nil {
				t.Fatal(err)
			}
			kept, parts := slices.Clone(handedOut), []llm.Parts{}
			for _, m := range handedOut {
				parts = append(parts, slices.Clone(m.Parts))
			}
			h.BreakOff()
			got, err := h.Messages()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.after, slices.Clone(got)); diff != "" {
				t.Errorf("it leaves (-want +got):\n%s", diff)
			}
			for i, m := range handedOut {
				if m != kept[i] || !cmp.Equal(m.Parts, parts[i]) {
					t.Errorf("message %d of a request that was made is %+v", i, m)
				}
			}
		})
	}
}

func TestACallOfTheProvidersIsHalfDoneUntilItsResultIsThere(t *testing.T) {
	for name, tt := range map[string]struct {
		parts llm.Parts
		want  map[string]bool
	}{
		"two, of which one has its result": {
			llm.Parts{begun("server_tool_use", "s1"), llm.Text{Text: "and"}, begun("mcp_tool_use", "s2"), came("web_search_tool_result", "s1")},
			map[string]bool{"s2": true},
		},
		"two without":                  {llm.Parts{begun("server_tool_use", "s1"), begun("server_tool_use", "s2")}, map[string]bool{"s1": true, "s2": true}},
		"one behind other parts":       {llm.Parts{llm.Text{Text: "I look."}, call("c1"), begun("server_tool_use", "s1")}, map[string]bool{"s1": true}},
		"items of another wire":        {llm.Parts{begun("web_search_call", "w1"), begun("reasoning", "r1")}, nil},
		"an item that speaks of calls": {llm.Parts{begun("tool_use_notice", "n1")}, nil},
		"a result without its call":    {llm.Parts{came("web_search_tool_result", "s1")}, nil},
		"an item that is no object":    {llm.Parts{llm.Item{Type: "note", Raw: json.RawMessage(`"x"`)}}, nil},
		"a call of ours":               {llm.Parts{call("c1")}, nil},
	} {
		if got := history.HalfDone(tt.parts); !cmp.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
