package tool_test

import (
	"encoding/json"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
)

func TestWhatAToolDoesNotDeclareIsAssumedToBeDangerous(t *testing.T) {
	for _, tt := range []struct {
		name string
		tool tool.Tool
		want event.Labels
	}{
		{"nothing declared", tool.Tool{}, event.Labels{Untrusted: true, Outgoing: true}},
		{"read-only alone", tool.Tool{ReadOnly: true}, event.Labels{Untrusted: true}},
		{"declared", tool.Tool{Labels: &event.Labels{Private: true}}, event.Labels{Private: true}},
		{"declared harmless", tool.Tool{Labels: &event.Labels{}}, event.Labels{}},
		{"by the call", tool.Tool{Labels: &event.Labels{Private: true}, LabelsFor: func(args json.RawMessage, facts *event.Facts) event.Labels {
			return event.Labels{Outgoing: string(args) == `{}` && facts.Risk == event.RiskSend}
		}, Facts: func(json.RawMessage) event.Facts { return event.Facts{Risk: event.RiskSend} }}, event.Labels{Outgoing: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.tool.Name, tt.tool.Run = "x", noop
			got := newSet(t, tt.tool).Resolve("c", llm.ToolCall{Name: "x", Args: json.RawMessage(`{}`)})
			if got.Problem != nil || got.Labels != tt.want {
				t.Errorf("labels %+v, problem %v", got.Labels, got.Problem)
			}
		})
	}
	s := newSet(t, tool.Tool{Name: "x", Run: noop, LabelsFor: func(json.RawMessage, *event.Facts) event.Labels { panic("no") }})
	if got := s.Resolve("c", llm.ToolCall{Name: "x"}); got.Problem == nil || got.Problem.Type != event.ErrorPanic {
		t.Errorf("labels that panic: %+v", got.Problem)
	}
}

func TestASetFencesWhenSomeResultMayBeUntrusted(t *testing.T) {
	trusted := tool.Tool{Name: "a", Run: noop, Labels: &event.Labels{Private: true}}
	if newSet(t, trusted).Fences() || newSet(t).Fences() || (*tool.Set)(nil).Fences() {
		t.Error("trusted tools need a fence")
	}
	for name, other := range map[string]tool.Tool{
		"undeclared":  {Name: "b", Run: noop},
		"untrusted":   {Name: "b", Run: noop, Labels: &event.Labels{Untrusted: true}},
		"by the call": {Name: "b", Run: noop, LabelsFor: func(json.RawMessage, *event.Facts) event.Labels { return event.Labels{} }},
	} {
		if !newSet(t, trusted, other).Fences() {
			t.Errorf("%s: no fence", name)
		}
	}
}
