package agent_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/llm"
)

// settling is how many looks at a call a machine takes to bring n calls of one
// answer to their results, the last of one tool and the others of another.
func settling(t *testing.T, cfg agent.Config, last, tool string, n int) (looks int) {
	t.Helper()
	m, now := agent.New(), epoch
	apply := func(d event.Data) {
		if _, ok := d.(event.ToolResult); ok {
			now = now.Add(time.Millisecond)
		}
		if err := m.Apply(&event.Event{Run: "r", Time: now, Data: d}); err != nil {
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
		id, tool := fmt.Sprint("c1.", i), tool
		if i == n-1 {
			tool = last
		}
		answer.ToolCalls = append(answer.ToolCalls, event.CallRef{CallID: id, Tool: tool})
		answer.Parts = append(answer.Parts, llm.ToolCall{CallID: id, Name: tool, Args: fmt.Appendf(nil, `{"path":"%d"}`, i)})
	}
	var runs []machine.RunTool
	children := map[string]string{}
	results := 0
	for {
		due, looked := m.Looking()
		looks += looked
		changed := false
		for _, a := range slices.Clone(due) {
			if c, ok := a.(machine.StartChild); ok && children[c.Call.CallID] != "" {
				continue // it is under way
			}
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
			case machine.StartChild:
				id := a.Call.CallID
				children[id] = "r-" + id
				apply(event.ToolStarted{CallID: id, Attempt: 1})
				apply(event.ChildStarted{Child: children[id], CallID: id})
				apply(event.BudgetReserved{ID: "1", Run: children[id]})
				runs = append(runs, *a.Call)
			case machine.RunHook:
				apply(event.HookResult{CallID: a.CallID, Hook: a.Hook, Stage: a.Stage, Observer: a.Observer, Decision: event.HookContinue})
			case machine.Ask:
				p := a.Questions[0]
				if p.ExpiresAt != nil {
					now = *p.ExpiresAt
					apply(event.ToolApprovalResolved{CallID: p.ID, Kind: event.ApprovalExpired, Digest: p.Digest, Policy: p.Policy, At: now})
					continue
				}
				apply(event.ToolApprovalResolved{CallID: p.ID, Kind: event.ApprovalApproved, Digest: p.Digest, Policy: p.Policy, Approver: "ann", At: epoch})
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
			if child := children[runs[0].CallID]; child != "" {
				apply(event.BudgetCommitted{ID: "1", Run: child, Usage: &llm.Usage{}})
				apply(event.ChildFinished{Child: child, CallID: runs[0].CallID})
			}
			apply(event.ToolResult{CallID: runs[0].CallID, Tool: runs[0].Tool, Output: runs[0].CallID})
			runs, results = runs[1:], results+1
		}
	}
}

func TestACallIsLookedAtAsOftenAsItMovesHoweverManyAreBesideIt(t *testing.T) {
	if testing.Short() {
		t.Skip("measures how time grows")
	}
	asks, later := gated("send"), agent.Approvals{Seconds: 60}
	observer := []agent.Hook{{Stage: event.HookAfterTool, Name: "tests", Observer: true}}
	hooks := []agent.Hook{{Stage: event.HookBeforeTool, Name: "tells", Observer: true}, {Stage: event.HookBeforeTool, Name: "guards"}}
	for name, tt := range map[string]struct {
		cfg        agent.Config
		last, tool string
	}{
		"one after the other":                  {tool: "send"},
		"reads":                                {tool: "read"},
		"all at once":                          {cfg: agent.Config{Dispatch: agent.ParallelAll}, tool: "put"},
		"declined":                             {cfg: agent.Config{Policy: gated("send"), Approve: agent.ApproveDeny}, tool: "send"},
		"of a tool that is not":                {tool: "nosuch"},
		"observed":                             {cfg: agent.Config{Hooks: observer}, tool: "put"},
		"guarded":                              {cfg: agent.Config{Hooks: hooks}, tool: "put"},
		"put to a person":                      {cfg: agent.Config{Policy: asks}, tool: "send"},
		"beside one that is":                   {cfg: agent.Config{Policy: asks, Dispatch: agent.ParallelAll}, last: "send", tool: "put"},
		"beside one that will not be for ever": {cfg: agent.Config{Policy: asks, Dispatch: agent.ParallelAll, Approvals: later}, last: "send", tool: "put"},
		"beside one whose time is over":        {cfg: agent.Config{Policy: asks, Dispatch: agent.ParallelAll, Approvals: agent.Approvals{Seconds: 0.1}}, last: "send", tool: "put"},
		"agents":                               {cfg: agent.Config{Dispatch: agent.ParallelAll}, tool: "hire"},
		"by what they write into":              {cfg: agent.Config{Dispatch: agent.ByResource}, tool: "put"},
	} {
		t.Run(name, func(t *testing.T) {
			// Each is resolved, judged, asked about, answered, begun and settled, and looked at before and after.
			const n, most = 256, 12
			if looks := settling(t, tt.cfg, cmp.Or(tt.last, tt.tool), tt.tool, n); looks > most*n {
				t.Errorf("%d calls are looked at %d times", n, looks)
			}
		})
	}
}

// Children that go, and people who are asked, are answered one at a time.
func TestWhatHundredsOfCallsAskForIsNotMadeAnewEachTime(t *testing.T) {
	if testing.Short() {
		t.Skip("measures how time grows")
	}
	const n = 100
	for name, tt := range map[string]struct {
		call string
		cfg  agent.Config
	}{
		"children that go":      {"hire a", agent.Config{Dispatch: agent.ParallelAll}},
		"questions to a person": {"send a", agent.Config{Policy: gated("send"), Dispatch: agent.ParallelAll}},
	} {
		t.Run(name, func(t *testing.T) {
			tt.cfg.Limits.MaxToolCalls, tt.cfg.Limits.MaxParallelTools = budget.None, budget.None
			p := newPlay(t, tt.cfg)
			p.answer(asks("", slices.Repeat([]string{tt.call}, n)...))
			for _, a := range slices.Clone(p.live.Next()) {
				if a, ok := a.(machine.StartChild); ok {
					p.apply(event.ToolStarted{CallID: a.Call.CallID, Attempt: 1})
					p.apply(event.ChildStarted{CallID: a.Call.CallID, Child: "k" + a.Call.CallID})
				}
			}
			due := len(p.live.Next())
			if ask, ok := p.live.Next()[0].(machine.Ask); ok {
				due = len(ask.Questions)
			}
			if due != n {
				t.Fatalf("%d of %d calls ask for something", due, n)
			}
			if made := testing.AllocsPerRun(10, func() { p.live.Next() }); made >= n {
				t.Errorf("to ask for %d again takes %.0f allocations", n, made)
			}
		})
	}
}

// One after the other they wait for a file, and each end of one looks for the next.
func TestCallsThatWaitForOneResourceAreNotListedAnewEachTime(t *testing.T) {
	for _, mode := range []agent.Dispatch{agent.ParallelAll, agent.ByResource} {
		p := newPlay(t, agent.Config{Dispatch: mode, Limits: budget.Limits{MaxToolCalls: budget.None}})
		p.answer(asks("", slices.Repeat([]string{"put a"}, 60)...))
		if made := testing.AllocsPerRun(10, func() { p.live.Next() }); made > 2 {
			t.Errorf("%s: to find that none of 60 may start takes %.0f allocations", mode, made)
		}
	}
}
