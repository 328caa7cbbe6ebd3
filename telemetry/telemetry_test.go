package telemetry_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/telemetry"
	"github.com/pawlrun/pawl/tool"
)

// recorder is a tracer that records what happens to its spans.
type recorder struct {
	noop.Tracer
	mu  sync.Mutex
	log []string
}

type span struct {
	noop.Span
	r     *recorder
	name  string
	attrs map[attribute.Key]attribute.Value
}

func (r *recorder) note(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, line)
}

func (r *recorder) Start(ctx context.Context, name string, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	s := &span{r: r, name: name, attrs: map[attribute.Key]attribute.Value{}}
	cfg := trace.NewSpanStartConfig(opts...)
	s.SetAttributes(cfg.Attributes()...)
	line := "open " + name
	if parent, ok := trace.SpanFromContext(ctx).(*span); ok {
		line += " in " + parent.name
	}
	r.note(line)
	return trace.ContextWithSpan(ctx, s), s
}

func (s *span) SetAttributes(kv ...attribute.KeyValue) {
	for _, a := range kv {
		s.attrs[a.Key] = a.Value
	}
}

func (s *span) SetStatus(c codes.Code, d string) { s.r.note(s.name + " " + c.String() + " " + d) }

func (s *span) End(...trace.SpanEndOption) {
	line := "close " + s.name
	for _, k := range []attribute.Key{"gen_ai.operation.name", "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "gen_ai.tool.name"} {
		if v, ok := s.attrs[k]; ok {
			line += " " + v.String()
		}
	}
	s.r.note(line)
}

// patient is a model that continues its answer only after its first part was received.
type patient struct {
	*scripted.Model
	heard chan struct{}
}

func (p patient) Stream(ctx context.Context, req *llm.Request, emit func(llm.Delta)) (*llm.Response, error) {
	return p.Model.Stream(ctx, req, func(d llm.Delta) {
		emit(d)
		if d.Kind == llm.DeltaText {
			<-p.heard
		}
	})
}

// rows: ALF-10, ALF-67, ALF-74, ALF-75
func TestSpansCoverModelCallsAndToolsThatWereAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{}
		e := engine.New(memory.New(nil), func(string) (machine.Machine, error) { return agent.New(), nil },
			engine.Options{Observers: []perform.Observer{telemetry.Spans(r)}})
		defer e.Close()
		named := func(name string) tool.Tool {
			return tool.Tool{
				Name: name, Schema: json.RawMessage(`{"type":"object"}`),
				Run: func(context.Context, tool.Call) (tool.Result, error) {
					r.note("run " + name)
					return tool.Result{Output: "ok"}, nil
				},
			}
		}
		set, err := tool.NewSet(named("free"), named("gated"))
		if err != nil {
			t.Fatal(err)
		}
		usage := &llm.Usage{Input: 7, Output: 3}
		model := scripted.New("test",
			scripted.Turn{Error: &scripted.Failure{Class: llm.ClassOverloaded, Status: 529}},
			scripted.Turn{Text: "go", Usage: usage, ToolCalls: []scripted.Call{
				{Name: "free", Arguments: json.RawMessage(`{}`)}, {Name: "gated", Arguments: json.RawMessage(`{}`)},
			}},
			scripted.Turn{Text: "done", Usage: usage},
		)
		cfg := agent.Config{
			Targets: []agent.Target{{Model: "scripted/test", Price: &llm.Price{}}}, Tools: set.Defs(), Approve: agent.ApproveDeny,
		}
		cfg.Policy.Declared, cfg.Policy.Gates = true, []string{"gated"}
		started, err := agent.Start(cfg.WithDefaults(), llm.UserText("go"))
		if err != nil {
			t.Fatal(err)
		}
		ctx, _ := r.Start(t.Context(), "invoke_agent")
		heard := make(chan struct{})
		run, err := e.Start(ctx, started, perform.Env{
			Model: func(string) (llm.Model, string, error) { return patient{model, heard}, "test", nil }, Tools: set,
		})
		if err != nil {
			t.Fatal(err)
		}
		for ev, err := range run.Events(t.Context(), true) {
			if err != nil {
				t.Fatal(err)
			}
			if d, ok := ev.Data.(event.Text); ok {
				r.note("heard " + d.Text)
				heard <- struct{}{}
			}
		}
		want := []string{
			"open invoke_agent",
			"open chat test in invoke_agent", "chat test Error overloaded", "close chat test chat",
			"open chat test in invoke_agent", "heard go", "close chat test chat 7 3",
			"open execute_tool free in invoke_agent", "run free", "close execute_tool free execute_tool free",
			"open chat test in invoke_agent", "heard done", "close chat test chat 7 3",
		}
		if !slices.Equal(r.log, want) {
			t.Errorf("spans:\n%s\nwant:\n%s", strings.Join(r.log, "\n"), strings.Join(want, "\n"))
		}
	})
}
