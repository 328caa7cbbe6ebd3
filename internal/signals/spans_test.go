package signals_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/machine/flow"
	"github.com/pawlrun/pawl/internal/machine/versions"
	"github.com/pawlrun/pawl/internal/rules/plan"
	"github.com/pawlrun/pawl/internal/signals"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

// told is a span in the form that a collector reads.
type told struct {
	TraceID, SpanID, ParentSpanID, Name string
	Kind                                int
	Start                               string `json:"startTimeUnixNano"`
	End                                 string `json:"endTimeUnixNano"`
	Attributes                          []struct {
		Key   string
		Value map[string]any
	}
	Status struct{ Code int }
}

func (s told) attr(key string) any {
	for _, a := range s.Attributes {
		if a.Key == key {
			for _, v := range a.Value {
				return v
			}
		}
	}
	return nil
}

// request is an export request.
type request struct {
	ResourceSpans []struct {
		Resource   struct{ Attributes []struct{ Key string } }
		ScopeSpans []struct{ Spans []told }
	}
}

func spansIn(t *testing.T, text string) map[string]told {
	t.Helper()
	out := map[string]told{}
	for _, s := range allSpans(t, text) {
		out[s.Name] = s
	}
	return out
}

func allSpans(t *testing.T, text string) (out []told) {
	t.Helper()
	for line := range strings.Lines(text) {
		var r request
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		for _, rs := range r.ResourceSpans {
			out = append(out, rs.ScopeSpans[0].Spans...)
		}
	}
	return out
}

// play drives a run with two model calls and a tool call between them. If park is set,
// it parks the run in the middle and resumes it with another engine.
func play(t *testing.T, options signals.Options, park bool) (run string, started event.RunStarted) {
	t.Helper()
	store := memory.New(nil)
	ctx, stop := context.WithCancelCause(t.Context())
	echo := tool.Tool{Name: "echo", Effect: event.EffectPure, Schema: json.RawMessage(`{"type":"object"}`), Run: func(context.Context, tool.Call) (tool.Result, error) {
		if park {
			stop(engine.ErrInterrupted)
		}
		return tool.Result{Output: "the output", IsError: true, ErrorType: event.ErrorTool}, nil
	}}
	set, err := tool.NewSet(echo)
	if err != nil {
		t.Fatal(err)
	}
	model := scripted.New("test",
		scripted.Turn{Error: &scripted.Failure{Class: llm.ClassOverloaded, Status: 529}},
		scripted.Turn{Text: "the words", Usage: &llm.Usage{Input: 7, Output: 3, CacheWrite: 2}, ToolCalls: []scripted.Call{{Name: "echo", Arguments: json.RawMessage(`{"a":"argument"}`)}}},
		scripted.Turn{Text: "done", Usage: &llm.Usage{Input: 11, Output: 5}},
	)
	cfg := agent.Config{Targets: []agent.Target{{Model: "scripted/test", Price: &llm.Price{}}}, Tools: set.Defs(), Approve: agent.ApproveDeny}
	cfg.Policy.Declared = true
	cfg = cfg.WithDefaults()
	if started, err = agent.Start(cfg, llm.UserText("the task")); err != nil {
		t.Fatal(err)
	}
	started.Name = "worker"
	env := perform.Env{Model: func(string) (llm.Model, string, error) { return model, "test", nil }, Tools: set}
	drive := func(begin func(*engine.Engine) (*engine.Run, error)) {
		x, err := signals.Open(options)
		if err != nil {
			t.Fatal(err)
		}
		o := engine.Options{}
		if x != nil {
			o.Observers = []perform.Observer{x.Observer()}
		}
		e := engine.New(store, func(string) (machine.Machine, error) { return agent.New(), nil }, o)
		r, err := begin(e)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		run = r.ID
		if err := errors.Join(e.Close()); err != nil {
			t.Fatal(err)
		}
		if x != nil {
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	drive(func(e *engine.Engine) (*engine.Run, error) { return e.Start(ctx, started, env) })
	if park {
		drive(func(e *engine.Engine) (*engine.Run, error) {
			return e.Resume(t.Context(), run, func(event.RunStarted) (perform.Env, error) { return env, nil })
		})
	}
	return run, firstOf(t, store, run)
}

func firstOf(t *testing.T, store journal.Store, run string) event.RunStarted {
	t.Helper()
	records, err := store.Records(t.Context(), run, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	ev, err := event.Decode(records[0].Body)
	if err != nil {
		t.Fatal(err)
	}
	return ev.Data.(event.RunStarted)
}

// rows: ALF-73, ALF-74, ALF-75
func TestARunThatIsResumedIsOneTrace(t *testing.T) {
	for _, park := range []bool{false, true} {
		file := filepath.Join(t.TempDir(), "spans.jsonl")
		run, started := play(t, signals.Options{File: file}, park)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		spans := spansIn(t, string(text))
		top, chat, call := spans["invoke_agent worker"], spans["chat test"], spans["execute_tool echo"]
		if started.Trace.ID == "" || len(spans) != 3 || strings.Count(string(text), `"chat test"`) != 2 {
			t.Fatalf("trace %+v, spans:\n%s", started.Trace, text)
		}
		if top.attr("gen_ai.operation.name") != "invoke_agent" || top.ParentSpanID != "" || top.attr("pawl.run.id") != run || top.attr("gen_ai.usage.input_tokens") != "18" {
			t.Errorf("the run's span is %+v", top)
		}
		if chat.attr("gen_ai.operation.name") != "chat" || chat.attr("gen_ai.usage.input_tokens") != "11" || chat.attr("gen_ai.usage.output_tokens") != "5" || chat.Kind != 3 {
			t.Errorf("the model call's span is %+v", chat)
		}
		if call.attr("gen_ai.tool.name") != "echo" || call.attr("error.type") != "tool_error" || call.Status.Code != 2 {
			t.Errorf("the tool call's span is %+v", call)
		}
		for _, s := range spans {
			if s.TraceID != started.Trace.ID || s.Start > s.End || s.Start < top.Start || s.End > top.End {
				t.Errorf("%s is in trace %s from %s to %s", s.Name, s.TraceID, s.Start, s.End)
			}
			if s.Name != top.Name && s.ParentSpanID != top.SpanID {
				t.Errorf("%s stands below %q", s.Name, s.ParentSpanID)
			}
		}
		for _, secret := range []string{"the task", "the words", "the output", "argument"} {
			if strings.Contains(string(text), secret) {
				t.Errorf("the spans say %q", secret)
			}
		}
	}
}

// In a workflow of two agents, the second of which runs twice, each agent's run has a
// span below the workflow's span, and the run's activity is below that.
//
// rows: ALF-73
func TestEachAgentOfAWorkflowHasItsSpan(t *testing.T) {
	step := func(id, agent string, after ...string) plan.Step {
		return plan.Step{ID: id, DependsOn: after, Agent: &plan.Agent{Name: agent, Instructions: "Do it."}}
	}
	started, err := flow.Start(flow.Config{Plan: plan.Plan{Name: "house", Steps: []plan.Step{
		step("design", "architect"), step("build", "builder", "design"), step("paint", "builder", "build"),
	}}}, llm.UserText("the task"))
	if err != nil {
		t.Fatal(err)
	}
	child := func(name string) perform.Child {
		return perform.Child{Begin: func(json.RawMessage) (event.RunStarted, perform.Env, error) {
			model := scripted.New("test", scripted.Turn{Text: "done by " + name})
			cfg := agent.Config{Targets: []agent.Target{{Model: "scripted/test", Price: &llm.Price{}}}, Approve: agent.ApproveDeny}.WithDefaults()
			started, err := agent.Start(cfg, llm.UserText("the task"))
			started.Name = name
			return started, perform.Env{Model: func(string) (llm.Model, string, error) { return model, "test", nil }}, err
		}}
	}
	file := filepath.Join(t.TempDir(), "spans.jsonl")
	x, err := signals.Open(signals.Options{File: file})
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New(memory.New(nil), versions.Make, engine.Options{Observers: []perform.Observer{x.Observer()}})
	run, err := e.Start(t.Context(), started, perform.Env{Children: map[string]perform.Child{"architect": child("architect"), "builder": child("builder")}})
	if err != nil {
		t.Fatal(err)
	}
	if state, err := run.Wait(t.Context()); err != nil || state.Outcome == nil || !state.Outcome.OK {
		t.Fatalf("%+v, %v", state, err)
	}
	if err := errors.Join(e.Close(), x.Close()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	spans := allSpans(t, string(text))
	byID := map[string]told{}
	for _, s := range spans {
		byID[s.SpanID] = s
	}
	var tree []string
	runs := map[any]bool{}
	for _, s := range spans {
		tree = append(tree, byID[s.ParentSpanID].Name+" > "+s.Name)
		if operation, _, _ := strings.Cut(s.Name, " "); s.attr("gen_ai.operation.name") != operation {
			t.Errorf("%s has the operation %v", s.Name, s.attr("gen_ai.operation.name"))
		}
		if s.attr("gen_ai.operation.name") == "invoke_agent" {
			runs[s.attr("pawl.run.id")] = true
		}
		if s.TraceID != spans[0].TraceID {
			t.Errorf("%s is in trace %s", s.Name, s.TraceID)
		}
	}
	slices.Sort(tree)
	want := []string{
		" > invoke_workflow house",
		"invoke_agent architect > chat test", "invoke_agent builder > chat test", "invoke_agent builder > chat test",
		"invoke_workflow house > invoke_agent architect", "invoke_workflow house > invoke_agent builder", "invoke_workflow house > invoke_agent builder",
	}
	if !slices.Equal(tree, want) || len(byID) != len(want) || len(runs) != 3 {
		t.Errorf("the spans are %q of %d runs, want %q", tree, len(runs), want)
	}
}

// rows: ALF-76
func TestNoSignalsWithoutExporter(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, vars := range []map[string]string{{}, {"ALFRED_OTEL_FILE": "f", "OTEL_SDK_DISABLED": "true"}, {"PAWL_OTEL_FILE": "f", "OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"}} {
		_, started := play(t, signals.FromEnvironment(func(name string) string { return vars[name] }), false)
		if started.Trace != (event.Trace{}) {
			t.Errorf("%v: the run has the trace %+v", vars, started.Trace)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%v: there is a file %s", vars, left[0].Name())
		}
	}
	for _, name := range []string{"ALFRED_OTEL_FILE", "PAWL_OTEL_FILE"} {
		play(t, signals.FromEnvironment(func(n string) string { return map[string]string{name: "f"}[n] }), false)
		if _, err := os.Stat("f"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		_ = os.Remove("f")
	}
}

func TestBothDialectsAndTheTextsWhereTheyAreAskedFor(t *testing.T) {
	for value, key := range map[string]string{"": "cache_creation", "http,gen_ai_latest_experimental": "cache_write"} {
		vars := map[string]string{
			"ALFRED_OTEL_FILE": filepath.Join(t.TempDir(), "f"), "OTEL_SEMCONV_STABILITY_OPT_IN": value,
			"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true",
		}
		play(t, signals.FromEnvironment(func(n string) string { return vars[n] }), false)
		text, err := os.ReadFile(vars["ALFRED_OTEL_FILE"])
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"gen_ai.usage." + key + ".input_tokens", "the words", "the output", "argument"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%q: no %s in %s", value, want, text)
			}
		}
		if strings.Contains(string(text), "gen_ai.agent.id") != (value == "") {
			t.Errorf("%q: gen_ai.agent.id in %s", value, text)
		}
	}
}

// tell reports an ended run to an exporter.
func tell(x *signals.Exporter) {
	x.Observer().Run(perform.RunInfo{Run: "r", Trace: event.NewTrace("r")})(&event.Event{Data: event.RunCompleted{}})
}
