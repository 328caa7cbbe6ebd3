package llm_test

import (
	"encoding/json"
	"testing"

	"github.com/pawlrun/pawl/llm"
)

func TestACallOfAToolThatRequestsDoNotNameIsRead(t *testing.T) {
	for _, c := range []struct{ name, tool, args, wantTool, wantArgs string }{
		{"a call", llm.CallTool, `{"tool":"docs.search","args":{"q":"x"}}`, "docs.search", `{"q":"x"}`},
		{"in the other order", llm.CallTool, ` { "args" : {"q":1} , "tool" : "docs.search" } `, "docs.search", `{"q":1}`},
		{"arguments in a string", llm.CallTool, `{"tool":"docs.search","args":"{\"q\":\"x\"}"}`, "docs.search", `{"q":"x"}`},
		{"without arguments", llm.CallTool, `{"tool":"docs.list"}`, "docs.list", `{}`},
		{"null", llm.CallTool, `{"tool":"docs.list","args":null}`, "docs.list", `{}`},
		{"a list for arguments", llm.CallTool, `{"tool":"docs.list","args":[1]}`, "", ""},
		{"a text for arguments", llm.CallTool, `{"tool":"docs.list","args":"all of them"}`, "", ""},
		{"an empty text", llm.CallTool, `{"tool":"docs.list","args":""}`, "", ""},
		{"no tool", llm.CallTool, `{"args":{}}`, "", ""},
		{"a member too many", llm.CallTool, `{"tool":"docs.search","q":"x"}`, "", ""},
		{"itself", llm.CallTool, `{"tool":"tool.call","args":{"tool":"fs.write"}}`, "", ""},
		{"no object", llm.CallTool, `["docs.search"]`, "", ""},
		{"no JSON", llm.CallTool, `{"tool":`, "", ""},
		{"no arguments at all", llm.CallTool, ``, "", ""},
		{"another tool", "fs.read", `{"tool":"docs.search","args":{}}`, "", ""},
	} {
		call := llm.ToolCall{CallID: "c1", ProviderID: "p1", Name: c.tool, Args: json.RawMessage(c.args)}
		inner, ok := call.Inner()
		if !ok {
			if c.wantTool != "" || inner.Name != c.tool || string(inner.Args) != c.args {
				t.Errorf("%s: it is not read", c.name)
			}
			continue
		}
		if inner.Name != c.wantTool || string(inner.Args) != c.wantArgs || inner.CallID != "c1" || inner.ProviderID != "p1" {
			t.Errorf("%s: %+v", c.name, inner)
		}
		// What the conversation has of it is read as the same call.
		again, ok := llm.ToolCall{Name: llm.CallTool, Args: inner.Outer(llm.CallTool)}.Inner()
		if !ok || again.Name != inner.Name || string(again.Args) != string(inner.Args) {
			t.Errorf("%s: in the conversation it is %s", c.name, inner.Outer(llm.CallTool))
		}
	}
}

func TestACallThatWasMadeByItsNameKeepsItsArguments(t *testing.T) {
	for _, c := range []struct{ tool, as string }{{"fs.read", "fs.read"}, {llm.CallTool, llm.CallTool}, {"", llm.CallTool}} {
		if got := (llm.ToolCall{Name: c.tool, Args: json.RawMessage(`{"a":1}`)}).Outer(c.as); string(got) != `{"a":1}` {
			t.Errorf("%s as %s: %s", c.tool, c.as, got)
		}
	}
	if got := (llm.ToolCall{Name: "fs.read"}).Outer(llm.CallTool); got != nil {
		t.Errorf("a call without arguments: %s", got)
	}
}
