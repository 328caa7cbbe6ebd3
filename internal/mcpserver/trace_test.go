package mcpserver_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawlrun/pawl/internal/mcpserver"
	"github.com/pawlrun/pawl/internal/server"
	"github.com/pawlrun/pawl/internal/signals"
	"github.com/pawlrun/pawl/journal/memory"
)

const (
	traceID = "0af7651916cd43dd8448eb211c80319c"
	parent  = "00-" + traceID + "-b7ad6b7169203331-01"
)

// span is a span as decoded by a collector.
type span struct {
	TraceID, SpanID, ParentSpanID, Name string
	Kind                                int
	Attributes                          []struct {
		Key   string
		Value struct{ StringValue string }
	}
	Status struct{ Code int }
}

func (s span) attr(key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.StringValue
		}
	}
	return ""
}

func TestACallStandsInTheTraceOfItsClient(t *testing.T) {
	for _, version := range protocols {
		file := filepath.Join(t.TempDir(), "spans")
		x, err := signals.Open(signals.Options{File: file, Traces: signals.Target{}})
		if err != nil || x == nil {
			t.Fatal(x, err)
		}
		s := serve(t, memory.New(nil), agents, func(_ *server.Options, o *mcpserver.Options) { o.Exporter = x })
		session := s.connect(version, nil)
		p := &mcp.CallToolParams{Name: "reads", Arguments: map[string]any{"task": "go", "language": "x"}, Meta: mcp.Meta{"traceparent": parent}}
		r, err := session.CallTool(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		p.Arguments = map[string]any{}
		if r, err := session.CallTool(t.Context(), p); err != nil || !r.IsError {
			t.Fatal(r, err)
		}
		if err := session.Close(); err != nil {
			t.Fatal(err)
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		var calls []span
		for _, each := range spansOf(t, file) {
			if each.Name == "tools/call reads" {
				calls = append(calls, each)
			}
		}
		if len(calls) != 2 {
			t.Fatalf("%s: the spans are %+v", version, spansOf(t, file))
		}
		for i, each := range calls {
			if each.TraceID != traceID || each.ParentSpanID != "b7ad6b7169203331" || each.Kind != 2 || each.attr("mcp.method.name") != "tools/call" || each.attr("gen_ai.tool.name") != "reads" ||
				each.attr("gen_ai.operation.name") != "execute_tool" || each.attr("mcp.protocol.version") != version || each.attr("network.transport") != "pipe" {
				t.Errorf("%s: the span is %+v", version, each)
			}
			if failed := each.attr("error.type") == "tool_error" && each.Status.Code == 2; failed != (i == 1) {
				t.Errorf("%s: the span %d has failed: %t", version, i, failed)
			}
		}
		run, _ := r.Meta[mcpserver.RunMeta].(string)
		started, err := s.runs.Started(t.Context(), run)
		if err != nil || started.Trace.ID != traceID || started.Trace.Parent != calls[0].SpanID {
			t.Errorf("%s: the run is in %+v, %v", version, started.Trace, err)
		}
		if back := r.Meta["traceparent"]; back != "00-"+traceID+"-"+started.Trace.Span(run, "")+"-01" {
			t.Errorf("%s: the result names %v", version, back)
		}
	}
}

func spansOf(t *testing.T, file string) (all []span) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var r struct {
			ResourceSpans []struct {
				ScopeSpans []struct{ Spans []span }
			}
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		for _, a := range r.ResourceSpans {
			for _, b := range a.ScopeSpans {
				all = append(all, b.Spans...)
			}
		}
	}
	return all
}

func TestWithoutSpansTheRunStandsBelowItsClientsSpan(t *testing.T) {
	s := newest(t, agents)
	session := s.connect("", nil)
	for _, tt := range []struct{ given, trace, parent string }{{parent, traceID, "b7ad6b7169203331"}, {"no trace", "", ""}, {"", "", ""}} {
		p := &mcp.CallToolParams{Name: "reads", Arguments: map[string]any{"task": "go", "language": "x"}, Meta: mcp.Meta{"traceparent": tt.given}}
		r, err := session.CallTool(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		run, _ := r.Meta[mcpserver.RunMeta].(string)
		if started, err := s.runs.Started(t.Context(), run); err != nil || started.Trace.ID != tt.trace || started.Trace.Parent != tt.parent {
			t.Errorf("%q: the run is in %+v, %v", tt.given, started.Trace, err)
		}
	}
}
