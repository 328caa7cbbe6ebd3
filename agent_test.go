package pawl_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

// recorder is a model that keeps the requests it was sent.
type recorder struct {
	mu       sync.Mutex
	requests []llm.Request
	answer   func(*llm.Request) *llm.Response
}

func (r *recorder) Generate(_ context.Context, req *llm.Request) (*llm.Response, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = append(r.requests, *req)
	return r.answer(req), nil
}

func textual(text string) *llm.Response {
	return &llm.Response{Parts: llm.Parts{llm.Text{Text: text}}, Finish: llm.FinishEnd, Usage: llm.Usage{Input: 10, Output: 3}}
}

func echo() tool.Tool {
	t := pawl.Tool("echo", "Say it again.", func(_ context.Context, a struct {
		Text string `json:"text"`
	}) (string, error) {
		return a.Text, nil
	})
	t.Labels = &event.Labels{}
	return t
}

func echoing() pawl.Agent {
	return pawl.Agent{
		Name: "echo", System: "You echo.", Tools: []tool.Tool{echo()},
		Model: says(scripted.Turn{Text: "now", ToolCalls: calls("echo", `{"text":"hi"}`)}, scripted.Turn{Text: "done"}),
	}
}

func start(t *testing.T, a pawl.Agent, task string) *pawl.Run {
	t.Helper()
	run, err := a.Start(t.Context(), task, pawl.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func final(t *testing.T, run *pawl.Run) pawl.State {
	t.Helper()
	s, err := run.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// rows: ALDO-1, ALF-1, ALF-3, ALF-4
func TestIteratingAndDrainingGiveTheSameFinalState(t *testing.T) {
	drained, err := echoing().Run(t.Context(), "echo hi")
	if err != nil {
		t.Fatal(err)
	}
	run := start(t, echoing(), "echo hi")
	for e, err := range run.Stream() {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := any(e.Data).(pawl.State); ok {
			t.Error("the final state is one of the events")
		}
	}
	sameRun := cmpopts.IgnoreFields(pawl.State{}, "Run")
	callIDs := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".CallID" }, cmp.Ignore())
	if diff := cmp.Diff(drained, final(t, run), sameRun, callIDs); diff != "" {
		t.Errorf("-drained +iterated:\n%s", diff)
	}
	if drained.Status != pawl.StatusCompleted || drained.Text() != "done" || drained.Turns != 2 {
		t.Errorf("state %+v", drained)
	}
}

// rows: ALF-11, ALF-26, ALF-28
func TestAStateIsACopyAndItsUsageIsTheSumOfAllTurns(t *testing.T) {
	m := &recorder{answer: func(req *llm.Request) *llm.Response {
		if len(req.Messages) > 1 {
			return textual("done")
		}
		r := textual("now")
		r.Parts = append(r.Parts, llm.ToolCall{Name: "echo", Args: json.RawMessage(`{"text":"hi"}`)})
		r.Finish = llm.FinishTool
		return r
	}}
	a := echoing()
	a.Model = pawl.Target{Name: "test/model", Client: m, Price: &llm.Price{Input: 1, Output: 1}}
	run := start(t, a, "echo hi")
	before := final(t, run)
	if before.Usage != (llm.Usage{Input: 20, Output: 6}) || before.Cost == nil || before.Cost.Usage != before.Usage || before.Cost.USD == 0 {
		t.Errorf("usage %+v, cost %+v", before.Usage, before.Cost)
	}
	if before.Turns != 2 || before.Status != pawl.StatusCompleted || len(before.Messages) != 4 {
		t.Errorf("%s after %d turns with %d messages", before.Status, before.Turns, len(before.Messages))
	}
	snapshot, err := json.Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	vandal := final(t, run)
	vandal.Outcome.Cost.USD = 99
	for i := range vandal.Messages {
		for j, p := range vandal.Messages[i].Parts {
			if c, ok := p.(llm.ToolCall); ok {
				copy(c.Args, `{"text":"no"}`)
			}
			vandal.Messages[i].Parts[j] = llm.Text{Text: "changed"}
		}
	}
	now, err := json.Marshal(final(t, run))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(snapshot), string(now)); diff != "" {
		t.Errorf("a caller changed the run:\n%s", diff)
	}
}

// rows: ALF-26
func TestWhoReadsAParkedRunCannotChangeWhatItWaitsFor(t *testing.T) {
	photo := tool.Tool{Name: "photo", Schema: json.RawMessage(`{"type":"object"}`), Run: func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{Media: []llm.Media{{MediaType: "image/png", Data: []byte("\x89PNG")}}}, nil
	}}
	a := pawl.Agent{
		Tools: []tool.Tool{photo, echo()}, Approvals: pawl.Approvals{Tools: []string{"echo"}, Within: time.Hour},
		Model: says(scripted.Turn{ToolCalls: calls("photo", `{}`)}, scripted.Turn{ToolCalls: calls("echo", `{"text":"hi"}`)}),
	}
	run := start(t, a, "go")
	vandal := final(t, run)
	if vandal.Status != pawl.StatusParked || len(vandal.Pending) != 1 || vandal.Parked == nil {
		t.Fatalf("%+v", vandal)
	}
	before, err := json.Marshal(vandal)
	if err != nil {
		t.Fatal(err)
	}
	copy(vandal.Pending[0].Args, `{"text":"no"}`)
	*vandal.Pending[0].ExpiresAt = time.Time{}
	vandal.Parked.CallIDs[0] = "another"
	copy(vandal.Messages[2].Parts[0].(llm.ToolResult).Media[0].Data, "no")
	now, err := json.Marshal(final(t, run))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(before), string(now)); diff != "" {
		t.Errorf("a caller changed the run:\n%s", diff)
	}
}

// rows: ALF-27
func TestCostIsAbsentUntilAModelHasBeenCalled(t *testing.T) {
	a := echoing()
	a.Limits.MaxWallSeconds = 1e-9
	s, err := a.Run(t.Context(), "echo hi")
	if err != nil || s.Cost != nil || s.Outcome.Cost != nil || s.Status != pawl.StatusStopped {
		t.Errorf("without a call: status %s, cost %+v (%v)", s.Status, s.Cost, err)
	}
	ready, during := make(chan *pawl.Run, 1), make(chan pawl.State, 1)
	a = pawl.Agent{Model: pawl.Target{Name: "test/model", Price: &llm.Price{}, Client: &recorder{answer: func(*llm.Request) *llm.Response {
		run := <-ready
		s, _ := run.State(context.Background())
		during <- s
		return textual("done")
	}}}}
	run := start(t, a, "go")
	ready <- run
	if s := <-during; s.Status != pawl.StatusRunning || s.Cost != nil {
		t.Errorf("during the first call: status %s, cost %+v", s.Status, s.Cost)
	}
	if s = final(t, run); s.Cost == nil || !s.Cost.Priced {
		t.Errorf("with a call: cost %+v", s.Cost)
	}
}

// rows: ALF-2
func TestBreakingOutDetachesAndManyMayRangeAtOnce(t *testing.T) {
	run := start(t, echoing(), "echo hi")
	for range run.Events() {
		break
	}
	var all sync.WaitGroup
	counts := make([]int, 4)
	for i := range counts {
		all.Go(func() {
			for range run.Events() {
				counts[i]++
			}
		})
	}
	all.Wait()
	if s := final(t, run); s.Status != pawl.StatusCompleted || slices.Max(counts) != 18 || slices.Min(counts) != 18 {
		t.Errorf("status %s, events seen %v", s.Status, counts)
	}
}

// rows: HAR-1, HAR-19, HAR-20, HAR-21, HAR-24, HAR-29, ALDO-39, ALF-1, ALF-12
func TestEachStepIsBuiltAnewFromTheTaskAndWhatHappenedSince(t *testing.T) {
	m := &recorder{answer: func(*llm.Request) *llm.Response {
		return &llm.Response{Parts: llm.Parts{llm.ToolCall{Name: "echo", Args: json.RawMessage(`{"text":"hi"}`)}}, Finish: llm.FinishTool}
	}}
	a := echoing()
	a.Model = pawl.Target{Name: "test/model", Client: m}
	a.Limits.MaxCycles = 3
	s, err := a.Run(t.Context(), "echo hi")
	if err != nil || s.Outcome.Reason != event.ReasonMaxCycles {
		t.Fatalf("state %+v (%v)", s, err)
	}
	if len(m.requests) != 3 {
		t.Fatalf("%d steps ran, at most 3 may", len(m.requests))
	}
	for i, req := range m.requests {
		if first := req.Messages[0]; first.Role != llm.RoleUser || first.Text() != "echo hi" {
			t.Errorf("step %d does not begin with the task: %+v", i+1, first)
		}
		if len(req.Messages) != 1+2*i || req.System != "You echo." || len(req.Tools) != 2 || req.Tools[0].Name != "echo" || req.Tools[1].Name != "result.read" {
			t.Errorf("step %d: %d messages, system %q, tools %+v", i+1, len(req.Messages), req.System, req.Tools)
		}
		if i > 0 {
			answer, result := req.Messages[2*i-1], req.Messages[2*i]
			if answer.Role != llm.RoleAssistant || result.Role != llm.RoleTool ||
				answer.Parts.ToolCalls()[0].CallID != result.Parts[0].(llm.ToolResult).CallID {
				t.Errorf("step %d: the answer and its result do not belong together: %+v %+v", i+1, answer, result)
			}
		}
	}
}

func TestAContinuedRunSendsTheSamePrefixAndGoesOn(t *testing.T) {
	m := &recorder{answer: func(req *llm.Request) *llm.Response { return textual("answer") }}
	a := pawl.Agent{System: "You answer.", Tools: []tool.Tool{echo()}, Model: pawl.Target{Name: "test/model", Client: m}}
	first := start(t, a, "one")
	before := final(t, first)
	second, err := a.Continue(t.Context(), first.ID(), "two", pawl.Options{Journal: first.Journal()})
	if err != nil {
		t.Fatal(err)
	}
	after := final(t, second)
	if diff := cmp.Diff(before.Messages, after.Messages[:len(before.Messages)]); diff != "" || len(after.Messages) != 4 {
		t.Errorf("%d messages; -before +continued:\n%s", len(after.Messages), diff)
	}
	old, now := bytesOf(t, m.requests[0]), bytesOf(t, m.requests[1])
	if !strings.HasPrefix(now, strings.TrimSuffix(old, "]}")) {
		t.Errorf("the prefix moved:\n%s\n%s", old, now)
	}
	for e := range second.Events() {
		if d, ok := e.Data.(event.RunStarted); ok && (d.From == nil || d.From.Run != first.ID()) {
			t.Errorf("the new run does not say where it comes from: %+v", d.From)
		}
	}
	_, err = a.Continue(t.Context(), first.ID(), "", pawl.Options{Journal: first.Journal()})
	if !errors.Is(err, pawl.ErrNothingNew) {
		t.Errorf("error %v, want that there is nothing new", err)
	}
}

// bytesOf encodes what a provider sees of a request, messages last.
func bytesOf(t *testing.T, req llm.Request) string {
	t.Helper()
	b, err := json.Marshal(struct {
		System   string
		Tools    []llm.ToolDef
		Messages []*llm.Message
	}{req.System, req.Tools, req.Messages})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A declaration that ends its goroutine breaks the run amid its calls. The conversation
// keeps the calls, with results that say that they never ran.
func TestARunThatBrokeAmidItsCallsIsContinued(t *testing.T) {
	m := &recorder{answer: func(req *llm.Request) *llm.Response {
		if len(req.Messages) > 1 {
			return textual("done")
		}
		r := textual("now")
		for _, text := range []string{"hi", "ho"} {
			r.Parts = append(r.Parts, llm.ToolCall{Name: "echo", Args: json.RawMessage(`{"text":"` + text + `"}`)})
		}
		r.Finish = llm.FinishTool
		return r
	}}
	broken := echo()
	broken.Facts = func(json.RawMessage) event.Facts { runtime.Goexit(); return event.Facts{} }
	a := pawl.Agent{Model: pawl.Target{Name: "test/model", Client: m}, Tools: []tool.Tool{broken}}
	run := start(t, a, "echo hi")
	if s, err := run.Wait(); err == nil || s.Status != pawl.StatusFailed {
		t.Fatalf("state %+v, error %v", s, err)
	}
	a.Tools = []tool.Tool{echo()}
	next, err := a.Continue(t.Context(), run.ID(), "", pawl.Options{Journal: run.Journal()})
	if err != nil {
		t.Fatal(err)
	}
	if s := final(t, next); s.Text() != "done" || len(s.Messages) != 4 {
		t.Errorf("state %+v", s)
	}
	sent := m.requests[1].Messages
	for i, want := range []string{"hi", "ho"} {
		call, result := sent[1].Parts[i+1].(llm.ToolCall), sent[2].Parts[i].(llm.ToolResult)
		if string(call.Args) != `{"text":"`+want+`"}` || result.CallID != call.CallID || !strings.Contains(result.Output, "before this call ran") {
			t.Errorf("call %s %s has the result %+v", call.CallID, call.Args, result)
		}
	}
}

func TestOnlyAnEndedRunIsContinued(t *testing.T) {
	a := echoing()
	a.Approvals.Tools = []string{"echo"}
	run := start(t, a, "echo hi")
	s := final(t, run)
	if s.Status != pawl.StatusParked || len(s.Pending) != 1 || s.Outcome != nil {
		t.Fatalf("state %+v", s)
	}
	_, err := a.Continue(t.Context(), run.ID(), "and?", pawl.Options{Journal: run.Journal()})
	if !errors.Is(err, pawl.ErrNotEnded) {
		t.Errorf("error %v", err)
	}
	if err := run.Cancel(t.Context(), "enough"); err != nil {
		t.Fatal(err)
	}
	now, err := run.State(t.Context())
	if err != nil || now.Status != pawl.StatusCancelled {
		t.Errorf("state %+v (%v)", now, err)
	}
	if err := run.Cancel(t.Context(), "again"); !errors.Is(err, journal.ErrEnded) {
		t.Errorf("error %v", err)
	}
	next, err := a.Continue(t.Context(), run.ID(), "and?", pawl.Options{Journal: run.Journal()})
	if err != nil {
		t.Fatal(err)
	}
	final(t, next)
}

func TestACancelledContextCancelsTheOneShotAndIsNoError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	a := echoing()
	a.Tools = []tool.Tool{pawl.Tool("echo", "Hang.", func(ctx context.Context, _ map[string]any) (string, error) {
		cancel()
		<-ctx.Done()
		return "", ctx.Err()
	})}
	s, err := a.Run(ctx, "echo hi")
	if err != nil || s.Status != pawl.StatusCancelled {
		t.Errorf("state %+v (%v)", s, err)
	}
	if _, err := a.Run(ctx, "echo hi"); !errors.Is(err, context.Canceled) {
		t.Errorf("a run whose context had ended: error %v", err)
	}
}

// rows: ALF-79
func TestEverythingWrongWithAnAgentIsReportedAtOnceByField(t *testing.T) {
	model := says()
	unpriced := pawl.Target{Name: "scripted/unpriced", Client: model.Client}
	for name, tt := range map[string]struct {
		agent  pawl.Agent
		fields []string
	}{
		"nothing":           {pawl.Agent{Model: model}, nil},
		"no model":          {pawl.Agent{}, []string{"Model"}},
		"no client":         {pawl.Agent{Model: pawl.Target{Name: "a/b"}}, []string{"Model"}},
		"a bare name":       {pawl.Agent{Model: pawl.Target{Name: "b", Client: model.Client}}, []string{"Model"}},
		"a name twice":      {pawl.Agent{Model: model, Fallbacks: []pawl.Target{model}}, []string{"Fallbacks[0]"}},
		"a tool twice":      {pawl.Agent{Model: model, Tools: []tool.Tool{echo(), echo()}}, []string{"Tools"}},
		"several tools":     {pawl.Agent{Model: model, Tools: []tool.Tool{echo(), {}, echo(), {Name: "idle"}}}, []string{"Tools", "Tools", "Tools"}},
		"an unknown sender": {pawl.Agent{Model: model, Approvals: pawl.Approvals{MaySend: []string{"x"}}}, []string{"Approvals.MaySend"}},
		"an unknown gate":   {pawl.Agent{Model: model, Approvals: pawl.Approvals{Tools: []string{"x"}}}, []string{"Approvals.Tools"}},
		"no such limit":     {pawl.Agent{Model: model, Termination: pawl.Termination{OnLimit: "okay"}}, []string{"Termination.OnLimit"}},
		"several choices": {pawl.Agent{
			Model: model, Conversation: pawl.Conversation{OnNoToolCall: "nugde", Dispatch: "sequential"}, ModelSettings: pawl.ModelSettings{Cache: "1d", MaxTokens: -1},
		}, []string{"Conversation.OnNoToolCall", "Conversation.Dispatch", "ModelSettings.Cache", "ModelSettings.MaxTokens"}},
		"a cap that cannot be kept":      {pawl.Agent{Model: unpriced, Limits: pawl.Limits{USDPerRun: 1}}, []string{"Limits"}},
		"one for the whole tree":         {pawl.Agent{Model: unpriced, Limits: pawl.Limits{MaxTotalCost: 1}}, []string{"Limits"}},
		"one that a fallback cannot":     {pawl.Agent{Model: model, Fallbacks: []pawl.Target{unpriced}, Limits: pawl.Limits{USDPerRun: 1}}, []string{"Limits"}},
		"one that is kept":               {pawl.Agent{Model: model, Limits: pawl.Limits{USDPerRun: 1}}, nil},
		"a price that gives money back":  {pawl.Agent{Model: pawl.Target{Name: "test/model", Client: scripted.New("test"), Price: &llm.Price{Input: 1, Output: -1}}}, []string{"Model"}},
		"no cap":                         {pawl.Agent{Model: unpriced, Limits: pawl.Limits{USDPerRun: -1}}, nil},
		"an unknown price, nothing said": {pawl.Agent{Model: unpriced}, nil},
		"several": {pawl.Agent{
			Schema: json.RawMessage(`{"type":7}`), Termination: pawl.Termination{Conditions: []pawl.Condition{{}, {Kind: "text-includes"}, {Kind: "tool-result", Tool: "x"}, {Kind: "budget-exhausted", Text: "x"}}},
		}, []string{"Model", "Termination.Conditions[0]", "Termination.Conditions[1]", "Termination.Conditions[2]", "Termination.Conditions[2]", "Termination.Conditions[3]", "Schema"}},
	} {
		t.Run(name, func(t *testing.T) {
			var fields []string
			err := tt.agent.Validate()
			if joined, ok := err.(interface{ Unwrap() []error }); ok {
				for _, e := range joined.Unwrap() {
					if problem, ok := errors.AsType[*pawl.InvalidAgentError](e); ok {
						fields = append(fields, problem.Field)
					}
				}
			}
			if diff := cmp.Diff(tt.fields, fields); diff != "" {
				t.Errorf("%v\n-want +got:\n%s", err, diff)
			}
			if _, startErr := tt.agent.Start(t.Context(), "x", pawl.Options{}); (startErr == nil) != (err == nil) {
				t.Errorf("Start says %v", startErr)
			}
		})
	}
}

func TestARunListensToTheProgram(t *testing.T) {
	step, at := make(chan struct{}), make(chan struct{})
	a := echoing()
	a.Tools = []tool.Tool{pawl.Tool("echo", "Wait.", func(context.Context, map[string]any) (string, error) {
		at <- struct{}{}
		<-step
		return "hi", nil
	})}
	a.Model = says(
		scripted.Turn{ToolCalls: calls("echo", `{}`)},
		scripted.Turn{Text: "done", Expect: &scripted.Expectation{Last: []string{"hurry"}}},
	)
	run := start(t, a, "echo hi")
	<-at
	if err := errors.Join(run.Input(t.Context(), "hurry"), run.Raise(t.Context(), "max_cycles", 9), run.Pause(t.Context())); err != nil {
		t.Fatal(err)
	}
	for e := range run.Events() {
		if e.Type() == event.TypePauseRequested {
			break
		}
	}
	close(step)
	if s := final(t, run); s.Status != pawl.StatusParked {
		t.Fatalf("state %+v", s)
	}
	next, err := a.Resume(t.Context(), run.ID(), pawl.Options{Journal: run.Journal()})
	if err != nil {
		t.Fatal(err)
	}
	if s := final(t, next); s.Text() != "done" {
		t.Errorf("state %+v", s)
	}
}

func TestInterruptedRunStopsAndResumes(t *testing.T) {
	at := make(chan struct{}, 2)
	hang := pawl.Tool("hang", "Hang.", func(ctx context.Context, _ map[string]any) (string, error) {
		at <- struct{}{}
		<-ctx.Done()
		return "", ctx.Err()
	})
	a := pawl.Agent{Tools: []tool.Tool{hang}, Model: says(scripted.Turn{ToolCalls: calls("hang", `{}`)}, scripted.Turn{Text: "done"})}
	run := start(t, a, "hang")
	<-at
	run.Interrupt()
	if s := final(t, run); s.Status != pawl.StatusParked || len(s.Pending) != 0 {
		t.Fatalf("state %+v", s)
	}
	next, err := a.Resume(t.Context(), run.ID(), pawl.Options{Journal: run.Journal()})
	if err != nil {
		t.Fatal(err)
	}
	if s := final(t, next); s.Text() != "done" || len(at) != 0 {
		t.Errorf("the tool ran %d times more; state %+v", len(at), s)
	}
}

func TestAFigureThatIsNoNumberIsReportedByItsField(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	err := pawl.Agent{ModelSettings: pawl.ModelSettings{Temperature: &nan}, Limits: pawl.Limits{USDPerRun: nan, MaxTotalCost: inf, MaxWallSeconds: inf, MaxIdleSeconds: nan}}.Validate()
	for _, want := range []string{"Temperature: NaN", "USDPerRun: NaN", "MaxTotalCost: +Inf", "MaxWallSeconds: +Inf", "MaxIdleSeconds: NaN"} {
		if err == nil || !strings.Contains(err.Error(), want+" is not a number") {
			t.Errorf("nothing says %s: %v", want, err)
		}
	}
}

func TestATimeForStallsIsFromASecondToADay(t *testing.T) {
	named := pawl.Target{Name: "scripted/a", Client: scripted.New("test"), Price: &llm.Price{}}
	for after, valid := range map[time.Duration]bool{-1: false, 0: true, time.Second - 1: false, time.Second: true, 24 * time.Hour: true, 24*time.Hour + 1: false} {
		err := pawl.Agent{Model: named, ModelSettings: pawl.ModelSettings{StallTimeout: after}}.Validate()
		if refused := err != nil && strings.Contains(err.Error(), "StallTimeout: "+after.String()+" is not from 1 second to 24 hours"); refused == valid || valid && err != nil {
			t.Errorf("%s: %v", after, err)
		}
	}
}
