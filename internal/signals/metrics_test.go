package signals_test

import (
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/signals"
	"github.com/pawlrun/pawl/llm"
)

func TestMetricsAreCountedByKindAndNotByRun(t *testing.T) {
	m := signals.NewMetrics()
	for _, run := range []string{"a", "b"} {
		watch := m.Observer().Run(perform.RunInfo{Run: run, Kind: "Agent"})
		for _, d := range []event.Data{
			event.RunStarted{}, event.ModelRequested{Model: "x/y"},
			event.ModelAttemptFailed{Model: "x/y", Class: llm.ClassOverloaded},
			event.ModelRequested{Model: "x/y"}, event.ModelResponse{Usage: llm.Usage{Input: 7, Output: 3}, Cost: llm.Cost{USD: 0.25, Priced: true}},
			event.ToolResult{}, event.ToolResult{IsError: true, ErrorType: event.ErrorTool},
			event.RunParked{}, event.RunResumed{}, event.RunCompleted{Outcome: event.Outcome{Status: event.StatusFailed}},
		} {
			watch(&event.Event{Data: d})
		}
	}
	m.Add(signals.HTTPRequests, 1, "GET", "/a\"\\\n", "200")
	got := m.Text()
	for _, want := range []string{
		"# TYPE pawl_runs_total counter\n",
		`pawl_runs_total{kind="agent",state="started"} 2`, `pawl_runs_total{kind="agent",state="resumed"} 2`,
		`pawl_runs_total{kind="agent",state="parked"} 2`, `pawl_runs_total{kind="agent",state="failed"} 2`,
		`pawl_model_calls_total{model="x/y",outcome="ok"} 2`, `pawl_model_calls_total{model="x/y",outcome="overloaded"} 2`,
		`pawl_model_tokens_total{model="x/y",type="input"} 14`, `pawl_model_tokens_total{model="x/y",type="output"} 6`,
		`pawl_model_cost_dollars_total{model="x/y"} 0.5`,
		`pawl_tool_calls_total{outcome="ok"} 2`, `pawl_tool_calls_total{outcome="tool_error"} 2`,
		"pawl_events_total 20", `pawl_http_requests_total{method="GET",path="/a\"\\\n",code="200"} 1`,
	} {
		if !strings.Contains(got, strings.TrimSuffix(want, "\n")+"\n") {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	if n := strings.Count(got, "\n"); n != 16+13 {
		t.Errorf("%d lines:\n%s", n, got)
	}
}
