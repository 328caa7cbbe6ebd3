package openaichat

import (
	"encoding/json"
	"slices"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// Hosted is how a service is asked for a tool that it runs itself: by an entry
// among the tools, or by a member of the request beside them.
type Hosted struct {
	Entry  string
	Member string
}

// The tools that services run themselves, as they document them (OpenAI "Web
// search" for chat completions, whose models made for search look things up
// before every answer; OpenRouter "Server tools"; Groq "Built-in tools"). The
// fixtures have no recording of one.
var (
	openAIHosted     = map[string]Hosted{"web_search": {Member: `"web_search_options":{}`}}
	openRouterHosted = map[string]Hosted{"web_search": {Entry: `{"type":"openrouter:web_search"}`}}
	groqHosted       = map[string]Hosted{
		"browser_search":   {Entry: `{"type":"browser_search"}`},
		"code_interpreter": {Entry: `{"type":"code_interpreter"}`},
	}
)

// hosted are the tools of a request that the service runs. Of a service that
// runs none, and stands in a chain with others that do, none is asked for.
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

// reported is what a service says of the tools that it ran for an answer.
type reported struct {
	// asked says that it was offered some.
	asked bool
	// annotations name the pages that the answer stands on, executed the calls.
	annotations []json.RawMessage
	executed    []json.RawMessage
	// places finds the calls by the numbers that they came with.
	places map[int64]int
}

func (r *reported) annotate(list []byte) {
	for a := wire.ScanArray(list); a.Next(); {
		r.annotations = append(r.annotations, slices.Clone(a.Value()))
	}
}

// execute takes calls that the service made. A stream repeats each with what
// came of it.
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

// indexOf is the place that a piece of a list names, -1 where it names none.
func indexOf(object []byte) int64 {
	if index := wire.Member(object, "index"); index != nil {
		return wire.Int(index)
	}
	return -1
}

// item returns the record of what the service ran beside an answer. Most services
// do not report that a tool ran, so there is a record whenever a tool was offered:
// an answer that may contain search results must not pass for the model's own.
func (r *reported) item() (llm.Item, bool) {
	if !r.asked && len(r.annotations)+len(r.executed) == 0 {
		return llm.Item{}, false
	}
	raw, err := json.Marshal(struct {
		Executed    []json.RawMessage `json:"executed_tools,omitempty"`
		Annotations []json.RawMessage `json:"annotations,omitempty"`
	}{r.executed, r.annotations})
	if err != nil {
		raw = []byte("{}") // a stream whose pieces were no JSON fails elsewhere
	}
	return llm.Item{Type: "hosted_tools", Raw: raw}, true
}
