package wiregate

import (
	"testing"

	"github.com/pawlrun/pawl/llm/conform"
)

// wires are the fixtures' names of the wires.
var wires = map[string]conform.Wire{
	"anthropic-messages": conform.Anthropic, "openai-responses": conform.Responses, "openai-chat": conform.Chat, "gemini": conform.Gemini,
}

// LintGate holds every request that a provider was sent, and answered, to the
// rules of its wire: a rule that refuses one of them is no rule of the
// provider's. The requests that adapters make are held to them by the other
// gates.
func LintGate(t *testing.T, api string) {
	r := report{name: "lint/" + api}
	for _, s := range Load(t, api) {
		r.run(t, s.ID, func(t *testing.T) string {
			linted := 0
			for i := range s.Exchanges {
				x := &s.Exchanges[i]
				if x.Request == nil {
					continue
				}
				linted++
				if err := lint(&s, x.Request); err != nil {
					t.Errorf("%s: %v", x.Name, err)
				}
			}
			if linted == 0 {
				return "the recorder kept no request"
			}
			return ""
		})
	}
	r.finish(t)
}

func lint(s *Scenario, request []byte) error {
	return conform.Lint(wires[s.API], request, conform.Options{Model: s.Model})
}
