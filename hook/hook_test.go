package hook_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/hook"
)

func hears(context.Context, hook.Call) (hook.Answer, error) { return hook.Answer{}, nil }

func text(s string) *string { return &s }

// What follows from what a gate said, or from its failure. A gate that cannot
// be followed has failed, and one that has failed blocks.
//
// rows: ALF-63, ALF-64
func TestWhatAGateSaysIsFollowedOrBlocks(t *testing.T) {
	args := json.RawMessage(`{"path":"b"}`)
	for name, c := range map[string]struct {
		stage event.HookStage
		says  hook.Answer
		err   error
		want  event.HookResult
		fails string
	}{
		"nothing":                     {event.HookBeforeTool, hook.Answer{}, nil, event.HookResult{Decision: event.HookContinue}, ""},
		"a block":                     {event.HookBeforeTool, hook.Answer{Decision: event.HookBlock, Reason: "no"}, nil, event.HookResult{Decision: event.HookBlock, Reason: "no"}, ""},
		"a question":                  {event.HookBeforeTool, hook.Answer{Decision: event.HookAsk}, nil, event.HookResult{Decision: event.HookAsk}, ""},
		"other arguments":             {event.HookBeforeTool, hook.Answer{Args: args}, nil, event.HookResult{Decision: event.HookRewrite, Args: args}, ""},
		"another output":              {event.HookAfterTool, hook.Answer{Output: text("x")}, nil, event.HookResult{Decision: event.HookRewrite, Output: "x"}, ""},
		"an empty output":             {event.HookAfterTool, hook.Answer{Output: text("")}, nil, event.HookResult{Decision: event.HookRewrite}, ""},
		"an error":                    {event.HookBeforeTool, hook.Answer{Decision: event.HookContinue}, errors.New("it died"), event.HookResult{}, "it died"},
		"arguments that are no JSON":  {event.HookBeforeTool, hook.Answer{Args: json.RawMessage(`{`)}, nil, event.HookResult{}, "no JSON"},
		"arguments behind the call":   {event.HookAfterTool, hook.Answer{Args: args}, nil, event.HookResult{}, "cannot change"},
		"an output before the call":   {event.HookBeforeTool, hook.Answer{Output: text("x")}, nil, event.HookResult{}, "cannot change"},
		"a rewrite to nothing":        {event.HookBeforeTool, hook.Answer{Decision: event.HookRewrite}, nil, event.HookResult{}, "nothing to put"},
		"a rewrite that goes on":      {event.HookBeforeTool, hook.Answer{Decision: event.HookContinue, Args: args}, nil, event.HookResult{}, "and gave a rewrite"},
		"a block with a rewrite":      {event.HookBeforeTool, hook.Answer{Decision: event.HookBlock, Args: args}, nil, event.HookResult{}, "and gave a rewrite"},
		"a question behind the call":  {event.HookAfterTool, hook.Answer{Decision: event.HookAsk}, nil, event.HookResult{}, "has no meaning"},
		"a word that nobody knows":    {event.HookBeforeTool, hook.Answer{Decision: "yes"}, nil, event.HookResult{}, `it said "yes"`},
		"a reason that is a long one": {event.HookBeforeTool, hook.Answer{Decision: event.HookBlock, Reason: strings.Repeat("x", 5000)}, nil, event.HookResult{Decision: event.HookBlock, Reason: strings.Repeat("x", 4000) + "…"}, ""},
		"a reason cut in a character": {event.HookBeforeTool, hook.Answer{Decision: event.HookBlock, Reason: strings.Repeat("x", 3999) + "éé"}, nil, event.HookResult{Decision: event.HookBlock, Reason: strings.Repeat("x", 3999) + "…"}, ""},
	} {
		call := hook.Call{Stage: c.stage, Hook: "guard", CallID: "c"}
		got := hook.Result(call, false, c.says, c.err)
		if c.fails != "" {
			if !got.Failed || got.Decision != event.HookBlock || !strings.Contains(got.Reason, c.fails) || got.Args != nil || got.Output != "" {
				t.Errorf("%s: %+v", name, got)
			}
			// The same from an observer is recorded, and changes nothing.
			if seen := hook.Result(call, true, c.says, c.err); !seen.Failed || seen.Decision != event.HookContinue || seen.Args != nil || seen.Output != "" {
				t.Errorf("%s, from an observer: %+v", name, seen)
			}
			continue
		}
		c.want.CallID, c.want.Hook, c.want.Stage = "c", "guard", c.stage
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

// rows: ALF-70
func TestAnObserverDecidesNothing(t *testing.T) {
	for _, said := range []hook.Answer{
		{Decision: event.HookBlock}, {Decision: event.HookAsk}, {Args: json.RawMessage(`{}`)}, {Output: text("x")}, {Decision: event.HookContinue, Output: text("x")},
	} {
		for _, stage := range hook.Stages() {
			got := hook.Result(hook.Call{Stage: stage}, true, said, nil)
			if got.Decision != event.HookContinue || !got.Failed || got.Args != nil || got.Output != "" {
				t.Errorf("%s: an observer said %+v: %+v", stage, said, got)
			}
		}
	}
}

func TestUnusableHookIsRefusedBeforeTheRun(t *testing.T) {
	for name, c := range map[string]struct {
		hook  hook.Hook
		field string
	}{
		"a gate":                            {hook.Hook{Stage: event.HookBeforeTool, Run: hears, Tools: []string{"fs.*"}}, ""},
		"an observer of the end":            {hook.Hook{Stage: event.HookAfterRun, Kind: hook.Observer, Run: hears}, ""},
		"no stage":                          {hook.Hook{Run: hears}, "Stage"},
		"a stage that is none":              {hook.Hook{Stage: "sometimes", Run: hears}, "Stage"},
		"a kind that is none":               {hook.Hook{Stage: event.HookBeforeRun, Kind: "judge", Run: hears}, "Kind"},
		"a gate at the end":                 {hook.Hook{Stage: event.HookAfterRun, Kind: hook.Gate, Run: hears}, "Kind"},
		"a gate behind a compaction":        {hook.Hook{Stage: event.HookAfterCompaction, Kind: hook.Gate, Run: hears}, "Kind"},
		"tools where the stage has none":    {hook.Hook{Stage: event.HookBeforeRun, Tools: []string{"*"}, Run: hears}, "Tools"},
		"nothing to run":                    {hook.Hook{Stage: event.HookBeforeRun}, "Run"},
		"nothing to run, and a wrong stage": {hook.Hook{Stage: "sometimes"}, "Stage"},
	} {
		err := c.hook.Check()
		field := ""
		if e, ok := errors.AsType[*hook.FieldError](err); ok {
			field = e.Field
		}
		if field != c.field || (err == nil) != (c.field == "") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestHooksHaveANameAKindAndATime(t *testing.T) {
	given := []hook.Hook{
		{Stage: event.HookBeforeTool}, {Stage: event.HookAfterTool}, {Stage: event.HookBeforeTool},
		{Stage: event.HookBeforeTool, Name: "mine", Kind: hook.Observer, Timeout: 1}, {Stage: event.HookAfterRun}, {Stage: event.HookBeforeCompaction},
	}
	var got []string
	for _, h := range hook.Named(given) {
		got = append(got, h.Name+" "+string(h.Kind)+" "+h.Timeout.String())
	}
	want := []string{"before_tool[0] gate 10s", "after_tool[0] observer 10s", "before_tool[1] gate 10s", "mine observer 1ns", "after_run[0] observer 10s", "before_compaction[0] gate 10s"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if given[0].Name != "" {
		t.Error("what was given has changed")
	}
}

// What a gate behind some tools takes away must not come in when the model reads
// on in the whole of the result.
func TestGateAfterToolCoversResultRead(t *testing.T) {
	tools := []string{"web.*"}
	for name, c := range map[string]struct {
		hook hook.Hook
		want string
	}{
		"a gate behind some tools":      {hook.Hook{Stage: event.HookAfterTool, Kind: hook.Gate, Tools: tools}, "web.* reader"},
		"a gate behind all":             {hook.Hook{Stage: event.HookAfterTool, Kind: hook.Gate}, ""},
		"an observer behind some tools": {hook.Hook{Stage: event.HookAfterTool, Kind: hook.Observer, Tools: tools}, "web.*"},
		"a gate before some tools":      {hook.Hook{Stage: event.HookBeforeTool, Kind: hook.Gate, Tools: tools}, "web.*"},
	} {
		if got := strings.Join(c.hook.About("reader"), " "); got != c.want {
			t.Errorf("%s is about %q, want %q", name, got, c.want)
		}
	}
	if len(tools) != 1 {
		t.Errorf("what was given has become %q", tools)
	}
}
