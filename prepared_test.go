package pawl_test

import (
	"encoding/json"
	"strconv"
	"sync"
	"testing"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
)

// asked is a model that counts how often an agent was validated: that asks the model
// once for the tools which it is to run.
type asked struct {
	*scripted.Model
	mu    sync.Mutex
	times int
}

func (a *asked) Encode(r *llm.Request) (*llm.Encoded, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(r.Messages) == 0 {
		a.times++
	}
	return &llm.Encoded{}, nil
}

// An agent and those that it offers are prepared once for all runs.
func TestAnAgentIsPreparedOnceForItsRuns(t *testing.T) {
	const runs = 16
	below := &asked{Model: scripted.New("test", repeated(runs, scripted.Turn{Text: "330 m"})...)}
	var turns []scripted.Turn
	for i := range runs {
		turns = append(turns, scripted.Turn{ToolCalls: []scripted.Call{{Name: "research", Arguments: json.RawMessage(`{"task":"find ` + strconv.Itoa(i) + `"}`)}}}, scripted.Turn{Text: "done"})
	}
	p, err := pawl.Agent{
		Model: pawl.Target{Name: "test/large", Client: scripted.New("test", turns...), Price: &llm.Price{}},
		Agents: []pawl.AgentTool{{Name: "research", Description: "Looks things up.", Agent: pawl.Agent{
			Model: pawl.Target{Name: "test/small", Client: below, Price: &llm.Price{}}, ModelSettings: pawl.ModelSettings{ProviderTools: []string{"web_search"}},
		}}},
	}.Prepare()
	if err != nil {
		t.Fatal(err)
	}
	for range runs {
		r, err := p.Start(t.Context(), "go", pawl.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if s, err := r.Wait(); err != nil || s.Outcome == nil || !s.Outcome.Completed {
			t.Fatalf("%+v, %v", s.Outcome, err)
		}
	}
	if below.times != 1 {
		t.Errorf("prepared %d times", below.times)
	}
}

func repeated(n int, turn scripted.Turn) []scripted.Turn {
	var turns []scripted.Turn
	for range n {
		turns = append(turns, turn)
	}
	return turns
}
