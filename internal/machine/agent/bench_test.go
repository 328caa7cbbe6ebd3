package agent_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/llm"
)

// record is the decision that is due, nil when it is not one.
func record(m *agent.Machine) event.Data {
	actions := m.Next()
	if len(actions) == 0 {
		return nil
	}
	r, _ := actions[0].(machine.Record)
	return r.Data
}

// cycler drives a machine through whole cycles of some calls with as little
// around it as there can be.
type cycler struct {
	m     *agent.Machine
	event event.Event
	calls int
	cycle int

	results int
}

var outputs = [...]string{"ok", "fine", "good"}

func newCycler(t testing.TB, calls int) *cycler {
	cfg := agent.Config{}
	cfg.Limits.MaxCycles, cfg.Limits.MaxToolCalls, cfg.Compact.Window = 1<<40, 1<<40, 1<<40
	started, err := agent.Start(config(cfg), llm.UserText("go"))
	if err != nil {
		t.Fatal(err)
	}
	c := &cycler{m: agent.New(), calls: calls, event: event.Event{Run: "r", Time: epoch}}
	c.apply(t, started)
	return c
}

func (c *cycler) apply(t testing.TB, d event.Data) {
	c.event.Data = d
	if err := c.m.Apply(&c.event); err != nil {
		t.Fatal(err)
	}
}

// run is one cycle, from cycle.start to tool.results, as a driver does it.
func (c *cycler) run(t testing.TB) {
	c.cycle++
	var running []string
	for {
		actions := c.m.Next()
		for _, a := range actions {
			switch a := a.(type) {
			case machine.Record:
				c.apply(t, a.Data)
				if _, ok := a.Data.(event.ToolResults); ok {
					return
				}
			case machine.CallModel:
				c.apply(t, event.ModelRequested{Attempt: a.Attempt, Model: a.Target})
				c.apply(t, c.answer(a))
			case machine.Resolve:
				c.apply(t, event.ToolCall{
					CallID: a.CallID, Tool: a.Call.Name, Args: a.Call.Args, Effect: event.EffectPure, ReadOnly: true, Concurrent: true,
				})
			case machine.RunTool:
				c.apply(t, event.ToolStarted{CallID: a.CallID, Attempt: a.Attempt, Key: a.Key})
				running = append(running, a.CallID)
			}
		}
		if len(actions) == 0 {
			c.results++ // no result like the one before, or the run is stuck
			c.apply(t, event.ToolResult{CallID: running[0], Tool: "read", Output: outputs[c.results%len(outputs)]})
			running = running[1:]
		}
	}
}

var benchArgs = json.RawMessage(`{"path":"a"}`)

func (c *cycler) answer(a machine.CallModel) event.ModelResponse {
	d := event.ModelResponse{Cycle: a.Cycle, Attempt: 1, FinishReason: llm.FinishTool, Model: a.Target}
	for i := range c.calls {
		id := "c" + strconv.Itoa(c.cycle) + "." + strconv.Itoa(i)
		d.ToolCalls = append(d.ToolCalls, event.CallRef{CallID: id, Tool: "read"})
		d.Parts = append(d.Parts, llm.ToolCall{CallID: id, Name: "read", Args: benchArgs})
	}
	return d
}

func BenchmarkCycle(b *testing.B) {
	for _, calls := range []int{1, 8, 64} {
		b.Run(fmt.Sprint(calls, " calls"), func(b *testing.B) {
			c := newCycler(b, calls)
			b.ReportAllocs()
			for b.Loop() {
				c.run(b)
			}
		})
	}
}

// TestACycleAllocatesWithinItsBounds is the gate on the pure machine: what one
// cycle with one call costs, the events of the test itself included, and that
// it does not grow with the length of the run.
func TestACycleAllocatesWithinItsBounds(t *testing.T) {
	c := newCycler(t, 1)
	early := testing.AllocsPerRun(200, func() { c.run(t) })
	for range 5000 {
		c.run(t)
	}
	late := testing.AllocsPerRun(200, func() { c.run(t) })
	const most = 55 // the race detector adds one
	if early > most || late > most {
		t.Errorf("a cycle allocates %v times at first and %v times after 5000 cycles, at most %d allowed", early, late, most)
	}
	if late > early+1 {
		t.Errorf("a cycle allocates %v times at first and %v times after 5000 cycles", early, late)
	}
	t.Logf("%v allocations a cycle, %v after 5000", early, late)
}
