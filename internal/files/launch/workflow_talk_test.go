package launch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/files/workflow"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
)

// talkative plays the agents of the seed's worked example, told apart by their tools.
// It keeps in mind what the workers were told.
type talkative struct{ told map[string]string }

func (m talkative) Generate(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	offered := func(name string) bool {
		return slices.ContainsFunc(req.Tools, func(t llm.ToolDef) bool { return t.Name == name })
	}
	var all strings.Builder
	for _, message := range req.Messages {
		all.WriteString(message.Text() + "\n")
	}
	turn, answered := scripted.Turn{Text: "READY"}, req.Ordinal
	said := func(name, arguments string) scripted.Turn {
		return scripted.Turn{ToolCalls: []scripted.Call{{Name: name, Arguments: json.RawMessage(arguments)}}}
	}
	stage := 0
	for i := range 3 {
		if strings.Contains(all.String(), fmt.Sprintf("Iteration %d", i+1)) {
			stage = i + 1
		}
	}
	switch {
	case offered("submit_result"):
		turn = said("submit_result", fmt.Sprintf(`{"done":%t}`, stage == 3))
	case offered("forward_to_agent") && answered == 0:
		m.told["coordinator"] += all.String()
		turn = said("forward_to_agent", `{"target":"worker","text":"Mind the tests."}`)
	case offered("forward_to_agent"):
		turn.Text = "Told it."
	case stage > 0 && answered == 0:
		turn = said("send_message", fmt.Sprintf(`{"text":"STAGE_%d: a task"}`, stage))
	case stage > 0:
		m.told[fmt.Sprint("worker ", stage)] = all.String()
		turn = scripted.Turn{Text: fmt.Sprintf("STAGE_%d_DONE", stage), Delay: time.Minute}
	}
	turns := make([]scripted.Turn, answered+1)
	turns[answered] = turn
	return scripted.New("test", turns...).Generate(ctx, req)
}

// The worked example of ../workflow/testdata/seed behaves as described: the coordinator
// receives each worker's messages by its id in the run, and each worker receives what
// the coordinator forwards.
// rows: DAG-66, DAG-69..71, DAG-73, DAG-74, DAG-76
func TestTheWorkedExampleOfMessages(t *testing.T) {
	text, err := os.ReadFile("../workflow/testdata/seed/bidirectional.yaml")
	if err != nil {
		t.Fatal(err)
	}
	o := obliged(t)
	if err := os.WriteFile(strings.TrimPrefix(o.Model, "scripted/"), []byte("- text: unused"), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		model := talkative{told: map[string]string{}}
		o.Dress = func(env *perform.Env) {
			env.Model = func(string) (llm.Model, string, error) { return model, "talkative", nil }
		}
		started, env, err := launch.Workflow(launch.File{Path: "bidirectional.yaml", Text: text}, "", o)
		if err != nil {
			t.Fatal(err)
		}
		_, events := run(t, memory.New(nil), started, env)
		last, _ := events[len(events)-1].Data.(event.RunCompleted)
		if o := last.Outcome; !o.OK || !strings.Contains(o.FinalOutput, "STAGE_1_DONE") || !strings.Contains(o.FinalOutput, "STAGE_2_DONE") || !strings.HasPrefix(o.FinalOutput[strings.Index(o.FinalOutput, "STAGE_3"):], "STAGE_3_DONE") {
			t.Errorf("it ends as %+v", last.Outcome)
		}
		for i := range 3 {
			id := fmt.Sprintf("loop-stages.%d.worker", i)
			if heard := model.told["coordinator"]; strings.Count(heard, "Message from "+id) != 1 || !strings.Contains(heard, fmt.Sprintf("STAGE_%d: a task", i+1)) {
				t.Errorf("the coordinator hears\n%s", heard)
			}
			if told := model.told[fmt.Sprint("worker ", i+1)]; strings.Count(told, "Mind the tests.") != 1 {
				t.Errorf("%s is told\n%s", id, told)
			}
			if !slices.ContainsFunc(events, func(e event.Event) bool {
				d, sent := e.Data.(event.MessageSent)
				return sent && d.From == event.Coordinator && d.To == id && e.Step == event.Coordinator
			}) {
				t.Errorf("nothing was forwarded to %s", id)
			}
		}
	})
}

// The file determines which agents exchange messages.
func TestTheCoordinatorOfAFile(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.yaml", "c.yaml"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("- text: done\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		says            string
		steps, hears    []string
		model, system   string
		cycles, offered int
	}{
		"nothing said": {"", []string{"send_message"}, []string{"finalize", "forward_to_agent", "narrate"}, "scripted/a.yaml", "", 0, 3},
		"its own words": {
			"coordinator: {model: scripted/c.yaml, prompt: Keep calm., maxTurns: 4}", []string{"send_message"},
			[]string{"finalize", "forward_to_agent", "narrate"}, "scripted/c.yaml", "Keep calm.", 4, 3,
		},
		"none": {"coordinator: false", nil, nil, "", "", 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			text := "apiVersion: pawl/v1\nname: talk\nagents:\n  a: {description: A., model: scripted/a.yaml, tools: []}\n" +
				"  judge: {description: J., model: scripted/a.yaml, tools: [], resultSchema: {type: object, required: [done], properties: {done: {type: boolean}}}}\n" +
				"steps: [{id: a, agent: a, loop: {maxIterations: 2, untilAgent: judge}}]\n" + c.says
			o := obliged(t)
			o.Model = ""
			_, env, err := launch.Workflow(launch.File{Path: filepath.Join(dir, "w.yaml"), Text: []byte(text)}, "go", o)
			if err != nil {
				t.Fatal(err)
			}
			if len(env.Children) != c.offered {
				t.Errorf("%d agents", len(env.Children))
			}
			configs := map[string]agent.Config{}
			for name, child := range env.Children {
				begun, inner, err := child.Begin(json.RawMessage(`{"task": "do it"}`))
				if err != nil {
					t.Fatal(err)
				}
				var cfg agent.Config
				if err := json.Unmarshal(begun.Config, &cfg); err != nil {
					t.Fatal(err)
				}
				configs[name] = cfg
				if inner.Close != nil {
					_ = inner.Close()
				}
			}
			if !slices.Equal(tools(configs["a"]), c.steps) || !slices.Equal(tools(configs["judge"]), []string{"submit_result"}) {
				t.Errorf("a step has %v, a judge %v", tools(configs["a"]), tools(configs["judge"]))
			}
			if c.hears == nil {
				return
			}
			hub := configs[workflow.CoordinatorAgent]
			if !slices.Equal(tools(hub), c.hears) || hub.Targets[0].Model != c.model || hub.System != c.system || c.cycles > 0 && hub.Limits.MaxCycles != c.cycles {
				t.Errorf("it has %v, %+v, %q, %d", tools(hub), hub.Targets, hub.System, hub.Limits.MaxCycles)
			}
		})
	}
}
