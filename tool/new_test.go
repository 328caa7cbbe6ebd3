package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
)

type weatherArgs struct {
	City string   `json:"city" jsonschema:"where, in any language"`
	Days int      `json:"days,omitempty" jsonschema:"how many days, 1 when absent"`
	Tags []string `json:"tags,omitempty"`
}

type forecast struct {
	City    string `json:"city"`
	Degrees int    `json:"degrees"`
}

func TestAToolIsMadeFromAFunctionInAFewLines(t *testing.T) {
	weather := tool.New("weather", "Tells the weather.", func(_ context.Context, a weatherArgs) (forecast, error) {
		return forecast{a.City, 20 + a.Days}, nil
	})
	var schema map[string]any
	if err := json.Unmarshal(weather.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"type": "object", "additionalProperties": false, "required": []any{"city"},
		"properties": map[string]any{
			"city": map[string]any{"type": "string", "description": "where, in any language"},
			"days": map[string]any{"type": "integer", "description": "how many days, 1 when absent"},
			"tags": map[string]any{"type": []any{"null", "array"}, "items": map[string]any{"type": "string"}},
		},
	}
	if diff := cmp.Diff(want, schema); diff != "" {
		t.Errorf("schema (-want +got)\n%s", diff)
	}
	if c := newSet(t, weather).Resolve("c", llm.ToolCall{Name: weather.Name, Args: json.RawMessage(`{"city":"Köln"}`)}); c.Problem != nil ||
		c.Effect != event.EffectAtMostOnce || c.ReadOnly || c.Concurrent {
		t.Error("a function is not the dangerous kind of tool until it says otherwise")
	}
	// 2.0 is an integer to JSON Schema, so it must be one to the function.
	r, err := weather.Run(t.Context(), tool.Call{Args: json.RawMessage(`{"city":"Köln","days":2.0}`)})
	if err != nil || r.Output != `{"city":"Köln","degrees":22}` {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestResultsOfFunctions(t *testing.T) {
	failure := errors.New("no such city")
	five := 5
	for _, c := range []struct {
		name string
		tool tool.Tool
		want tool.Result
		err  error
	}{
		{"a string is the output", tool.New("t", "", func(context.Context, struct{}) (string, error) { return "plain", nil }), tool.Result{Output: "plain"}, nil},
		{"so are bytes", tool.New("t", "", func(context.Context, struct{}) ([]byte, error) { return []byte("plain"), nil }), tool.Result{Output: "plain"}, nil},
		{"raw JSON stays what it is", tool.New("t", "", func(context.Context, struct{}) (json.RawMessage, error) {
			return json.RawMessage(`{"a":1}`), nil
		}), tool.Result{Output: `{"a":1}`}, nil},
		{"a Result is taken whole", tool.New("t", "", func(context.Context, struct{}) (tool.Result, error) {
			return tool.Result{Output: "x", ExitCode: &five, EndsRun: true}, nil
		}), tool.Result{Output: "x", ExitCode: &five, EndsRun: true}, nil},
		{"so is what points to one", tool.New("t", "", func(context.Context, struct{}) (*tool.Result, error) {
			return &tool.Result{Output: "x", Private: true}, nil
		}), tool.Result{Output: "x", Private: true}, nil},
		{"what points to none says nothing", tool.New("t", "", func(context.Context, struct{}) (*tool.Result, error) { return nil, nil }), tool.Result{}, nil},
		{"an error keeps what was done so far, behind a pointer too", tool.New("t", "", func(context.Context, struct{}) (*tool.Result, error) {
			return &tool.Result{Output: "half"}, failure
		}), tool.Result{Output: "half"}, failure},
		{"anything else is JSON", tool.New("t", "", func(context.Context, struct{}) ([]int, error) { return []int{1, 2}, nil }), tool.Result{Output: "[1,2]"}, nil},
		{"an error is the function's", tool.New("t", "", func(context.Context, struct{}) (string, error) { return "ignored", failure }), tool.Result{}, failure},
		{"an error keeps what was done so far", tool.New("t", "", func(context.Context, struct{}) (tool.Result, error) {
			return tool.Result{Output: "half"}, failure
		}), tool.Result{Output: "half"}, failure},
	} {
		got, err := c.tool.Run(t.Context(), tool.Call{Args: json.RawMessage(`{}`)})
		if diff := cmp.Diff(c.want, got); diff != "" || !errors.Is(err, c.err) {
			t.Errorf("%s: %v (-want +got)\n%s", c.name, err, diff)
		}
	}
}

// rows: HAR-32
func TestArgumentsThatGoCannotHoldAreInvalidArguments(t *testing.T) {
	weather := tool.New("weather", "", func(_ context.Context, a weatherArgs) (string, error) { return "ran", nil })
	r, err := weather.Run(t.Context(), tool.Call{Args: json.RawMessage(`{"city":"x","days":1e30}`)})
	typed, ok := errors.AsType[*tool.Error](err)
	if !ok || typed.Type != event.ErrorInvalidArgs || r.Output == "ran" {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestNewPanicsWhereNoSchemaCanDescribeTheArguments(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a tool that takes a string was made")
		}
	}()
	tool.New("t", "", func(context.Context, string) (string, error) { return "", nil })
}
