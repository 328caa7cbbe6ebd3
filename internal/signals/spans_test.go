package signals_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/signals"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

// told is a span as a collector reads it.
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

// request is what an exporter sends.
type request struct {
	ResourceSpans []struct {
		Resource   struct{ Attributes []struct{ Key string } }
		ScopeSpans []struct{ Spans []told }
	}
}

func spansIn(t *testing.T, text string) map[string]told {
	t.Helper()
	out := map[string]told{}
	for line := range strings.Lines(text) {
		var r request
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		for _, rs := range r.ResourceSpans {
			for _, s := range rs.ScopeSpans[0].Spans {
				out[s.Name] = s
			}
		}
	}
	return out
}

// play drives a run that asks twice and calls a tool between, parks it in the middle
// where park says so, and has another engine go on with it.
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
	env := engine.Env{Model: func(string) (llm.Model, string, error) { return model, "test", nil }, Tools: set}
	drive := func(begin func(*engine.Engine) (*engine.Run, error)) {
		x, err := signals.Open(options)
		if err != nil {
			t.Fatal(err)
		}
		o := engine.Options{}
		if x != nil {
			o.Observers = []engine.Observer{x.Observer()}
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
			return e.Resume(t.Context(), run, func(event.RunStarted) (engine.Env, error) { return env, nil })
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

// rows: ALF-76
func TestNothingIsToldWhereNobodyAsks(t *testing.T) {
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

// tell lets an exporter know of a run that has ended.
func tell(x *signals.Exporter) {
	x.Observer().Run(engine.RunInfo{Run: "r", Trace: event.NewTrace("r")})(&event.Event{Data: event.RunCompleted{}})
}
