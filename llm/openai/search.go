package openai

import (
	"slices"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// searchTool is the service's name for the tool that finds deferred tools.
const searchTool = "tool_search"

// offered holds the tools that a request offers.
type offered struct {
	names *wire.Names
	tools []llm.ToolDef
	// search is the tool that finds deferred tools. It is nil if there is none or the
	// model cannot search; then every tool is an ordinary one.
	search *llm.ToolDef
}

func (m *Model) offer(req *llm.Request) offered {
	o := offered{names: m.names.For(req.Tools, maxToolName), tools: req.Tools}
	if i := slices.IndexFunc(req.Tools, func(t llm.ToolDef) bool { return t.Search }); i >= 0 && wire.GPTAtLeast(req.Model, 5, 4) {
		o.search = &req.Tools[i]
	}
	return o
}

// nameOf returns our name of the tool that an item calls.
func (o *offered) nameOf(call *output) string {
	switch {
	case !call.clientSearch():
		return o.names.Local(wire.Text(call.name))
	case o.search != nil:
		return o.search.Name
	}
	return searchTool
}

// clientSearch reports whether the item is a search for tools that the client performs.
// The service's own searches are other items.
func (o *output) clientSearch() bool {
	return o.kind == searchCall && wire.Text(o.execution) == "client"
}

func (o *offered) appendTool(b []byte, t *llm.ToolDef) []byte {
	if t == o.search {
		b = append(b, `{"type":"tool_search","execution":"client"`...)
		b = appendMember(b, "description", t.Description)
		b = append(b, `,"parameters":`...)
		return append(appendParameters(b, t.Schema), '}')
	}
	b = append(b, `{"type":"function","name":`...)
	b = wire.AppendQuoted(b, o.names.Wire(t.Name))
	b = appendMember(b, "description", t.Description)
	b = append(b, `,"parameters":`...)
	b = appendParameters(b, t.Schema)
	b = append(b, `,"strict":false`...)
	if t.Deferred && o.search != nil {
		b = append(b, `,"defer_loading":true`...)
	}
	return append(b, '}')
}

// finds reports whether a search is sent back as a search: its result follows and names
// the tools found.
func (p *projection) finds(c *llm.ToolCall) bool {
	if len(p.behind) == 0 {
		return false
	}
	for _, part := range p.behind[0].Parts {
		if r, ok := part.(llm.ToolResult); ok && r.CallID == c.CallID && r.ProviderID == c.ProviderID {
			return p.found(c, &r)
		}
	}
	return false
}

// found reports whether a search found tools. A failed search has only text, which the
// service accepts only from functions, so it is sent as a function call.
func (p *projection) found(c *llm.ToolCall, r *llm.ToolResult) bool {
	return p.search != nil && p.search.Name == c.Name && len(c.Args) > 0 && !r.IsError
}

func appendSearchCall(b []byte, c *llm.ToolCall, kept *keptCall, withID bool) []byte {
	b = append(b, `,{"type":"tool_search_call","execution":"client","status":"completed"`...)
	if withID {
		b = appendMember(b, "id", kept.id)
	}
	b = appendMember(b, "call_id", callID(c.ProviderID, c.CallID))
	b = append(b, `,"arguments":`...)
	return append(wire.AppendCompact(b, wire.SentArguments(c), "{}"), '}')
}

// appendFound appends the complete definitions of the tools that a search found. It
// skips tools that are not deferred, because the model knows them.
func (p *projection) appendFound(b []byte, r *llm.ToolResult) []byte {
	b = append(b, `,{"type":"tool_search_output","execution":"client","status":"completed"`...)
	b = appendMember(b, "call_id", callID(r.ProviderID, r.CallID))
	b = append(b, `,"tools":[`...)
	start := len(b)
	for i := range p.tools {
		if t := &p.tools[i]; t.Deferred && slices.Contains(r.Tools, t.Name) {
			b = append(b, ',')
			b = p.appendTool(b, t)
		}
	}
	if len(b) > start {
		b = dropByte(b, start)
	}
	return append(b, "]}"...)
}
