package llm_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/anthropic"
	"github.com/pawlrun/pawl/llm/gemini"
	"github.com/pawlrun/pawl/llm/openai"
	"github.com/pawlrun/pawl/llm/openaichat"
)

// Each provider's list is that of its documentation. An image of another type has a
// request refused, and every later one of the run.
func TestAnImageGoesToTheProvidersThatReadItsType(t *testing.T) {
	services := map[string]llm.Encoder{
		"anthropic": anthropic.New(anthropic.Options{}), "gemini": gemini.New(gemini.Options{}),
		"openai": openai.New(openai.Options{}), "chat": openaichat.New(openaichat.Options{}),
	}
	for mediaType, refusedBy := range map[string]string{
		"image/png": "", "image/jpeg": "", "image/webp": "", "image/gif": "gemini", "image/heic": "anthropic openai chat",
		"image/tiff": "anthropic gemini openai chat", "image/svg+xml": "anthropic gemini openai chat",
	} {
		for name, service := range services {
			f := llm.Media{MediaType: mediaType, Name: "shot", Data: []byte("data")}
			refused := strings.Contains(refusedBy, name)
			if err := service.(llm.Viewer).Shows(&f); (err != nil) != refused {
				t.Errorf("%s shows %s: %v", name, mediaType, err)
			}
			call := llm.ToolCall{CallID: "r-1", ProviderID: "toolu_1", Name: "shoot", Args: []byte("{}")}
			sent, err := service.Encode(&llm.Request{Model: "m", MaxTokens: 10, Tools: []llm.ToolDef{{Name: "shoot", Schema: []byte(`{"type":"object"}`)}},
				Messages: []*llm.Message{
					{Role: llm.RoleUser, Parts: llm.Parts{llm.Text{Text: "look"}, f}},
					{Role: llm.RoleAssistant, Parts: llm.Parts{call}},
					{Role: llm.RoleTool, Parts: llm.Parts{llm.ToolResult{CallID: "r-1", ProviderID: "toolu_1", Name: "shoot", Output: "done", Media: []llm.Media{f}}}},
				}})
			if err != nil {
				t.Errorf("%s, %s: %v", name, mediaType, err)
				continue
			}
			body := bytes.Join(sent.Segments, nil)
			if n := bytes.Count(body, []byte("cannot be shown to this model")); refused && n != 2 || !refused && n != 0 {
				t.Errorf("%s names %d images of type %s in words: %s", name, n, mediaType, body)
			}
			if sends := bytes.Contains(body, []byte("ZGF0YQ==")); sends == refused {
				t.Errorf("%s sends %s: %v", name, mediaType, sends)
			}
		}
	}
}
