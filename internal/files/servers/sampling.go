package servers

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/rules/fence"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/mcp"
)

// sampling returns how the server's requests for the answers of a model are answered,
// nil if they are refused.
func (h Host) sampling(a *spec.Agent, server spec.MCPServer) *mcp.Sampling {
	if server.Sampling == nil {
		return nil
	}
	return &mcp.Sampling{Agent: spec.SamplerName(server.Server), Model: h.Answers(a, server), USD: *server.Sampling.USD}
}

// Question is what a server asks a model, as the input of a run.
type Question struct {
	Text  string
	Media []llm.Media
	// fence is around the text of the server, which is untrusted.
	fence fence.Fence
}

// Ask sets the limits of the agent that answers a server, which a request may lower, and
// returns the agent's question. maxTokens is the agent's own limit for an answer.
func Ask(of *spec.Agent, maxTokens int, server string, input json.RawMessage) (Question, error) {
	q := Question{fence: fence.New(strings.ToLower(rand.Text()[:16]))}
	var s tool.Sampling
	if err := json.Unmarshal(input, &s); err != nil {
		return q, fmt.Errorf("servers: what a server asks a model: %w", err)
	}
	of.ModelPolicy.Budget.USDPerRun = &s.USD
	if s.MaxTokens > 0 && s.MaxTokens < maxTokens {
		of.ModelPolicy.Decoding.MaxTokens = &s.MaxTokens
	}
	var parts []string
	if s.System != "" {
		parts = append(parts, "Instructions:\n"+q.fence.Wrap(server, s.System))
	}
	for _, m := range s.Messages {
		q.Media = append(q.Media, m.Media...)
		switch {
		case m.Text == "":
		case len(s.Messages) == 1:
			parts = append(parts, "Question:\n"+q.fence.Wrap(server, m.Text))
		default:
			parts = append(parts, "Message of the "+string(roleOf(m))+":\n"+q.fence.Wrap(server, m.Text))
		}
	}
	q.Text = strings.Join(parts, "\n\n")
	return q, nil
}

// Fence returns the fence of the run.
func (q Question) Fence() *event.Fence { return &event.Fence{Nonce: q.fence.Nonce()} }

// roleOf returns the role of a message, of which there are two.
func roleOf(m tool.SampledMessage) llm.Role {
	if m.Role == string(llm.RoleAssistant) {
		return llm.RoleAssistant
	}
	return llm.RoleUser
}
