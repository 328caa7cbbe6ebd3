// Package find provides tool.search and tool.call, with which a model finds and calls
// tools that its requests do not list, because their definitions would take too much
// room.
//
// A call of tool.call is resolved before it is judged, see [tool.Set.Resolve]: rules,
// approvals, hooks, limits and the journal apply to the tool that it calls.
package find

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
)

// Name is the name of the tool that searches.
const Name = "tool.search"

// Names returns the names of both tools.
func Names() []string { return []string{Name, llm.CallTool} }

const (
	defaultLimit = 5
	maxLimit     = 20
	// maxQuery bounds a query, in bytes.
	maxQuery = 1_000
)

type args struct {
	Query string `json:"query" jsonschema:"words for what the tool should do, or a name or pattern such as SERVER.*"`
	Limit int    `json:"limit,omitempty" jsonschema:"how many definitions to give, at most 20; 5 when absent"`
}

// found is the result of a search.
type found struct {
	Tools []definition `json:"tools"`
	// More lists further matching names.
	More []string `json:"more,omitempty"`
	Note string   `json:"note,omitempty"`
}

type definition struct {
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Args        json.RawMessage `json:"args"`
}

// Tools returns the two tools for a list of deferred tools.
func Tools(deferred []tool.Tool) []tool.Tool {
	x := newIndex(deferred)
	return []tool.Tool{x.search(), x.call()}
}

func (x *index) search() tool.Tool {
	t := tool.New(Name, "Find tools that are not listed here: there are "+x.overview()+
		". Gives the definitions of those that fit the query best; call one with "+llm.CallTool+
		". A name or a pattern such as SERVER.* gives the tools of these names.", x.run)
	t.Effect, t.ReadOnly, t.Concurrent = event.EffectPure, true, true
	// A definition is as trusted as one in the list of tools.
	t.Labels = &event.Labels{}
	t.Describe = func(raw json.RawMessage) string {
		var a args
		_ = json.Unmarshal(raw, &a)
		return "find tools: " + a.Query
	}
	return t
}

// overview lists the tools by the prefixes of their names.
func (x *index) overview() string {
	counts := map[string]int{}
	var servers []string
	for _, t := range x.tools {
		server, _, _ := strings.Cut(t.Name, ".")
		if counts[server]++; counts[server] == 1 {
			servers = append(servers, server)
		}
	}
	slices.Sort(servers)
	for i, server := range servers {
		servers[i] = fmt.Sprintf("%d of %s", counts[server], server)
	}
	return strings.Join(servers, ", ")
}

func (x *index) run(_ context.Context, a args) (string, error) {
	query := strings.TrimSpace(a.Query)
	switch {
	case query == "":
		return "", &tool.Error{Type: event.ErrorInvalidArgs, Message: "the query is empty", NothingCame: true}
	case len(query) > maxQuery:
		return "", &tool.Error{Type: event.ErrorInvalidArgs, Message: fmt.Sprintf("the query has more than %d bytes", maxQuery), NothingCame: true}
	}
	limit := min(max(a.Limit, 0), maxLimit)
	if limit == 0 {
		limit = defaultLimit
	}
	var hits []int
	if hits = x.named(query); hits == nil {
		hits = x.rank(query)
	}
	out := found{Tools: []definition{}}
	for i, at := range hits {
		t := &x.tools[at]
		if i < limit {
			out.Tools = append(out.Tools, definition{Name: t.Name, Title: t.Title, Description: t.Description, Args: t.Schema})
		} else if len(out.More) < maxMore {
			out.More = append(out.More, t.Name)
		}
	}
	switch rest := len(hits) - len(out.Tools) - len(out.More); {
	case len(hits) == 0:
		out.Note = "No tool fits; there are " + x.overview() + ". Try other words, or SERVER.* for all tools of a server."
	case rest > 0:
		out.Note = fmt.Sprintf("%d more match", rest)
	}
	text, err := plain(out)
	return text, err
}

// maxMore bounds the names without definitions in the result of a search.
const maxMore = 100

// plain returns JSON without the escapes that only web pages need.
func plain(v any) (string, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}

var callSchema = json.RawMessage(`{"type":"object","properties":{` +
	`"tool":{"type":"string","minLength":1,"description":"the name of the tool, as ` + Name + ` gives it"},` +
	`"args":{"type":"object","description":"its arguments, by the schema that ` + Name + ` gives"}},` +
	`"required":["tool"],"additionalProperties":false}`)

// call returns the tool for calls that name no known tool: all others were already
// resolved to the tools that they call.
func (x *index) call() tool.Tool {
	return tool.Tool{
		Name: llm.CallTool, Schema: callSchema, Effect: event.EffectPure, ReadOnly: true, Concurrent: true, Labels: &event.Labels{},
		Description: "Call a tool that " + Name + " has found.",
		Check:       x.unknown,
		Run: func(_ context.Context, c tool.Call) (tool.Result, error) {
			return tool.Result{}, x.unknown(c.Args)
		},
	}
}

func (x *index) unknown(raw json.RawMessage) error {
	var a struct{ Tool string }
	_ = json.Unmarshal(raw, &a)
	text := fmt.Sprintf("there is no tool %q", a.Tool)
	if hits := x.rank(a.Tool); len(hits) > 0 {
		var names []string
		for _, at := range hits[:min(len(hits), defaultLimit)] {
			names = append(names, x.tools[at].Name)
		}
		text += "; there are " + strings.Join(names, ", ")
	}
	return &tool.Error{Type: event.ErrorUnknownTool, NothingCame: true, Message: text + ". Find its name with " + Name}
}
