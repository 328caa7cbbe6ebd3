package openaichat

import (
	"encoding/json"
	"slices"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// Hosted describes how a request asks for a tool that the service runs itself: as an
// entry among the tools, or as a separate member.
type Hosted struct {
	Entry  string
	Member string
}

// The tools that services run themselves, by their documentation (OpenAI "Web search"
// for chat completions, whose search models search before every answer; OpenRouter
// "Server tools"; Groq "Built-in tools"). The fixtures have no recording of one.
var (
	openAIHosted     = map[string]Hosted{"web_search": {Member: `"web_search_options":{}`}}
	openRouterHosted = map[string]Hosted{"web_search": {Entry: `{"type":"openrouter:web_search"}`}}
	groqHosted       = map[string]Hosted{
		"browser_search":   {Entry: `{"type":"browser_search"}`},
		"code_interpreter": {Entry: `{"type":"code_interpreter"}`},
	}
)

// hosted returns the tools of a request that the service runs. A service that runs
// none, in a chain with others that do, gets none.
func (m *Model) hosted(req *llm.Request) ([]Hosted, error) {
	if len(m.profile.Hosted) == 0 {
		return nil, nil
	}
	var asked []Hosted
	for _, name := range req.ProviderTools {
		tool, known := m.profile.Hosted[name]
		if whole, ok := wire.ProviderToolAsJSON(name); ok {
			tool, known = Hosted{Entry: string(whole)}, true
		}
		if !known {
			return nil, wire.UnknownProviderTool(m.provider, name, m.profile.Hosted)
		}
		asked = append(asked, tool)
	}
	return asked, nil
}

// reported is a service's report about the tools that it ran for an answer.
type reported struct {
	// asked reports that the request offered such tools.
	asked bool
	// annotations name the pages that the answer is based on, executed the calls.
	annotations []json.RawMessage
	executed    []json.RawMessage
	// places finds the calls by their numbers.
	places map[int64]int
}

func (r *reported) annotate(list []byte) {
	for a := wire.ScanArray(list); a.Next(); {
		r.annotations = append(r.annotations, slices.Clone(a.Value()))
	}
}

// execute records the service's calls. A stream repeats each one with its result.
func (r *reported) execute(list []byte) {
	for a := wire.ScanArray(list); a.Next(); {
		index := indexOf(a.Value())
		if at, known := r.places[index]; known {
			r.executed[at] = slices.Clone(a.Value())
			continue
		}
		if index >= 0 {
			if r.places == nil {
				r.places = map[int64]int{}
			}
			r.places[index] = len(r.executed)
		}
		r.executed = append(r.executed, slices.Clone(a.Value()))
	}
}

// indexOf returns the index of an element of a list, -1 if it has none.
func indexOf(object []byte) int64 {
	if index := wire.Member(object, "index"); index != nil {
		return wire.Int(index)
	}
	return -1
}

// item returns the record of the service's tools for an answer. Most services do not
// report whether a tool ran, so there is a record whenever a tool was offered: an
// answer that may contain search results must not count as the model's own.
func (r *reported) item() (llm.Item, bool) {
	if !r.asked && len(r.annotations)+len(r.executed) == 0 {
		return llm.Item{}, false
	}
	raw, err := json.Marshal(struct {
		Executed    []json.RawMessage `json:"executed_tools,omitempty"`
		Annotations []json.RawMessage `json:"annotations,omitempty"`
	}{r.executed, r.annotations})
	if err != nil {
		raw = []byte("{}") // invalid JSON in a stream is reported elsewhere
	}
	return llm.Item{Type: "hosted_tools", Raw: raw}, true
}
