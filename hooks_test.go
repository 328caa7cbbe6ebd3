package pawl_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/hook"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
)

func answering(a pawl.HookAnswer) func(context.Context, pawl.HookCall) (pawl.HookAnswer, error) {
	return func(context.Context, pawl.HookCall) (pawl.HookAnswer, error) { return a, nil }
}

func TestHooksOfAProgramHoldWhateverTheyFailAt(t *testing.T) {
	for name, c := range map[string]struct {
		run  func(context.Context, pawl.HookCall) (pawl.HookAnswer, error)
		want string
	}{
		"blocks": {answering(pawl.HookAnswer{Decision: event.HookBlock, Reason: "not now"}), "blocked_by_hook"},
		"panics": {func(context.Context, pawl.HookCall) (pawl.HookAnswer, error) { panic("oh") }, "hook_failed"},
		"fails": {func(context.Context, pawl.HookCall) (pawl.HookAnswer, error) {
			return pawl.HookAnswer{}, errors.New("down")
		}, "hook_failed"},
	} {
		t.Run(name, func(t *testing.T) {
			ran := false
			a := echoing()
			a.Tools = []tool.Tool{pawl.Tool("echo", "Say it again.", func(context.Context, struct {
				Text string `json:"text"`
			}) (string, error) {
				ran = true
				return "", nil
			})}
			a.Hooks = []pawl.Hook{{Stage: event.HookBeforeTool, Run: c.run}}
			run := start(t, a, "echo hi")
			if s := final(t, run); s.Outcome == nil || !s.Outcome.OK {
				t.Errorf("ended with %+v", s.Outcome)
			}
			got := ""
			for e, err := range run.Events() {
				if err != nil {
					t.Fatal(err)
				}
				if d, ok := e.Data.(event.ToolResult); ok {
					got = string(d.ErrorType)
				}
			}
			if ran || got != c.want {
				t.Errorf("ran %v, settled as %q", ran, got)
			}
		})
	}
}

// An approval that the agent asks for is asked for whatever a hook says, and is
// about what the hook left.
func TestAHookOpensNoGateOfTheAgents(t *testing.T) {
	var asked []string
	a := echoing()
	a.Approvals.Tools = []string{"echo"}
	a.Hooks = []pawl.Hook{
		{Stage: event.HookBeforeTool, Run: answering(pawl.HookAnswer{Args: []byte(`{"text":"ho"}`)})},
		{Stage: event.HookBeforeTool, Run: answering(pawl.HookAnswer{Decision: event.HookContinue, Reason: "go"})},
	}
	a.Approvals.Ask = func(_ context.Context, p pawl.Approval) (pawl.Decision, error) {
		asked = append(asked, string(p.Args))
		return pawl.Decision{}, nil
	}
	final(t, start(t, a, "echo hi"))
	if strings.Join(asked, " ") != `{"text":"ho"}` {
		t.Errorf("asked about %v", asked)
	}
}

func TestInvalidHookIsReportedBeforeTheRun(t *testing.T) {
	fine := answering(pawl.HookAnswer{})
	a := echoing()
	a.Hooks = []pawl.Hook{
		{Stage: "sometimes", Run: fine},
		{Stage: event.HookBeforeTool},
		{Stage: event.HookAfterRun, Kind: hook.Gate, Run: fine},
		{Stage: event.HookBeforeRun, Tools: []string{"echo"}, Run: fine},
		{Stage: event.HookBeforeTool, Kind: "judge", Run: fine},
		{Stage: event.HookBeforeTool, Name: "twice", Run: fine},
		{Stage: event.HookBeforeTool, Name: "twice", Run: fine},
		{Stage: event.HookAfterTool, Name: "twice", Kind: hook.Gate, Run: fine},
	}
	err := a.Validate()
	for _, want := range []string{
		"Hooks[0].Stage: is none of before_run", "Hooks[1].Run: is missing", "Hooks[2].Kind: is gate, and there is nothing left",
		"Hooks[3].Tools: are given", "Hooks[4].Kind: is neither", "Hooks[6].Name: twice is the name of two hooks",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not said in:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "Hooks[7]") || strings.Contains(err.Error(), "Hooks[5]") {
		t.Error(err)
	}
}

// A gate behind one tool also sees what the model reads on of its long results.
func TestGateAfterToolSeesResultsThatAreReadOn(t *testing.T) {
	var seen []string
	long := strings.Repeat("word ", 500) + "the key is 1234 " + strings.Repeat("word ", 500)
	a := echoing()
	a.Limits.MaxResultChars = 1000
	a.Tools = []tool.Tool{pawl.Tool("fetch", "Fetch it.", func(context.Context, struct{}) (string, error) { return long, nil })}
	a.Hooks = []pawl.Hook{{
		Stage: event.HookAfterTool, Kind: hook.Gate, Tools: []string{"fetch"},
		Run: func(_ context.Context, c pawl.HookCall) (pawl.HookAnswer, error) {
			seen = append(seen, c.Tool)
			if strings.Contains(c.Result.Output, "1234") {
				return pawl.HookAnswer{Decision: event.HookBlock, Reason: "it holds a key"}, nil
			}
			return pawl.HookAnswer{}, nil
		},
	}}
	model := &recorder{}
	model.answer = func(req *llm.Request) *llm.Response {
		last := req.Messages[len(req.Messages)-1]
		call := llm.ToolCall{Name: "fetch", Args: json.RawMessage(`{}`)}
		for _, p := range last.Parts {
			r, ok := p.(llm.ToolResult)
			switch {
			case !ok:
			case r.Name == "fetch":
				_, rest, _ := strings.Cut(r.Output, `{"handle":"`)
				handle, _, _ := strings.Cut(rest, `"`)
				call = llm.ToolCall{Name: "result.read", Args: json.RawMessage(`{"handle":"` + handle + `","offset":2400}`)}
			case strings.Contains(r.Output, "1234") || !strings.Contains(r.Output, "it holds a key"):
				t.Errorf("the model sees %s", r.Output)
				fallthrough
			default:
				return textual("done")
			}
		}
		return &llm.Response{Parts: llm.Parts{call}, Finish: llm.FinishTool}
	}
	a.Model = pawl.Target{Name: "test/model", Client: model, Price: &llm.Price{}}
	if s := final(t, start(t, a, "fetch it")); s.Outcome == nil || !s.Outcome.OK {
		t.Errorf("ended with %+v", s.Outcome)
	}
	if strings.Join(seen, " ") != "fetch result.read" {
		t.Errorf("heard about %v", seen)
	}
}
