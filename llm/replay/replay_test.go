package replay_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/replay"
)

func request(run string) *llm.Request {
	return &llm.Request{
		System: "Be kind.", MaxTokens: 100, CacheKey: run,
		Tools: []llm.ToolDef{{Name: "read", Schema: json.RawMessage(`{}`)}},
		Messages: []*llm.Message{
			llm.UserText("do it"),
			{Role: llm.RoleAssistant, Origin: run, Parts: llm.Parts{llm.ToolCall{CallID: run + "-1-1", ProviderID: "p", Name: "read"}}},
			{Role: llm.RoleTool, Parts: llm.Parts{llm.ToolResult{CallID: run + "-1-1", Name: "read", Output: "what it says"}}},
		},
	}
}

func TestTheFirstDifferenceIsNamedWithItsText(t *testing.T) {
	zero := 0.0
	for name, c := range map[string]struct {
		change func(*llm.Request)
		want   replay.Difference
	}{
		"nothing":    {func(*llm.Request) {}, replay.Difference{}},
		"the prompt": {func(r *llm.Request) { r.System = "Be brief." }, replay.Difference{Segment: "system prompt", Offset: 3, Recorded: "Be kind.", Now: "Be brief."}},
		"a tool": {func(r *llm.Request) { r.Tools[0].Name = "write" }, replay.Difference{
			Segment: "tools", Offset: 10, Recorded: `[{"name":"read","schema":{}}]`, Now: `[{"name":"write","schema":{}}]`,
		}},
		"a setting": {func(r *llm.Request) { r.Temperature = &zero }, replay.Difference{
			Segment: "settings", Offset: 32,
			Recorded: `":100,"temperature":null,"schema":null,"provider_tools":null}`, Now: `":100,"temperature":0,"schema":null,"provider_tools":null}`,
		}},
		"a result": {func(r *llm.Request) {
			r.Messages[2] = &llm.Message{Role: llm.RoleTool, Parts: llm.Parts{llm.ToolResult{CallID: "new-1-1", Name: "read", Output: "what he says"}}}
		}, replay.Difference{
			Segment: "message 3 (tool)", Offset: 68, Recorded: `ead","output":"what it says"}]`, Now: `ead","output":"what he says"}]`,
		}},
		"a message more": {func(r *llm.Request) { r.Messages = append(r.Messages, llm.UserText("more")) }, replay.Difference{
			Segment: "message 4", Now: `[{"type":"text","text":"more"}]`,
		}},
		"a message less": {func(r *llm.Request) { r.Messages = r.Messages[:1] }, replay.Difference{
			Segment: "message 2", Recorded: `[{"type":"tool_call","callId":"-1-1","providerId":"p","name"`,
		}},
	} {
		now := request("new")
		c.change(now)
		var got replay.Difference
		m := replay.New("old", []replay.Call{{Request: request("old"), Response: &llm.Response{}}}, func(d replay.Difference) {
			d.Run, d.Call = "", 0
			got = d
		})
		if _, err := m.Generate(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAModelAnswersFromItsPlaceAndReportsEveryOtherRequest(t *testing.T) {
	failure := &llm.Error{Class: llm.ClassOverloaded, Message: "too much"}
	var reported []replay.Difference
	m := replay.New("old", []replay.Call{
		{Request: request("old"), Response: &llm.Response{Parts: llm.Parts{llm.Text{Text: "one"}}}},
		{Request: request("old"), Failure: failure, Partial: "half"},
		{Response: &llm.Response{Parts: llm.Parts{llm.Text{Text: "three"}}}},
	}, func(d replay.Difference) { reported = append(reported, d) })
	ask := func(ordinal int, change func(*llm.Request)) (*llm.Response, error) {
		r := request("new")
		r.Ordinal = ordinal
		change(r)
		return m.Generate(t.Context(), r)
	}
	as := func(*llm.Request) {}
	if resp, err := ask(0, as); err != nil || resp.Parts.Text() != "one" {
		t.Errorf("%+v, %v", resp, err)
	}
	if resp, err := ask(2, as); err != nil || resp.Parts.Text() != "three" {
		t.Errorf("out of order: %+v, %v", resp, err)
	}
	resp, err := ask(1, as)
	if got, ok := errors.AsType[*llm.Error](err); !ok || got.Class != llm.ClassOverloaded || resp.Parts.Text() != "half" {
		t.Errorf("%+v, %v", resp, err)
	}
	if len(reported) != 0 {
		t.Errorf("equal requests: %v", reported)
	}
	// The messages before it are the same values as in the last request.
	changed := request("new")
	for ordinal := range 2 {
		changed.Ordinal = ordinal
		changed.Messages[1] = llm.UserText("something else")
		_, _ = m.Generate(t.Context(), changed)
	}
	if len(reported) != 2 || reported[0].Call != 1 || reported[1].Call != 2 || reported[1].Segment != "message 2 (assistant)" {
		t.Errorf("reported %v", reported)
	}
	for _, ordinal := range []int{-1, 3} {
		_, err := ask(ordinal, as)
		if got, ok := errors.AsType[*llm.Error](err); !ok || got.Class != llm.ClassInvalid || !strings.Contains(got.Message, "recorded 3 model calls") {
			t.Errorf("behind the end: %v", err)
		}
	}
}
