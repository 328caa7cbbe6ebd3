package launch_test

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/machine/versions"
	"github.com/pawlrun/pawl/internal/mcptest"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
)

// office returns the file of an agent with a server of 250 tools, and the ledger of the
// calls that the server received.
func office(t *testing.T, turns, more string) (path, ledger string) {
	t.Helper()
	ledger = filepath.Join(t.TempDir(), "ledger")
	server := httptest.NewServer(&mcptest.Server{Ledger: ledger, Lists: mcptest.Many()})
	t.Cleanup(server.Close)
	path = file(t, `
model_policy: {primary: {model: scripted/turns.yaml}}
tools:
  mcp: [{server: office, url: "`+server.URL+`", allow: ["*"]`+more)
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "turns.yaml"), []byte(turns), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, ledger
}

// tokens returns the approximate size of a request's tool definitions.
func tokens(req llm.Request) int {
	n := 0
	for _, d := range req.Tools {
		n += len(d.Name) + len(d.Description) + len(d.Schema)
	}
	return n / 4
}

func withPrefix(tools []llm.ToolDef, prefix string) (n int) {
	for _, d := range tools {
		if strings.HasPrefix(d.Name, prefix) {
			n++
		}
	}
	return n
}

func TestToolsThatTakeMuchOfTheWindowAreDeferred(t *testing.T) {
	for _, c := range []struct {
		name, more string
		deferred   bool
	}{
		{"by default", `}]`, true},
		{"auto", `, deferred: auto}]`, true},
		{"in a large window", `, deferred: auto}]` + "\niteration: {context_window: 1000000}", false},
		{"always", `, deferred: always}]` + "\niteration: {context_window: 1000000}", true},
		{"never", `, deferred: never}]`, false},
	} {
		path, _ := office(t, "- text: done\n", c.more)
		var kept recorder
		started, cfg, env := start(t, path, options(t))
		run(t, memory.New(time.Now), started, kept.wrap(env))
		first := kept.requests[0]
		if got := withPrefix(first.Tools, "office.") == 0 && withPrefix(first.Tools, "tool.") == 2; got != c.deferred {
			t.Errorf("%s: %d tools of the server, %d to find them", c.name, withPrefix(first.Tools, "office."), withPrefix(first.Tools, "tool."))
		}
		if n := tokens(first); c.deferred != (n < 4_000) {
			t.Errorf("%s: the tools take %d tokens", c.name, n)
		}
		if n := withPrefix(cfg.Tools, "office."); n != 250 {
			t.Errorf("%s: the run's first event has %d tools of the server", c.name, n)
		}
	}
}

const officeTurns = `
- tool_calls: [{name: tool.search, arguments: {query: open a new bug report for the team}}]
- tool_calls:
    - {name: tool.call, arguments: {tool: office.create_issue, args: {fields: "a", repository: r}}}
    - {name: tool.call, arguments: {tool: office.delete_issue, args: {id: "1"}}}
- tool_calls:
    - {name: tool.call, arguments: {tool: office.make_issue, args: {}}}
    - {name: tool.call, arguments: {tool: office.get_issue, args: {id: [1]}}}
    - {name: tool.call, arguments: {tool: office.get_email, args: {id: "2"}}}
    - {name: tool.call, arguments: {tool: office.create_ticket, args: {fields: "c"}}}
    - {name: tool.call, arguments: {tool: office.close_issue, args: {reason: "b"}}}
- text: done
`

const officeRules = `}]
  effects: {"office.*": idempotent}
  may_send: ["office.*"]
  approvals: {office.close_issue: always}
  rules: [{deny: office.delete_issue, args: {id: "1"}, reason: keep it}, {deny: "office.*_email"}]
hooks: {before_tool: [{command: "echo no fields, please >&2; exit 2", tools: [office.create_ticket]}]}
`

func TestACallOfAFoundToolIsJudgedAndKeptAsACallOfThatTool(t *testing.T) {
	path, ledger := office(t, officeTurns, officeRules)
	var kept recorder
	o := options(t)
	o.Approve = agent.ApprovePark
	store := memory.New(time.Now)
	started, _, env := start(t, path, o)
	id, events := run(t, store, started, kept.wrap(env))
	calls, decisions, results := map[string]event.ToolCall{}, map[string]event.PolicyDecision{}, map[string]event.ToolResult{}
	for _, e := range events {
		switch d := e.Data.(type) {
		case event.ToolCall:
			calls[d.Tool] = d
		case event.PolicyDecision:
			decisions[d.CallID] = d
		case event.ToolResult:
			results[d.Tool] = d
		}
	}
	if c := calls["office.create_issue"]; string(c.Args) != `{"fields":"a","repository":"r"}` || c.Effect != event.EffectIdempotent || decisions[c.CallID].Decision != event.DecisionAllow {
		t.Errorf("a call is kept as %+v, %+v", c, decisions[c.CallID])
	}
	if c := calls["office.delete_issue"]; !strings.Contains(decisions[c.CallID].Reason, "keep it") || results["office.delete_issue"].ErrorType != event.ErrorDenied {
		t.Errorf("a forbidden call: %+v, %+v", decisions[c.CallID], results["office.delete_issue"])
	}
	if r := results[llm.CallTool]; r.ErrorType != event.ErrorUnknownTool || !strings.Contains(r.Output, "office.create_issue") {
		t.Errorf("an unknown tool: %+v", r)
	}
	if r := results["office.get_issue"]; r.ErrorType != event.ErrorInvalidArgs {
		t.Errorf("arguments that do not fit: %+v", r)
	}
	if r := results["office.get_email"]; r.ErrorType != event.ErrorDenied {
		t.Errorf("a hidden tool: %+v", r)
	}
	if r := results["office.create_ticket"]; r.ErrorType != event.ErrorHookBlocked || !strings.Contains(r.Output, "no fields, please") {
		t.Errorf("a hook for a tool: %+v", r)
	}
	if d := decisions[calls["office.close_issue"].CallID]; d.Decision != event.DecisionAsk {
		t.Errorf("a call that needs an approval: %+v", d)
	}
	if text, _ := os.ReadFile(ledger); strings.Count(string(text), "call ") != 1 || !strings.Contains(string(text), `call create_issue `+id+`:`+id+`-2-1 {"fields":"a","repository":"r"}`) {
		t.Errorf("the server had %s", text)
	}
	// The conversation contains the calls as the model made them.
	last := kept.requests[len(kept.requests)-1].Messages
	var made []string
	for _, m := range last {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case llm.ToolCall:
				made = append(made, "call "+p.Name+" "+string(p.Args))
			case llm.ToolResult:
				made = append(made, "result "+p.Name)
			}
		}
	}
	want := []string{
		`call tool.search {"query":"open a new bug report for the team"}`, "result tool.search",
		`call tool.call {"tool":"office.create_issue","args":{"fields":"a","repository":"r"}}`, `call tool.call {"tool":"office.delete_issue","args":{"id":"1"}}`,
		"result tool.call", "result tool.call",
	}
	if diff := cmp.Diff(want, made); diff != "" {
		t.Errorf("the conversation (-want +got):\n%s", diff)
	}
	if found := results["tool.search"].Output; !strings.Contains(found, `"name":"office.create_issue"`) || strings.Contains(found, "_email") {
		t.Errorf("the search gave %.300s", found)
	}

	// Another process continues with the same conversation, and with byte-identical
	// tools in its requests.
	e := engine.New(store, versions.Make, engine.Options{})
	defer func() { _ = e.Close() }()
	if err := e.Send(t.Context(), journal.Command{Run: id, Kind: journal.Approve, CallID: calls["office.close_issue"].CallID, By: "ann"}); err != nil {
		t.Fatal(err)
	}
	before := len(kept.requests)
	r, err := e.Resume(t.Context(), id, func(started event.RunStarted) (perform.Env, error) {
		env, err := launch.Environment(started, o)
		return kept.wrap(env), err
	})
	if err != nil {
		t.Fatal(err)
	}
	drain(t, r)
	if len(kept.requests) == before {
		t.Fatal("the resumed run asked no model")
	}
	first, _ := json.Marshal(kept.requests[0].Tools)
	for i, req := range kept.requests {
		if again, _ := json.Marshal(req.Tools); string(again) != string(first) {
			t.Errorf("request %d has other tools", i)
		}
	}
	after := kept.requests[len(kept.requests)-1].Messages
	if diff := cmp.Diff(last, after[:len(last)]); diff != "" {
		t.Errorf("the conversation of the resumed run (-before +after):\n%s", diff)
	}
	if text, _ := os.ReadFile(ledger); !strings.Contains(string(text), `{"reason":"b"}`) {
		t.Errorf("the approved call did not reach the server: %s", text)
	}
}
