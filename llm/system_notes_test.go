package llm_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/anthropic"
	"github.com/pawlrun/pawl/llm/conform"
	"github.com/pawlrun/pawl/llm/gemini"
	"github.com/pawlrun/pawl/llm/openai"
	"github.com/pawlrun/pawl/llm/openaichat"
)

// A note with the system's role stands where each wire has a place for it, what
// stands before it keeps its bytes, and the request is one that the service
// takes.
func TestASystemMessageHasTheSystemsRoleOnEachWire(t *testing.T) {
	const note = "earlier: two files were read"
	compatible := openaichat.Profile{Name: "compatible", MaxTokens: "max_tokens"}
	official, _ := openaichat.ProfileNamed("openai")
	for name, tt := range map[string]struct {
		model llm.Encoder
		wire  conform.Wire
		// stands is how the note is written, before and behind what stands
		// around it; cached is what must be as without it.
		stands, cached string
	}{
		"anthropic": {
			model: anthropic.New(anthropic.Options{}), wire: conform.Anthropic,
			stands: `"system":[{"type":"text","text":"be brief","cache_control":{"type":"ephemeral"}},{"type":"text","text":"` + note + `"}],"messages":[{"role":"user"`,
			cached: `{"type":"text","text":"be brief","cache_control":{"type":"ephemeral"}}`,
		},
		"responses": {
			model: openai.New(openai.Options{}), wire: conform.Responses,
			stands: `,{"type":"message","role":"developer","content":[{"type":"input_text","text":"` + note + `"}]},{"type":"message","role":"assistant"`,
			cached: `"text":"the task"}]}`,
		},
		"chat completions": {
			model: openaichat.New(openaichat.Options{Profile: &official}), wire: conform.Chat,
			stands: `,{"role":"system","content":"` + note + `"},{"role":"assistant"`,
			cached: `"content":"the task"}`,
		},
		"a compatible service": {
			model: openaichat.New(openaichat.Options{Profile: &compatible}), wire: conform.Chat,
			stands: `"messages":[{"role":"system","content":"be brief\n\n` + note + `"},{"role":"user"`,
			cached: `"content":"be brief`,
		},
		"gemini": {
			model: gemini.New(gemini.Options{}), wire: conform.Gemini,
			stands: `"systemInstruction":{"parts":[{"text":"be brief"},{"text":"` + note + `"}]}`,
			cached: `"systemInstruction":{"parts":[{"text":"be brief"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			task := llm.UserText("the task")
			answer := &llm.Message{Role: llm.RoleAssistant, Origin: "other/model", Parts: llm.Parts{llm.Text{Text: "on it"}}}
			said := func(text string) *llm.Message {
				return &llm.Message{Role: llm.RoleSystem, Origin: llm.OriginLoop, Parts: llm.Parts{llm.Text{Text: text}}}
			}
			next := llm.UserText("go on")
			memo := new(llm.Memo)
			encode := func(memo *llm.Memo, messages ...*llm.Message) string {
				e, err := tt.model.Encode(&llm.Request{Model: "m", System: "be brief", Messages: messages, Memo: memo})
				if err != nil {
					t.Fatal(err)
				}
				return string(bytes.Join(e.Segments, nil))
			}
			without := encode(memo, task, answer, next)
			with := encode(memo, task, said(note), answer, next)
			if !json.Valid([]byte(with)) || strings.Count(with, note) != 1 || !strings.Contains(with, tt.stands) {
				t.Fatalf("got\n%s\nwant in it\n%s", with, tt.stands)
			}
			prefix, _, _ := strings.Cut(with, tt.cached)
			if before, _, ok := strings.Cut(without, tt.cached); !ok || before != prefix {
				t.Errorf("what stands before the note has changed:\n%s\n%s", before, prefix)
			}
			if err := conform.Lint(tt.wire, []byte(with), conform.Options{Model: "m"}); err != nil {
				t.Error(err)
			}
			// The memo neither keeps an older note nor loses the newer one.
			for _, messages := range [][]*llm.Message{
				{task, said("another"), answer, next}, {task, answer, next}, {task, said(note), said("and more"), answer, next},
			} {
				if diff := cmp.Diff(encode(nil, messages...), encode(memo, messages...)); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestNotesBesideTheSystemTextAreJoinedInTheirOrder(t *testing.T) {
	note := func(text string) *llm.Message {
		return &llm.Message{Role: llm.RoleSystem, Parts: llm.Parts{llm.Text{Text: text}}}
	}
	for _, tt := range []struct {
		messages []*llm.Message
		want     string
	}{
		{nil, ""},
		{[]*llm.Message{llm.UserText("a")}, ""},
		{[]*llm.Message{llm.UserText("a"), note("b")}, "b"},
		{[]*llm.Message{note("b"), llm.UserText("a"), note("c")}, "b\n\nc"},
	} {
		if got := (&llm.Request{Messages: tt.messages}).SystemNotes(); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
