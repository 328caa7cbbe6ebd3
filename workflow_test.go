package pawl_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/shell"
)

func does(text string) func(context.Context, pawl.Values) (pawl.Output, error) {
	return func(context.Context, pawl.Values) (pawl.Output, error) { return pawl.Output{Text: text}, nil }
}

func TestWhatIsWrongWithAWorkflowIsReportedByItsFields(t *testing.T) {
	said := func(pawl.Values) (bool, error) { return true, nil }
	self := &pawl.Workflow{}
	self.Steps = []pawl.Step{{ID: "again", Workflow: self}}
	for name, c := range map[string]struct {
		w    pawl.Workflow
		want []string
	}{
		"no steps":     {pawl.Workflow{}, []string{"Steps: there is none"}},
		"no id":        {pawl.Workflow{Steps: []pawl.Step{{ID: "a.b", Func: does("")}}}, []string{`Steps[0].ID: "a.b" is not made of letters, digits, - and _`}},
		"two of an id": {pawl.Workflow{Steps: []pawl.Step{{ID: "a", Func: does("")}, {ID: "a", Func: does("")}}}, []string{`Steps[1]: the id "a" is another step's too`}},
		"nothing and two things to do": {pawl.Workflow{Steps: []pawl.Step{{ID: "a"}, {ID: "b", Func: does(""), Steps: []pawl.Step{{ID: "c", Func: does("")}}}}}, []string{
			"Steps[0]: it says 0 things to do instead of one", "Steps[1]: it says 2 things to do instead of one"}},
		"a cycle": {pawl.Workflow{Steps: []pawl.Step{{ID: "a", Func: does(""), DependsOn: []string{"b"}}, {ID: "b", Func: does(""), DependsOn: []string{"a"}}}}, []string{
			"Steps[0]: it depends on itself, through others"}},
		"unknown names": {pawl.Workflow{Steps: []pawl.Step{{ID: "a", Agent: "coder", DependsOn: []string{"z"}}, {ID: "b", Loop: &pawl.Loop{
			StopWhen: []pawl.Stop{{Judge: "judge"}}, Steps: []pawl.Step{{ID: "c", Agent: "coder"}}}}}}, []string{
			`Steps[0].Agent: there is no agent "coder"`, `Steps[1].Loop.StopWhen[0].Judge: there is no agent "judge"`,
			`Steps[1].Loop.StopWhen[0].Judge: the Schema of the agent "judge" has neither "done" nor "verdict"`,
			`Steps[1].Loop.Steps[0].Agent: there is no agent "coder"`, `Steps[0]: it depends on "z", which is no step of the same plan`}},
		"nothing that evaluates or runs": {pawl.Workflow{Steps: []pawl.Step{{ID: "a", Condition: "true", Command: []string{"true"}}}}, []string{
			"Steps[0].Condition: needs Expressions, which evaluates it", "Steps[0].Command: needs Commands, which run it"}},
		"a loop that contradicts itself": {pawl.Workflow{Steps: []pawl.Step{{ID: "a", Func: does(""), Loop: &pawl.Loop{
			Items: 3, Max: 2, StopWhen: []pawl.Stop{{}, {Func: said, Regex: "("}}}}}}, []string{
			"Steps[0].Loop.Items: are no JSON array: json: cannot unmarshal number into Go value of type []json.RawMessage",
			"Steps[0].Loop.StopWhen[0]: has 0 reasons instead of one", "Steps[0].Loop.StopWhen[1].Regex: error parsing regexp: missing closing ): `(?i)(`",
			"Steps[0].Loop.StopWhen[1]: has 2 reasons instead of one",
			"Steps[0].Loop.Items: a loop over items has no cap, no delay and nothing to stop it"}},
		"a million items": {pawl.Workflow{Steps: []pawl.Step{{ID: "a", Func: does(""), Loop: &pawl.Loop{Items: make([]int, 1_000_000)}}}}, []string{
			"Steps[0].Loop.Items: are 1000000, and at most 100000 may be (MaxItems)"}},
		"what nobody does": {pawl.Workflow{Steps: []pawl.Step{{ID: "a", Func: does(""), Instructions: "Do it.", Timeout: -1, Loop: &pawl.Loop{Steps: []pawl.Step{{ID: "b", Func: does("")}}}}}}, []string{
			"Steps[0].Timeout: -1ns is below 0", "Steps[0].Instructions: are for an Agent, and there is none",
			"Steps[0].Loop.Steps: are done in the place of what the step says that is done"}},
		"a setting that is none": {pawl.Workflow{OnFailure: "shrug", Permissions: pawl.Permissions{Mode: "yolo"}, Steps: []pawl.Step{{ID: "a", Func: does("")}}}, []string{
			`OnFailure: "shrug" is not skip-dependents or abort`, `Permissions.Mode: "yolo" is not default, accept-edits, plan or bypass`}},
		"an agent and a workflow": {pawl.Workflow{
			Agents: map[string]pawl.Agent{"a": {}}, Steps: []pawl.Step{{ID: "a", Agent: "a"}, {ID: "b", Steps: []pawl.Step{{ID: "c", Workflow: &pawl.Workflow{}}}}},
		}, []string{`Agents["a"].Model: is missing`, "Steps[1].Steps[0].Workflow.Steps: there is none"}},
		"a step that is its own workflow": {*self, []string{"Steps: a tree of runs is at most 8 deep, and this one could be 9"}},
		"a cap without a price": {pawl.Workflow{Limits: pawl.Limits{USDPerRun: 1}, Agents: map[string]pawl.Agent{"a": unpriced()}, Steps: []pawl.Step{{ID: "a", Agent: "a"}}}, []string{
			"Limits: no price is known for test/free, so the cost limit of USD 1.00 cannot be enforced: name the price of each model, or take the limit away"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.w.Validate()
			if err == nil {
				t.Fatal("nothing is reported")
			}
			var got []string
			for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
				wrong, ok := errors.AsType[*pawl.InvalidWorkflowError](e)
				if !ok {
					t.Fatalf("%T: %v", e, e)
				}
				got = append(got, wrong.Field+": "+wrong.Reason)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func unpriced() pawl.Agent {
	return pawl.Agent{Model: pawl.Target{Name: "test/free", Client: scripted.New("test")}}
}

// What has ended is never asked for again, and what needs a name that is gone is not
// taken up.
func TestAWorkflowGoesOnWhereItParked(t *testing.T) {
	store, first, second := memory.New(nil), atomic.Int32{}, atomic.Int32{}
	stop := make(chan struct{})
	of := func(last string) pawl.Workflow {
		return pawl.Workflow{
			Agents: map[string]pawl.Agent{"writer": {Model: says(scripted.Turn{Text: "written"})}},
			Steps: []pawl.Step{
				{ID: "write", Agent: "writer", Instructions: "Write."},
				{ID: "count", DependsOn: []string{"write"}, Func: func(context.Context, pawl.Values) (pawl.Output, error) {
					first.Add(1)
					return pawl.Output{Text: "counted"}, nil
				}},
				{ID: last, DependsOn: []string{"count"}, When: func(v pawl.Values) (bool, error) { return v.Steps["write"].Content == "written", nil },
					Func: func(ctx context.Context, v pawl.Values) (pawl.Output, error) {
						if second.Add(1) == 1 {
							close(stop)
							<-ctx.Done()
							return pawl.Output{}, ctx.Err()
						}
						return pawl.Output{Text: v.Steps["count"].Content + " twice"}, nil
					}},
			},
		}
	}
	run, err := of("last").Start(t.Context(), "Begin.", pawl.Options{Journal: store})
	if err != nil {
		t.Fatal(err)
	}
	<-stop
	run.Interrupt()
	if s := final(t, run); s.Status != pawl.StatusParked {
		t.Fatalf("%+v", s)
	}
	_, err = of("other").Resume(t.Context(), run.ID(), pawl.Options{Journal: store})
	if err == nil || !strings.HasSuffix(err.Error(), "needs what this workflow lacks: func last.When, last()") {
		t.Errorf("a function is gone: %v", err)
	}
	if _, err := researcher().Resume(t.Context(), run.ID(), pawl.Options{Journal: store}); err == nil || !strings.HasSuffix(err.Error(), "it is no run of an agent (flow/1)") {
		t.Errorf("an agent takes it up: %v", err)
	}
	again, err := of("last").Resume(t.Context(), run.ID(), pawl.Options{Journal: store})
	if err != nil {
		t.Fatal(err)
	}
	if s := final(t, again); s.Text() != "counted twice" || first.Load() != 1 || second.Load() != 2 {
		t.Errorf("%q, %v; called %d and %d times", s.Text(), s.Err(), first.Load(), second.Load())
	}
	if s, err := pawl.Inspect(t.Context(), store, run.ID()); err != nil || s.Text() != "counted twice" {
		t.Errorf("%+v, %v", s, err)
	}
}

// Wherever a workflow is forked, what had finished there is kept, and all else is done
// by the fork, also what was under way.
func TestAForkOfAWorkflowDoesWhatHadNotFinished(t *testing.T) {
	store := memory.New(nil)
	var mu sync.Mutex
	var did []string
	does := func(name string) {
		mu.Lock()
		defer mu.Unlock()
		did = append(did, name)
	}
	writer := func(context.Context, *llm.Request) (*llm.Response, error) {
		does("write")
		return scripted.New("test", scripted.Turn{Text: "written"}).Generate(t.Context(), &llm.Request{})
	}
	w := pawl.Workflow{
		Agents: map[string]pawl.Agent{"writer": {Model: pawl.Target{Name: "test/m", Client: generates(writer), Price: &llm.Price{}}}},
		Steps: []pawl.Step{
			{ID: "write", Agent: "writer", Instructions: "Write."},
			{ID: "each", DependsOn: []string{"write"}, Loop: &pawl.Loop{Items: []int{0, 1, 2}, Concurrency: 2}, Func: func(_ context.Context, v pawl.Values) (pawl.Output, error) {
				does(fmt.Sprintf("each[%s]", v.Item))
				return pawl.Output{Text: string(v.Item)}, nil
			}},
			{ID: "last", DependsOn: []string{"write", "each"}, Func: func(_ context.Context, v pawl.Values) (pawl.Output, error) {
				does("last")
				return pawl.Output{Text: v.Steps["write"].Content + " and done"}, nil
			}},
		},
	}
	run, err := w.Start(t.Context(), "", pawl.Options{Journal: store})
	if err != nil {
		t.Fatal(err)
	}
	if s := final(t, run); s.Text() != "written and done" {
		t.Fatalf("%+v", s)
	}
	todo := map[string]bool{"write": true, "each[0]": true, "each[1]": true, "each[2]": true, "last": true}
	named := map[string]string{}
	records, err := store.Records(t.Context(), run.ID(), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		e, err := event.Decode(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		switch d := e.Data.(type) {
		case event.ChildStarted:
			named[d.Child] = d.Step
		case event.ChildFinished:
			delete(todo, named[d.Child])
		}
		did = nil
		fork, err := w.Fork(t.Context(), run.ID(), e.Seq, pawl.Options{Journal: store})
		if err != nil {
			t.Fatalf("at %d: %v", e.Seq, err)
		}
		if s := final(t, fork); s.Text() != "written and done" || fork.ID() == run.ID() {
			t.Errorf("at %d it ends as %+v", e.Seq, s)
		}
		if slices.Sort(did); !slices.Equal(did, slices.Sorted(maps.Keys(todo))) {
			t.Errorf("at %d, %s: the fork does %v, and %v had not finished", e.Seq, e.Type(), did, slices.Sorted(maps.Keys(todo)))
		}
	}
	if len(todo) > 0 {
		t.Errorf("%v never finished", todo)
	}
	if _, err := (pawl.Workflow{Steps: w.Steps[2:]}).Fork(t.Context(), run.ID(), 1, pawl.Options{Journal: store}); err == nil {
		t.Error("another workflow forks it")
	}
	if rows, err := store.Runs(t.Context(), journal.Filter{ForkOf: run.ID()}); err != nil || len(rows) != len(records) {
		t.Errorf("there are %d forks, %v, want %d", len(rows), err, len(records))
	}
}

type generates func(context.Context, *llm.Request) (*llm.Response, error)

func (g generates) Generate(ctx context.Context, r *llm.Request) (*llm.Response, error) {
	return g(ctx, r)
}

// A workflow is a step with agents and functions of its own, and spends from the
// budget of the run above it.
func TestAWorkflowIsAStep(t *testing.T) {
	store := memory.New(nil)
	inner := &pawl.Workflow{
		Name: "inner", Agents: map[string]pawl.Agent{"who": researcher(scripted.Turn{Text: "found"})},
		Steps: []pawl.Step{{ID: "look", Agent: "who"}, {ID: "sum", DependsOn: []string{"look"}, Func: func(_ context.Context, v pawl.Values) (pawl.Output, error) {
			return pawl.Output{Text: "sum of " + v.Steps["look"].Content}, nil
		}}},
	}
	w := pawl.Workflow{Steps: []pawl.Step{{ID: "sum", Func: does("outer")}, {ID: "inner", DependsOn: []string{"sum"}, Workflow: inner}}}
	run, err := w.Start(t.Context(), "", pawl.Options{Journal: store})
	if err != nil {
		t.Fatal(err)
	}
	if s := final(t, run); s.Text() != "sum of found" || s.Cost.USD == 0 {
		t.Errorf("%+v", s.Outcome)
	}
	rows, err := store.Runs(t.Context(), journal.Filter{Root: run.ID()})
	var kinds []string
	for _, row := range rows {
		kinds = append(kinds, row.Kind+" "+row.Name)
	}
	if diff := cmp.Diff([]string{"Agent researcher", "Workflow inner", "Workflow "}, kinds); diff != "" {
		t.Error(diff, err)
	}
}

// The result of a step's agent comes by a tool or as JSON alone; without one the step fails.
func TestAStepWhoseAgentGivesNoResultFails(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
	for name, c := range map[string]struct {
		turns []scripted.Turn
		want  string
	}{
		"by the tool": {[]scripted.Turn{{ToolCalls: calls("submit_result", `{"n":3}`)}}, `{"n":3}`},
		"as JSON":     {[]scripted.Turn{{Text: `{"n":3}`}}, `{"n":3}`},
		"in prose":    {[]scripted.Turn{{Text: `It is {"n":3}.`}, {Text: `{"n":"3"}`}}, "resultSchema defined but submit_result never called"},
	} {
		t.Run(name, func(t *testing.T) {
			w := pawl.Workflow{Agents: map[string]pawl.Agent{"a": {Model: says(c.turns...), Schema: schema}}, Steps: []pawl.Step{{ID: "a", Agent: "a", Instructions: "Count."}}}
			s, err := w.Run(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			got := string(s.Outcome.Result)
			if s.Outcome.Error != nil {
				got = s.Outcome.Error.Message
			}
			if got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// A command ends a loop, and one that nothing confines waits for an approval unless
// the program says that it never does.
func TestCommandsOfAWorkflow(t *testing.T) {
	dir := t.TempDir()
	w := pawl.Workflow{
		Commands: shell.Commands(shell.Options{Dir: dir}), NeverAsk: true,
		Steps: []pawl.Step{
			{ID: "grow", Command: []string{"sh", "-c", "echo x >> grown"}, Loop: &pawl.Loop{Max: 5, StopWhen: []pawl.Stop{{Command: []string{"sh", "-c", "test $(wc -l < grown) -eq 3"}}}}},
			{ID: "count", DependsOn: []string{"grow"}, Command: []string{"wc", "-l", "grown"}},
		},
	}
	s, err := w.Run(t.Context(), "")
	if err != nil || !strings.Contains(s.Text(), "3 grown") {
		t.Fatalf("%+v, %v", s.Outcome, err)
	}
	w.NeverAsk = false
	if s, err = w.Run(t.Context(), ""); err != nil || s.Parked == nil || s.Parked.Reason != event.ParkApproval {
		t.Errorf("%+v, %v", s, err)
	}
}

// A journal that an agent's tool could write is refused, also below a workflow in a
// workflow.
func TestAWorkflowKeepsItsJournalFromItsAgents(t *testing.T) {
	a := researcher(scripted.Turn{Text: "no"})
	a.Tools = []tool.Tool{pawl.Tool("write", "Writes.", func(context.Context, struct{}) (string, error) { return "", nil })}
	a.Tools[0].Writing = func(string) []event.Facts { return []event.Facts{{}} }
	inner := pawl.Workflow{Agents: map[string]pawl.Agent{"a": a}, Steps: []pawl.Step{{ID: "a", Agent: "a", Instructions: "Do."}}}
	outer := pawl.Workflow{Steps: []pawl.Step{{ID: "in", Workflow: &inner}}}
	store := filed{memory.New(nil)}
	for name, w := range map[string]pawl.Workflow{"a workflow": inner, "one in another": outer} {
		_, err := w.Start(t.Context(), "", pawl.Options{Journal: store})
		if e, ok := errors.AsType[*pawl.JournalError](err); !ok || e.Agent != "a" || e.Tool != "write" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type filed struct{ *memory.Store }

func (filed) Files() []string { return []string{"/journal.db"} }
