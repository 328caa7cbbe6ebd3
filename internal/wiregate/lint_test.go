package wiregate

import (
	"slices"
	"testing"

	"github.com/pawlrun/pawl/llm/conform"
)

// wires are the fixtures' names of the wires.
var wires = map[string]conform.Wire{
	"anthropic-messages": conform.Anthropic, "openai-responses": conform.Responses, "openai-chat": conform.Chat, "gemini": conform.Gemini,
}

// lintGate holds every request that a provider was sent, and answered, to the
// rules of its wire: a rule that refuses one of them is no rule of the
// provider's. The requests that adapters make are held to them by the other
// gates.
func lintGate(t *testing.T, api string) {
	r := report{name: "lint/" + api}
	for _, s := range load(t, api) {
		kept := slices.DeleteFunc(s.Exchanges, func(x Exchange) bool { return x.Request == nil })
		if len(kept) == 0 {
			continue // the recorder kept the answer alone
		}
		r.run(t, s.ID, func(t *testing.T) string {
			for _, x := range kept {
				if err := lint(&s, x.Request); err != nil {
					t.Errorf("%s: %v", x.Name, err)
				}
			}
			return ""
		})
	}
	r.finish(t)
}

func lint(s *Scenario, request []byte) error {
	return conform.Lint(wires[s.API], request, conform.Options{Model: s.Model})
}

func TestRecordedRequestsKeepTheRulesOfTheirWires(t *testing.T) {
	for api := range wires {
		lintGate(t, api)
	}
}
