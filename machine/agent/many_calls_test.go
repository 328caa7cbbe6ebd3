package agent_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/machine"
	"github.com/pawlrun/pawl/machine/agent"
)

// settling is how many looks at a call a machine takes to bring n calls of one
// answer to their results.
func settling(t *testing.T, cfg agent.Config, tool string, n int) (looks int) {
	t.Helper()
	m := agent.New()
	apply := func(d event.Data) {
		if err := m.Apply(&event.Event{Run: "r", Time: epoch, Data: d}); err != nil {
			t.Fatal(err)
		}
	}
	cfg.Limits.MaxToolCalls = n
	started, err := agent.Start(config(cfg), llm.UserText("do it"))
	if err != nil {
		t.Fatal(err)
	}
	apply(started)
	answer := event.ModelResponse{Cycle: 1, Attempt: 1, Model: "m/a", FinishReason: llm.FinishTool}
	for i := range n {
		id := fmt.Sprint("c1.", i)
		answer.ToolCalls = append(answer.ToolCalls, event.CallRef{CallID: id, Tool: tool})
		answer.Parts = append(answer.Parts, llm.ToolCall{CallID: id, Name: tool, Args: fmt.Appendf(nil, `{"path":"%d"}`, i)})
	}
	var runs []machine.RunTool
	results := 0
	for {
		looks += m.ToDecide()
		changed := false
		for _, a := range slices.Clone(m.Next()) {
			changed = true
			switch a := a.(type) {
			case machine.Record:
				apply(a.Data)
				if _, ok := a.Data.(event.ToolResult); ok {
					results++
				}
			case machine.Resolve:
				apply(resolve(a))
			case machine.RunTool:
				apply(event.ToolStarted{CallID: a.CallID, Attempt: a.Attempt, Key: a.Key})
				runs = append(runs, a)
			case machine.CallModel:
				if a.Cycle > 1 {
					if results != n {
						t.Fatalf("%d of %d calls have results", results, n)
					}
					return looks
				}
				apply(event.ModelRequested{Attempt: a.Attempt, Model: a.Target})
				apply(answer)
			}
		}
		if !changed {
			apply(event.ToolResult{CallID: runs[0].CallID, Tool: tool, Output: runs[0].CallID})
			runs, results = runs[1:], results+1
		}
	}
}

func TestACallIsLookedAtAsOftenAsItMovesHoweverManyAreBesideIt(t *testing.T) {
	for name, tt := range map[string]struct {
		cfg  agent.Config
		tool string
	}{
		"one after the other":     {tool: "send"},
		"reads":                   {tool: "read"},
		"all at once":             {cfg: agent.Config{Dispatch: agent.ParallelAll}, tool: "put"},
		"declined":                {cfg: agent.Config{Policy: gated("send"), Approve: agent.ApproveDeny}, tool: "send"},
		"of a tool that is not":   {tool: "nosuch"},
		"by what they write into": {cfg: agent.Config{Dispatch: agent.ByResource}, tool: "put"},
	} {
		t.Run(name, func(t *testing.T) {
			// Each is resolved, judged, asked about, answered, begun and settled, and looked at before and after.
			const n, most = 3000, 12
			if looks := settling(t, tt.cfg, tt.tool, n); looks > most*n {
				t.Errorf("%d calls are looked at %d times", n, looks)
			}
		})
	}
}
