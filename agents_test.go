package pawl_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
)

// researcher is an agent that looks something up and says what it found.
func researcher(turns ...scripted.Turn) pawl.Agent {
	return pawl.Agent{
		Name: "researcher", Model: pawl.Target{Name: "test/small", Client: scripted.New("test", turns...), Price: &llm.Price{Input: 1, Output: 1}},
	}
}

func writer(of pawl.Agent, turns ...scripted.Turn) pawl.Agent {
	return pawl.Agent{
		Model:  pawl.Target{Name: "test/large", Client: scripted.New("test", turns...), Price: &llm.Price{Input: 1, Output: 1}},
		Agents: []pawl.AgentTool{{Name: "research", Description: "Looks things up.", Agent: of}},
	}
}

var research = scripted.Turn{ToolCalls: []scripted.Call{{Name: "research", Arguments: []byte(`{"task":"how high is the tower?"}`)}}}

func TestAnAgentCallsAnotherOne(t *testing.T) {
	store := memory.New(nil)
	asked := scripted.Turn{Text: "330 m", Usage: &llm.Usage{Input: 10, Output: 5}, Expect: &scripted.Expectation{Contains: []string{"how high is the tower?"}}}
	a := writer(researcher(asked), research, scripted.Turn{Text: "It is 330 m high."})
	run, err := a.Start(t.Context(), "Write about the tower.", pawl.Options{Journal: store})
	if err != nil {
		t.Fatal(err)
	}
	s, err := run.Wait()
	if err != nil || s.Text() != "It is 330 m high." {
		t.Fatalf("%+v, %v", s.Outcome, err)
	}
	rows, err := store.Runs(t.Context(), journal.Filter{Parent: run.ID()})
	if err != nil || len(rows) != 1 || rows[0].Name != "researcher" {
		t.Fatalf("%+v, %v", rows, err)
	}
	child, err := pawl.Inspect(t.Context(), store, rows[0].ID)
	if err != nil || child.Text() != "330 m" || child.Cost == nil || child.Cost.USD == 0 || s.Cost.USD <= child.Cost.USD {
		t.Errorf("%+v, %v; the parent cost %v", child, err, s.Cost)
	}
}

func TestWhatIsWrongWithAnOfferedAgentIsReported(t *testing.T) {
	deep := researcher()
	for range pawl.MaxDepth - 1 {
		deep.Agents = []pawl.AgentTool{{Name: "more", Agent: deep}}
	}
	broken := pawl.Agent{Model: pawl.Target{Name: "nameless", Client: scripted.New("test")}, Approvals: pawl.Approvals{Tools: []string{"nothing"}}}
	a := writer(researcher())
	a.Tools = append(a.Tools, pawl.Tool("look", "", func(context.Context, struct{}) (string, error) { return "", nil }))
	a.Agents = append(a.Agents, pawl.AgentTool{Name: "deep", Agent: deep}, pawl.AgentTool{Name: "broken", Agent: broken},
		pawl.AgentTool{Name: "look", Agent: researcher()})
	a.Secrets = []pawl.Secret{{Name: "token", Value: "tok-1234567890", Tools: []string{"research"}}}
	var got []string
	for _, e := range wrongs(t, a.Validate()) {
		got = append(got, e.Field)
	}
	want := []string{"Agents[1].Agent.Agents", "Agents[2].Agent.Model", "Agents[2].Agent.Approvals.Tools", "Tools"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff, a.Validate())
	}
	a.Agents, a.Tools = a.Agents[:1], nil
	if err := a.Validate(); err == nil || !strings.Contains(err.Error(), `Secrets[0]: "research" is an agent`) {
		t.Errorf("a secret for an agent: %v", err)
	}
}

// A run cannot meet a condition on a tool that it lacks. An agent that is offered
// is one, and so is the tool that comes with any other.
func TestAConditionNamesAToolThatIsThere(t *testing.T) {
	a := writer(researcher())
	for _, name := range []string{"research", "result.read", "resarch"} {
		a.Termination.Conditions = append(a.Termination.Conditions, pawl.Condition{Kind: "tool-result", Tool: name, Match: pawl.Match{Contains: "found"}})
	}
	if err := a.Validate(); err == nil || err.Error() != `pawl: agent: Termination.Conditions[2]: there is no tool "resarch"` {
		t.Errorf("%v", err)
	}
}

func TestACapInMoneyNeedsThePricesOfOfferedAgentsToo(t *testing.T) {
	unpriced := func(name string) pawl.Target { return pawl.Target{Name: name, Client: scripted.New("test")} }
	a := writer(pawl.Agent{Model: unpriced("test/free"), Fallbacks: []pawl.Target{researcher().Model, unpriced("test/freer")}})
	a.Agents = append(a.Agents, pawl.AgentTool{Name: "check", Agent: researcher()})
	if err := a.Validate(); err != nil {
		t.Errorf("under the default cap: %v", err)
	}
	for setting, limits := range map[string]pawl.Limits{"usd_per_run": {USDPerRun: 1}, "max_total_cost": {MaxTotalCost: 1}} {
		a.Limits = limits
		all := wrongs(t, a.Validate())
		if len(all) != 1 || all[0].Field != "Limits" || !strings.Contains(all[0].Reason, "no price is known for test/free, test/freer,") {
			t.Errorf("%s: %v", setting, all)
		}
	}
	a.Agents = a.Agents[1:]
	if err := a.Validate(); err != nil {
		t.Errorf("every price is known: %v", err)
	}
}

func TestAChildIsNotTakenUpByAnAgentThatLacksItsModel(t *testing.T) {
	store := memory.New(nil)
	paid := 0
	child := researcher(scripted.Turn{ToolCalls: []scripted.Call{{Name: "pay", Arguments: []byte("{}")}}}, scripted.Turn{Text: "paid"})
	child.Tools = append(child.Tools, pawl.Tool("pay", "Pays.", func(context.Context, struct{}) (string, error) {
		paid++
		return "ok", nil
	}))
	child.Approvals.Tools = []string{"pay"}
	of := func(child pawl.Agent) pawl.Agent { return writer(child, research, scripted.Turn{Text: "done"}) }
	run, err := of(child).Start(t.Context(), "Pay.", pawl.Options{Journal: store})
	if err != nil {
		t.Fatal(err)
	}
	final(t, run)
	rows, err := store.Runs(t.Context(), journal.Filter{Parent: run.ID()})
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
	if err := run.Approve(t.Context(), rows[0].ID+"-1-1", ""); err != nil {
		t.Fatal(err)
	}
	resume := func(child pawl.Agent) pawl.State {
		t.Helper()
		run, err := of(child).Resume(t.Context(), run.ID(), pawl.Options{Journal: store})
		if err != nil {
			t.Fatal(err)
		}
		return final(t, run)
	}
	other := child
	other.Model.Name = "test/other"
	if s := resume(other); s.Parked == nil || !strings.Contains(s.Parked.Detail, "test/small is not among the agent's models") || paid != 0 {
		t.Fatalf("%s, %+v, paid %d times", s.Status, s.Parked, paid)
	}
	if s := resume(child); s.Text() != "done" || paid != 1 {
		t.Errorf("%s, paid %d times", s.Status, paid)
	}
}

func wrongs(t *testing.T, err error) []*pawl.InvalidAgentError {
	t.Helper()
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("%v", err)
	}
	var all []*pawl.InvalidAgentError
	for _, e := range joined.Unwrap() {
		wrong, ok := errors.AsType[*pawl.InvalidAgentError](e)
		if !ok {
			t.Fatalf("%v", e)
		}
		all = append(all, wrong)
	}
	return all
}

func TestAChildsApprovalIsDecidedOnItsOwnRun(t *testing.T) {
	store := memory.New(nil)
	paid := 0
	child := researcher(scripted.Turn{ToolCalls: []scripted.Call{{Name: "pay", Arguments: []byte("{}")}}}, scripted.Turn{Text: "paid"})
	child.Tools = append(child.Tools, pawl.Tool("pay", "Pays.", func(context.Context, struct{}) (string, error) {
		paid++
		return "ok", nil
	}))
	child.Approvals.Tools = []string{"pay"}
	a := writer(child, research, scripted.Turn{Text: "done"})
	run, err := a.Start(t.Context(), "Pay.", pawl.Options{Journal: store})
	if err != nil {
		t.Fatal(err)
	}
	s, err := run.Wait()
	if err != nil || s.Status != pawl.StatusParked || s.Parked.Reason != event.ParkApproval {
		t.Fatalf("%+v, %v", s, err)
	}
	rows, err := store.Runs(t.Context(), journal.Filter{Parent: run.ID()})
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
	asked, err := pawl.Inspect(t.Context(), store, rows[0].ID)
	if err != nil || len(asked.Pending) != 1 {
		t.Fatalf("%+v, %v", asked, err)
	}
	if _, err := child.Resume(t.Context(), rows[0].ID, pawl.Options{Journal: store}); err == nil || !strings.Contains(err.Error(), run.ID()) {
		t.Fatalf("a child was resumed by itself: %v", err)
	}
	if err := run.Approve(t.Context(), asked.Pending[0].CallID, "fine"); err != nil {
		t.Fatal(err)
	}
	again, err := a.Resume(t.Context(), run.ID(), pawl.Options{Journal: store})
	if err != nil {
		t.Fatal(err)
	}
	if s, err = again.Wait(); err != nil || s.Text() != "done" || paid != 1 {
		t.Errorf("%+v, %v, paid %d times", s, err, paid)
	}
}

// What waits in a run below is listed with every run above it, and may be decided
// on the root.
func TestWhatWaitsBelowIsListedOnTheRoot(t *testing.T) {
	store := memory.New(nil)
	leaf := researcher(scripted.Turn{ToolCalls: []scripted.Call{{Name: "pay", Arguments: []byte("{}")}}}, scripted.Turn{Text: "paid"})
	leaf.Tools = append(leaf.Tools, pawl.Tool("pay", "Pays.", func(context.Context, struct{}) (string, error) { return "ok", nil }))
	leaf.Approvals.Tools = []string{"pay"}
	root := writer(writer(leaf, research, scripted.Turn{Text: "between is done"}), research, scripted.Turn{Text: "done"})
	run, err := root.Start(t.Context(), "Pay.", pawl.Options{Journal: store})
	if err != nil {
		t.Fatal(err)
	}
	waited, err := run.Wait()
	if err != nil || waited.Status != pawl.StatusParked || len(waited.Pending) != 1 || waited.Pending[0].Tool != "pay" {
		t.Fatalf("%+v, %v", waited, err)
	}
	looked, err := run.State(t.Context())
	if err != nil || len(looked.Pending) != 1 || looked.Pending[0].CallID != waited.Pending[0].CallID {
		t.Fatalf("%+v, %v", looked, err)
	}
	if err := run.Approve(t.Context(), waited.Pending[0].CallID, "fine"); err != nil {
		t.Fatal(err)
	}
	again, err := root.Resume(t.Context(), run.ID(), pawl.Options{Journal: store})
	if err != nil {
		t.Fatal(err)
	}
	if s, err := again.Wait(); err != nil || s.Text() != "done" || len(s.Pending) != 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

// sayings are the ways to decide about a call, each with a secret in it.
var sayings = map[string]func(ctx context.Context, run *pawl.Run, call, secret string) error{
	"approve": func(ctx context.Context, run *pawl.Run, call, secret string) error {
		return run.Approve(ctx, call, "use "+secret)
	},
	"reject": func(ctx context.Context, run *pawl.Run, call, secret string) error {
		return run.Reject(ctx, call, "not with "+secret)
	},
	"edit": func(ctx context.Context, run *pawl.Run, call, secret string) error {
		return run.ApproveEdited(ctx, call, []byte(`{"to":"`+secret+`"}`), "with "+secret)
	},
}

func TestAChildsSecretStaysOutOfWhatIsDecidedThroughItsParent(t *testing.T) {
	const value = "tok-1234567890-xyz"
	for name, say := range sayings {
		t.Run(name, func(t *testing.T) {
			store := memory.New(nil)
			child := researcher(scripted.Turn{ToolCalls: []scripted.Call{{Name: "pay", Arguments: []byte(`{"to":"ann"}`)}}}, scripted.Turn{Text: "paid"})
			child.Tools = append(child.Tools, pawl.Tool("pay", "Pays.", func(context.Context, struct {
				To string `json:"to"`
			}) (string, error) {
				return "ok", nil
			}))
			child.Approvals.Tools, child.Secrets = []string{"pay"}, []pawl.Secret{{Name: "token", Value: value}}
			a := writer(child, research, scripted.Turn{Text: "done"})
			run, err := a.Start(t.Context(), "Pay.", pawl.Options{Journal: store})
			if err != nil {
				t.Fatal(err)
			}
			if s, err := run.Wait(); err != nil || s.Status != pawl.StatusParked {
				t.Fatalf("%+v, %v", s, err)
			}
			rows, err := store.Runs(t.Context(), journal.Filter{Parent: run.ID()})
			if err != nil || len(rows) != 1 {
				t.Fatal(rows, err)
			}
			if err := say(t.Context(), run, rows[0].ID+"-1-1", value); err != nil {
				t.Fatal(err)
			}
			again, err := a.Resume(t.Context(), run.ID(), pawl.Options{Journal: store})
			if err != nil {
				t.Fatal(err)
			}
			if s, err := again.Wait(); err != nil || s.Text() != "done" {
				t.Fatalf("%+v, %v", s, err)
			}
			var stored strings.Builder
			for _, id := range []string{run.ID(), rows[0].ID} {
				records, err := store.Records(t.Context(), id, 0, 0)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range records {
					stored.Write(r.Body)
				}
			}
			if text := stored.String(); strings.Contains(text, value) || !strings.Contains(text, "with ${secret:token}") && !strings.Contains(text, "use ${secret:token}") {
				t.Errorf("the journals:\n%s", text)
			}
		})
	}
}

func TestWhatOneAgentKeepsSecretIsInNoJournalOfItsTree(t *testing.T) {
	const ofParent, ofChild = "tok-1234567890-xyz", "pw-abcdefghij-123"
	look := pawl.Tool("look", "Looks around.", func(context.Context, struct{}) (string, error) {
		return "there are " + ofParent + " and " + ofChild, nil
	})
	looks := scripted.Turn{ToolCalls: []scripted.Call{{Name: "look", Arguments: []byte(`{}`)}}}
	store := memory.New(nil)
	child := researcher(looks, scripted.Turn{Text: "seen"})
	child.Tools, child.Secrets = append(child.Tools, look), []pawl.Secret{{Name: "child", Value: ofChild}}
	a := writer(child, looks, research, scripted.Turn{Text: "done"})
	a.Tools, a.Secrets = append(a.Tools, look), []pawl.Secret{{Name: "parent", Value: ofParent}}
	run, err := a.Start(t.Context(), "Look.", pawl.Options{Journal: store})
	if err != nil {
		t.Fatal(err)
	}
	if s, err := run.Wait(); err != nil || s.Text() != "done" {
		t.Fatalf("%+v, %v", s, err)
	}
	rows, err := store.Runs(t.Context(), journal.Filter{Parent: run.ID()})
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
	for name, id := range map[string]string{"parent": run.ID(), "child": rows[0].ID} {
		records, err := store.Records(t.Context(), id, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		var stored strings.Builder
		for _, r := range records {
			stored.Write(r.Body)
		}
		text := stored.String()
		if strings.Contains(text, ofParent) || strings.Contains(text, ofChild) || !strings.Contains(text, "there are ${secret:parent} and ${secret:child}") {
			t.Errorf("the %s's journal:\n%s", name, text)
		}
	}
}
