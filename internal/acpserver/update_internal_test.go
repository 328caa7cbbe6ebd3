package acpserver

import (
	"encoding/json"
	"testing"

	"github.com/coder/acp-go-sdk"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/sessions"
	"github.com/pawlrun/pawl/llm"
)

func TestUsageIsThatOfTheLastRequestAndTheWholeRun(t *testing.T) {
	config, err := json.Marshal(agent.Config{Targets: []agent.Target{{Model: "acme/one", ContextWindow: 1000}, {Model: "acme/two"}}})
	if err != nil {
		t.Fatal(err)
	}
	tr := newTranslator("r", "/")
	tr.translate(&event.Event{Data: event.RunStarted{Config: config}}, false)
	for _, step := range []struct {
		model   string
		input   int64
		used    int
		spent   float64
		unknown bool
	}{{"acme/one", 100, 110, 0.5, false}, {"acme/two", 100, 0, 0, true}, {"acme/one", 300, 310, 1.5, false}} {
		answer := event.ModelResponse{Model: step.model, Usage: llm.Usage{Input: step.input, Output: 10}, Cost: llm.Cost{USD: 0.5, Priced: true}}
		updates := tr.translate(&event.Event{Data: answer}, false)
		var u *acp.SessionUsageUpdate
		for _, each := range updates {
			if each.UsageUpdate != nil {
				u = each.UsageUpdate
			}
		}
		switch {
		case step.unknown && u != nil:
			t.Errorf("without a window the usage is %+v", u)
		case !step.unknown && (u == nil || u.Used != step.used || u.Size != 1000 || u.Cost.Amount != step.spent):
			t.Errorf("the usage is %+v, want %d tokens and USD %v", u, step.used, step.spent)
		}
	}
}

// The output of a command is a block of code, whatever it prints.
func TestTheOutputOfACommandIsCode(t *testing.T) {
	tr := newTranslator("r", "/")
	tr.translate(&event.Event{Data: event.ToolCall{CallID: "c", Tool: "shell.exec", Args: json.RawMessage(`{"command": "ls"}`)}}, false)
	updates := tr.translate(&event.Event{Data: event.ToolResult{CallID: "c", Tool: "shell.exec", Output: "# a\n```\n"}}, false)
	if got := updates[0].ToolCallUpdate.Content[0].Content.Content.Text.Text; got != "````console\n# a\n```\n````" {
		t.Errorf("the output is %q", got)
	}
}

// A form without fields is a permission: allowed, it is answered.
func TestAConsentIsAPermissionRequest(t *testing.T) {
	q := event.ToolInputRequired{CallID: "c", Tool: "docs.ask", Form: event.Form{Message: "The server asks.", Consent: "answers of a model for docs, USD 0.10"}}.Question()
	if r := permission("s", "/", q); *r.ToolCall.Title != "docs.ask: answers of a model for docs, USD 0.10" || len(r.Options) != 2 {
		t.Errorf("the request is %+v with the title %q", r, *r.ToolCall.Title)
	}
	s := New(Options{Host: &sessions.Host{}})
	for option, want := range map[acp.PermissionOptionId]event.ApprovalKind{allowOnce: event.ApprovalAnswered, rejectOnce: event.ApprovalRejected} {
		d, err := s.resolution(q, acp.NewRequestPermissionOutcomeSelected(option))
		if err != nil || d.Kind != want || want == event.ApprovalAnswered && string(d.Args) != "{}" {
			t.Errorf("%s decides %+v, %v", option, d, err)
		}
	}
}
