package llm_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/anthropic"
	"github.com/pawlrun/pawl/llm/gemini"
	"github.com/pawlrun/pawl/llm/openai"
	"github.com/pawlrun/pawl/llm/openaichat"
)

// Whatever becomes of a conversation between two requests, of its model and of
// what stands before it, a request has the bytes that it would have as the
// first: one memo for all of them is only a matter of time. The program may do
// with its own list of messages what it likes.
func TestARequestHasTheBytesThatItWouldHaveAlone(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			c := conversation{Rand: rand.New(rand.NewPCG(seed, 1))}
			memo := new(llm.Memo)
			tools := [][]llm.ToolDef{nil, {{Name: "look"}}, {{Name: "lo.ok"}, {Name: "lo_ok", Schema: json.RawMessage(closed)}}, catalogueOf("look", "tools.find")}
			target, req := c.target(), &llm.Request{System: "be brief"}
			for step := range 80 {
				c.change()
				switch c.IntN(12) {
				case 0:
					target = c.target()
				case 1:
					req.Tools = tools[c.IntN(len(tools))]
				case 2:
					req.System = fmt.Sprint("be brief ", c.IntN(3))
				case 3:
					req.Cache = []llm.Caching{"", llm.CacheOff, llm.CacheLong}[c.IntN(3)]
				case 4:
					req.Schema = [][]byte{nil, []byte(closed)}[c.IntN(2)]
				}
				req.Model, req.Messages = target.model, c.messages
				alone := *req
				want, err := target.Encode(&alone)
				if err != nil {
					t.Fatal(err)
				}
				kept := *req
				kept.Memo = memo
				got, err := target.Encode(&kept)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(slices.Concat(want.Segments...)), string(slices.Concat(got.Segments...))); diff != "" {
					t.Fatalf("step %d, %s (-alone +kept):\n%.2000s", step, target.model, diff)
				}
				if want.Digest != got.Digest || !slices.Equal(want.Prompt, got.Prompt) {
					t.Fatalf("step %d, %s: the same bytes are identified as others", step, target.model)
				}
			}
		})
	}
}

func catalogueOf(first, search string) []llm.ToolDef {
	return []llm.ToolDef{{Name: first, Deferred: true}, {Name: search, Search: true}}
}

// conversation is one that changes by chance and stays in order.
type conversation struct {
	*rand.Rand
	messages []*llm.Message
	calls    int
}

type target struct {
	llm.Encoder
	model string
}

func (c *conversation) target() target {
	return [...]target{
		{anthropic.New(anthropic.Options{}), "claude-sonnet-4-5"},
		{anthropic.New(anthropic.Options{MaxTokens: 77}), "claude-sonnet-4-5"},
		{anthropic.New(anthropic.Options{}), "claude-opus-4-5"},
		{openai.New(openai.Options{}), "gpt-5"},
		{openai.New(openai.Options{}), "gpt-5.6"},
		{openaichat.New(openaichat.Options{}), "gpt-5"},
		{gemini.New(gemini.Options{}), "gemini-2.5-pro"},
		{gemini.New(gemini.Options{}), "gemini-3-pro"},
	}[c.IntN(8)]
}

// change does to the conversation what loops do to theirs.
func (c *conversation) change() {
	if len(c.messages) == 0 {
		c.messages = append(c.messages, c.said(llm.RoleUser))
	}
	switch c.IntN(10) {
	default:
		c.messages = append(c.messages, c.turn()...)
	case 0: // a summary in place of turns, in a list of its own
		from, to := c.stretch()
		c.messages = slices.Concat(c.messages[:from], []*llm.Message{c.said(llm.RoleUser)}, c.messages[to:])
	case 1: // turns that leave the very list
		from, to := c.stretch()
		if from > 0 {
			c.messages = slices.Delete(c.messages, from, to)
		}
	case 2: // a result that is another, in the very list
		c.rewrite()
	case 3: // the same, in a list of its own
		c.messages = slices.Clone(c.messages)
		c.rewrite()
	case 4: // back to an earlier point, and on from there over what followed
		c.messages = c.messages[:c.border(c.IntN(len(c.messages))+1)]
	case 5: // a word of the loop's
		c.messages = append(c.messages, c.said(llm.RoleSystem), c.said(llm.RoleUser))
	case 6: // the task in other words
		c.messages[0] = c.said(llm.RoleUser)
	}
}

// border is the first place from i on at which no call is open.
func (c *conversation) border(i int) int {
	for i < len(c.messages) && c.messages[i].Role == llm.RoleTool {
		i++
	}
	return i
}

// stretch is a part of the conversation that no call reaches out of.
func (c *conversation) stretch() (from, to int) {
	from = c.border(c.IntN(len(c.messages)))
	return from, c.border(from + c.IntN(len(c.messages)-from+1))
}

// rewrite puts another message in the place of one with results.
func (c *conversation) rewrite() {
	for i := range c.messages {
		if c.messages[i].Role == llm.RoleTool && c.IntN(2) == 0 {
			r, _ := c.messages[i].Parts[0].(llm.ToolResult)
			r.Output, r.Media = fmt.Sprint("cleared ", c.IntN(100)), nil
			c.messages[i] = &llm.Message{Role: llm.RoleTool, Parts: append(llm.Parts{r}, c.messages[i].Parts[1:]...)}
		}
	}
}

func (c *conversation) said(role llm.Role) *llm.Message {
	m := llm.UserText(fmt.Sprint("say ", c.IntN(1000)))
	if m.Role = role; role == llm.RoleSystem {
		m.Origin = llm.OriginLoop
	} else if c.IntN(20) == 0 {
		m.Parts = append(m.Parts, llm.Media{MediaType: "image/png", Data: bytes.Repeat([]byte("x"), c.IntN(100_000)+1)})
	}
	return m
}

// turn is an answer, as any of the models may have given it, and what follows.
func (c *conversation) turn() []*llm.Message {
	origin := [...]string{"anthropic/claude-sonnet-4-5", "openai/gpt-5", "openai/gpt-5.6", "google/gemini-3-pro", "other/x"}[c.IntN(5)]
	answer := &llm.Message{Role: llm.RoleAssistant, Origin: origin, Parts: llm.Parts{
		llm.Reasoning{Text: "hm", Signature: "c2ln", Raw: json.RawMessage(`{"type":"reasoning","id":"rs_1","encrypted_content":"abc"}`)},
		llm.Text{Text: fmt.Sprint("answer ", c.IntN(1000))},
	}}
	results := &llm.Message{Role: llm.RoleTool}
	for range c.IntN(3) {
		c.calls++
		call := llm.ToolCall{CallID: fmt.Sprint("run-", c.calls), ProviderID: fmt.Sprintf("call_%012d", c.calls), Name: "lo.ok", Signature: "c2ln", Args: json.RawMessage(`{"a": 1}`)}
		result := llm.ToolResult{CallID: call.CallID, ProviderID: call.ProviderID, Name: call.Name, Output: fmt.Sprint("seen ", c.calls), IsError: c.IntN(4) == 0}
		if origin == "openai/gpt-5.6" && c.IntN(3) == 0 {
			call.Name, call.Raw = "tools.find", json.RawMessage(`{"id":"tsc_1","type":"tool_search_call"}`)
			result.Name, result.Tools = call.Name, []string{"look"}
		}
		answer.Parts, results.Parts = append(answer.Parts, call), append(results.Parts, result)
	}
	if len(results.Parts) == 0 {
		return []*llm.Message{answer, c.said(llm.RoleUser)}
	}
	return []*llm.Message{answer, results}
}
