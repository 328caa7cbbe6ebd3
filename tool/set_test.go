package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
)

func noop(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, nil }

func newSet(t *testing.T, tools ...tool.Tool) *tool.Set {
	t.Helper()
	s, err := tool.NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestToolsThatCannotBeOfferedAreRefused(t *testing.T) {
	for _, c := range []struct {
		want  string
		tools []tool.Tool
	}{
		{"has no name", []tool.Tool{{Run: noop}}},
		{"white space or control characters", []tool.Tool{{Name: "a b", Run: noop}}},
		{"white space or control characters", []tool.Tool{{Name: "a\x1b[2J", Run: noop}}},
		{"has no Run function", []tool.Tool{{Name: "a"}}},
		{"is declared twice", []tool.Tool{{Name: "a", Run: noop}, {Name: "a", Run: noop}}},
		{"a and b are both declared to search", []tool.Tool{{Name: "a", Run: noop, Search: true}, {Name: "b", Run: noop, Search: true}}},
		{"is deferred itself", []tool.Tool{{Name: "a", Run: noop, Search: true, Deferred: true}}},
		{"unknown risk", []tool.Tool{{Name: "a", Run: noop, Risk: "harmless"}}},
		{"unknown effect class", []tool.Tool{{Name: "a", Run: noop, Effect: "harmless"}}},
		{"schema of a", []tool.Tool{{Name: "a", Run: noop, Schema: json.RawMessage(`{"type":3}`)}}},
		{`"type" must be "object"`, []tool.Tool{{Name: "a", Run: noop, Schema: json.RawMessage(`{"type":"string"}`)}}},
		{`"type" must be "object"`, []tool.Tool{{Name: "a", Run: noop, Schema: json.RawMessage(`true`)}}},
	} {
		if _, err := tool.NewSet(c.tools...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("want %q, got %v", c.want, err)
		}
	}
}

func TestDefinitionsComeSortedWhateverOrderTheyWereGivenIn(t *testing.T) {
	a, b := tool.Tool{Name: "a", Run: noop}, tool.Tool{Name: "b", Run: noop}
	if diff := cmp.Diff(newSet(t, a, b).Defs(), newSet(t, b, a).Defs()); diff != "" {
		t.Error(diff)
	}
}

// rows: HAR-4, HAR-31, HAR-32, ALF-61, ALF-62
func TestResolveSaysWhatIsWrongWithACallBeforeItRuns(t *testing.T) {
	ran := false
	read := tool.Tool{
		Name: "read", Effect: event.EffectPure, ReadOnly: true, Concurrent: true,
		Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`),
		Run:    func(context.Context, tool.Call) (tool.Result, error) { ran = true; return tool.Result{}, nil },
		Access: func(json.RawMessage) []event.Access { return []event.Access{{Key: "file:a"}} },
	}
	s := newSet(t, read, tool.Tool{Name: "noargs", Run: noop})
	for _, c := range []struct {
		name string
		call llm.ToolCall
		kind event.ErrorType
		want string
	}{
		{"good", llm.ToolCall{Name: "read", Args: json.RawMessage(`{"path":"a"}`)}, "", ""},
		{"unknown", llm.ToolCall{Name: "write", Args: json.RawMessage(`{}`)}, event.ErrorUnknownTool, `there is no tool "write"; the tools are: "noargs", "read"`},
		{"wrong", llm.ToolCall{Name: "read", Args: json.RawMessage(`{"path":1}`)}, event.ErrorInvalidArgs, "the arguments of read do not fit its schema: /path: must be string, not number"},
		{"a fragment", llm.ToolCall{Name: "read", ArgsText: `{"path":"a`}, event.ErrorInvalidArgs, `the arguments of read are not valid JSON: unexpected end of JSON input; they were: {"path":"a`},
		{"a bracket too many", llm.ToolCall{Name: "read", ArgsText: `{"path":"a"}}`}, event.ErrorInvalidArgs, `the arguments of read are not valid JSON: invalid character '}' after top-level value; they were: {"path":"a"}}`},
		{"a member twice", llm.ToolCall{Name: "read", Args: json.RawMessage(`{"path":"a","path":"b"}`)}, event.ErrorInvalidArgs, `the arguments of read are not valid JSON: the member "path" occurs twice in one object; they were: {"path":"a","path":"b"}`},
		{"no object", llm.ToolCall{Name: "read", Args: json.RawMessage(`["a"]`)}, event.ErrorInvalidArgs, `the arguments of read do not fit its schema: must be object, not array; they were: ["a"]`},
		{"nothing at all is an empty object", llm.ToolCall{Name: "noargs"}, "", ""},
		{"nothing where something is needed", llm.ToolCall{Name: "read"}, event.ErrorInvalidArgs, `the arguments of read do not fit its schema: "path" is missing`},
	} {
		got := s.Resolve("c1", c.call)
		var kind event.ErrorType
		var message string
		if got.Problem != nil {
			kind, message = got.Problem.Type, got.Problem.Message
		}
		if kind != c.kind || message != c.want {
			t.Errorf("%s: %q %q\nwant %q %q", c.name, kind, message, c.kind, c.want)
		}
		if got.CallID != "c1" || got.Digest == "" || got.Effect == "" {
			t.Errorf("%s: %+v lacks its id, digest or effect", c.name, got)
		}
	}
	if ran {
		t.Error("resolving ran the tool")
	}
}

// rows: ALF-18, ALF-56
func TestResolveCarriesTheDeclarationOfTheTool(t *testing.T) {
	s := newSet(t, tool.Tool{
		Name: "x", Effect: event.EffectIdempotent, ReadOnly: true, Run: noop, Schema: json.RawMessage(`{"type":"object"}`),
		ConcurrentFor: func(args json.RawMessage) bool { return strings.Contains(string(args), "alone") == false },
		Access:        func(json.RawMessage) []event.Access { return []event.Access{{Key: "file:a", Write: true}} },
		Describe: func(args json.RawMessage) string {
			return "do\n" + string(args) + "\x1b[31m\u202e" + strings.Repeat("x", 500)
		},
	})
	got := s.Resolve("c1", llm.ToolCall{ProviderID: "p1", Name: "x", Args: json.RawMessage(`{}`)})
	want := event.ToolCall{
		CallID: "c1", ProviderID: "p1", Tool: "x", Args: json.RawMessage(`{}`), Effect: event.EffectIdempotent, ReadOnly: true,
		Concurrent: true, Access: []event.Access{{Key: "file:a", Write: true}}, Digest: tool.Digest("x", json.RawMessage(`{}`), ""),
		Labels:   event.Labels{Untrusted: true},
		Describe: "do {} [31m " + strings.Repeat("x", 189) + "…",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if s.Resolve("c2", llm.ToolCall{Name: "x", Args: json.RawMessage(`{"alone":true}`)}).Concurrent {
		t.Error("concurrency does not depend on the arguments")
	}
}

// What changes nothing may be made again, unless its owner says otherwise; of what
// says nothing that is not known.
//
// rows: HAR-53, HAR-60
func TestAToolThatOnlyReadsMayBeAskedAgain(t *testing.T) {
	for _, c := range []struct {
		declared tool.Tool
		want     event.Effect
	}{
		{tool.Tool{}, event.EffectAtMostOnce},
		{tool.Tool{ReadOnly: true}, event.EffectIdempotent},
		{tool.Tool{ReadOnly: true, Effect: event.EffectPure}, event.EffectPure},
		{tool.Tool{ReadOnly: true, Effect: event.EffectAtMostOnce}, event.EffectAtMostOnce},
		{tool.Tool{Effect: event.EffectIdempotent}, event.EffectIdempotent},
	} {
		c.declared.Name, c.declared.Run = "x", noop
		if got := newSet(t, c.declared).Resolve("c", llm.ToolCall{Name: "x"}).Effect; got != c.want {
			t.Errorf("read-only %t and %q is %q, want %q", c.declared.ReadOnly, c.declared.Effect, got, c.want)
		}
	}
}

func TestADeclarationThatPanicsMakesTheCallAProblem(t *testing.T) {
	s := newSet(t, tool.Tool{
		Name: "x", Run: noop, Access: func(json.RawMessage) []event.Access { panic("no idea") },
		TimeoutFor: func(json.RawMessage) time.Duration { panic("no idea") }, Timeout: time.Minute,
	})
	got := s.Resolve("c1", llm.ToolCall{Name: "x"})
	if got.Problem == nil || got.Problem.Type != event.ErrorPanic {
		t.Errorf("%+v", got)
	}
	x, _ := s.Lookup("x")
	if d := x.AttemptTimeout(nil); d != time.Minute {
		t.Errorf("timeout %s", d)
	}
}

func TestTheTimeoutOfAnAttempt(t *testing.T) {
	asked := func(d time.Duration) func(json.RawMessage) time.Duration {
		return func(json.RawMessage) time.Duration { return d }
	}
	for _, c := range []struct {
		tool tool.Tool
		want time.Duration
	}{
		{tool.Tool{}, tool.DefaultTimeout},
		{tool.Tool{Timeout: time.Second}, time.Second},
		{tool.Tool{Timeout: time.Second, TimeoutFor: asked(time.Minute)}, time.Minute},
		{tool.Tool{Timeout: time.Second, TimeoutFor: asked(0)}, time.Second},
		{tool.Tool{Timeout: -1, TimeoutFor: asked(math.MinInt64)}, tool.DefaultTimeout},
	} {
		if got := c.tool.AttemptTimeout(nil); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

// rows: HAR-7
func TestTheOutputOfAFailedCallIsStructured(t *testing.T) {
	got := tool.ErrorOutput(event.ErrorTimeout, `stopped "early"`, "a < b && c")
	if want := `{"error":"stopped \"early\"","type":"timeout","output":"a < b && c"}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestANilSetHasNoTools(t *testing.T) {
	var s *tool.Set
	if got := s.Resolve("c", llm.ToolCall{Name: "x"}); got.Problem == nil || got.Problem.Message != `there is no tool "x"; this run has no tools` {
		t.Errorf("%+v", got.Problem)
	}
	if _, ok := s.Lookup("x"); ok || s.Defs() != nil {
		t.Error("a nil set has tools")
	}
}

func BenchmarkResolve(b *testing.B) {
	s, err := tool.NewSet(tool.New("noop", "", func(_ context.Context, a weatherArgs) (string, error) { return a.City, nil }))
	if err != nil {
		b.Fatal(err)
	}
	call := llm.ToolCall{Name: "noop", Args: json.RawMessage(`{"city":"Aachen","days":3}`)}
	b.ReportAllocs()
	for b.Loop() {
		if s.Resolve("c", call).Problem != nil {
			b.Fatal("refused")
		}
	}
}

// A call that cannot run asks nothing.
func TestWhatKeepsACallFromBeingRunIsAProblemBeforeItIsJudged(t *testing.T) {
	for _, c := range []struct {
		err  error
		want *event.Problem
	}{
		{nil, nil},
		{&tool.Error{Type: event.ErrorWorkspace, Message: "it is gone"}, &event.Problem{Type: event.ErrorWorkspace, Message: "it is gone"}},
		{errors.New("no"), &event.Problem{Type: event.ErrorTool, Message: "no"}},
	} {
		s := newSet(t, tool.Tool{Name: "x", Run: noop, Check: func(json.RawMessage) error { return c.err }})
		if diff := cmp.Diff(c.want, s.Resolve("c", llm.ToolCall{Name: "x"}).Problem); diff != "" {
			t.Error(diff)
		}
	}
}
