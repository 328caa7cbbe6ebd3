package find_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/mcptest"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/find"
)

// many are the tools of a server with 250.
func many(t *testing.T, server string) []tool.Tool {
	t.Helper()
	var page struct {
		Tools []struct {
			Name, Title, Description string
			InputSchema              json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(mcptest.Many()), &page); err != nil {
		t.Fatal(err)
	}
	var all []tool.Tool
	for _, d := range page.Tools {
		all = append(all, tool.Tool{
			Name: server + "." + d.Name, Title: d.Title, Description: d.Description, Schema: d.InputSchema, Deferred: true,
			Run: func(_ context.Context, c tool.Call) (tool.Result, error) {
				return tool.Result{Output: string(c.Args)}, nil
			},
		})
	}
	return all
}

type result struct {
	Tools []struct {
		Name string
		Args json.RawMessage
	}
	More []string
	Note string
}

func ask(t *testing.T, search tool.Tool, args string) (result, error) {
	t.Helper()
	r, err := search.Run(t.Context(), tool.Call{Args: json.RawMessage(args)})
	var out result
	if err == nil {
		if err := json.Unmarshal([]byte(r.Output), &out); err != nil {
			t.Fatalf("%v: %s", err, r.Output)
		}
	}
	return out, err
}

func names(r result) []string {
	var all []string
	for _, each := range r.Tools {
		all = append(all, each.Name)
	}
	return all
}

func TestQueriesFindTheirToolAmongTwoHundredAndFifty(t *testing.T) {
	tools := many(t, "office")
	if len(tools) != 250 {
		t.Fatalf("%d tools", len(tools))
	}
	if len(mcptest.Queries) != 20 {
		t.Fatalf("%d queries", len(mcptest.Queries))
	}
	search := find.Tools(tools)[0]
	for _, q := range mcptest.Queries {
		args, _ := json.Marshal(map[string]any{"query": q.Text})
		found, err := ask(t, search, string(args))
		if err != nil || !slices.Contains(names(found), "office."+q.Want) {
			t.Errorf("%q: %v, %v; want %s", q.Text, names(found), err, q.Want)
		}
		if len(found.Tools) > 5 {
			t.Errorf("%q gave %d definitions", q.Text, len(found.Tools))
		}
	}
}

func TestASearchGivesDefinitionsByNameAndPattern(t *testing.T) {
	tools := slices.Concat(many(t, "office")[:12], many(t, "home/lab")[:8])
	search := find.Tools(tools)[0]
	for _, c := range []struct {
		args  string
		first string
		n     int
		more  int
		note  string
	}{
		{`{"query":"office.*"}`, "office.assign_issue", 5, 7, ""},
		{`{"query":"office.*","limit":12}`, "office.assign_issue", 12, 0, ""},
		{`{"query":"*.get_issue"}`, "home/lab.get_issue", 2, 0, ""},
		{`{"query":"office.get_issue"}`, "office.get_issue", 1, 0, ""},
		{`{"query":"getIssue","limit":1}`, "office.get_issue", 1, 18, ""},
		{`{"query":"deleting an issue","limit":2}`, "office.delete_issue", 2, 16, ""},
		{`{"query":"zebra"}`, "", 0, 0, "there are 8 of home/lab, 12 of office"},
		{`{"query":"elsewhere.*"}`, "", 0, 0, "No tool fits"},
	} {
		found, err := ask(t, search, c.args)
		if err != nil || len(found.Tools) != c.n || len(found.More) != c.more || !strings.Contains(found.Note, c.note) {
			t.Errorf("%s: %v and %d more, %q, %v", c.args, names(found), len(found.More), found.Note, err)
			continue
		}
		if c.n > 0 && (found.Tools[0].Name != c.first || !strings.Contains(string(found.Tools[0].Args), `"properties"`)) {
			t.Errorf("%s: the first is %s with %s, want %s", c.args, found.Tools[0].Name, found.Tools[0].Args, c.first)
		}
	}
	for _, bad := range []string{`{"query":" "}`, `{"query":"` + strings.Repeat("x", 1001) + `"}`} {
		if _, err := ask(t, search, bad); err == nil {
			t.Errorf("%.40s gave a result", bad)
		}
	}
}

func TestACallOfAFoundToolIsACallOfThatTool(t *testing.T) {
	deferred := many(t, "office")
	deferred[0].ReadOnly, deferred[0].Effect = true, event.EffectIdempotent
	set, err := tool.NewSet(append(find.Tools(deferred), deferred...)...)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, args string
		tool       string
		resolved   string
		problem    event.ErrorType
		says       string
	}{
		{"a call", `{"tool":"office.create_issue","args":{"fields":"x"}}`, "office.create_issue", `{"fields":"x"}`, "", ""},
		{"arguments that do not fit", `{"tool":"office.create_issue","args":{"fields":[1]}}`, "office.create_issue", `{"fields":[1]}`, event.ErrorInvalidArgs, "the arguments of office.create_issue"},
		{"a missing argument", `{"tool":"office.create_issue"}`, "office.create_issue", `{}`, event.ErrorInvalidArgs, "fields"},
		{"an unknown tool", `{"tool":"office.make_issue","args":{}}`, llm.CallTool, `{"tool":"office.make_issue","args":{}}`, event.ErrorUnknownTool, `office.create_issue`},
		{"no tool", `{"args":{}}`, llm.CallTool, `{"args":{}}`, event.ErrorInvalidArgs, "tool"},
		{"arguments beside", `{"tool":"office.create_issue","fields":"x"}`, llm.CallTool, `{"tool":"office.create_issue","fields":"x"}`, event.ErrorInvalidArgs, "fields"},
		{"itself", `{"tool":"tool.call","args":{"tool":"office.create_issue"}}`, llm.CallTool, `{"tool":"tool.call","args":{"tool":"office.create_issue"}}`, event.ErrorUnknownTool, "tool.call"},
	} {
		got := set.Resolve("c1", llm.ToolCall{Name: llm.CallTool, ProviderID: "p1", Args: json.RawMessage(c.args)})
		if got.Tool != c.tool || string(got.Args) != c.resolved || got.ProviderID != "p1" {
			t.Errorf("%s: it is %s %s", c.name, got.Tool, got.Args)
		}
		if (got.Problem == nil) != (c.problem == "") || got.Problem != nil && (got.Problem.Type != c.problem || !strings.Contains(got.Problem.Message, c.says)) {
			t.Errorf("%s: %+v", c.name, got.Problem)
		}
	}
	direct := set.Resolve("c1", llm.ToolCall{Name: "office.create_issue", Args: json.RawMessage(`{"fields":"x"}`)})
	through := set.Resolve("c1", llm.ToolCall{Name: llm.CallTool, Args: json.RawMessage(`{"args":{"fields":"x"},"tool":"office.create_issue"}`)})
	if direct.Digest != through.Digest || direct.Effect != event.EffectIdempotent || through.Effect != direct.Effect || !through.ReadOnly || through.Labels != direct.Labels {
		t.Errorf("a direct call is %+v, one through tool.call %+v", direct, through)
	}
	unknown := set.Resolve("c1", llm.ToolCall{Name: "make_issue", Args: json.RawMessage(`{}`)})
	if text := unknown.Problem.Message; strings.Contains(text, "office.") || !strings.Contains(text, "others are called by tool.call") {
		t.Errorf("an unknown tool: %s", text)
	}
}
