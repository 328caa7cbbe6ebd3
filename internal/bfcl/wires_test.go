package bfcl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/anthropic"
	"github.com/pawlrun/pawl/llm/gemini"
	"github.com/pawlrun/pawl/llm/openai"
	"github.com/pawlrun/pawl/llm/openaichat"
)

// wireFormat is one of the four wires: how to open a model on it, and what its
// service would answer.
type wireFormat struct {
	name string
	open func(*http.Client) llm.Model
	// names are the tools' names in a request, as the service sees them.
	names func(body map[string]any) []string
	// answer is an answer with these calls, or with text where there is none.
	answer func(calls []wireCall) any
}

type wireCall struct {
	id, name string
	args     map[string]any
}

func (c wireCall) encoded() string {
	b, err := json.Marshal(c.args)
	if err != nil {
		panic(err)
	}
	return string(b)
}

type object = map[string]any

func wires() []wireFormat {
	return []wireFormat{
		{
			name:  "anthropic",
			open:  func(c *http.Client) llm.Model { return anthropic.New(anthropic.Options{APIKey: "k", HTTP: c}) },
			names: func(b object) []string { return collect(b["tools"], "name") },
			answer: func(calls []wireCall) any {
				content, stop := []any{object{"type": "text", "text": "done"}}, "end_turn"
				if len(calls) > 0 {
					content, stop = nil, "tool_use"
				}
				for _, c := range calls {
					content = append(content, object{"type": "tool_use", "id": c.id, "name": c.name, "input": c.args})
				}
				return object{
					"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": content, "stop_reason": stop,
					"usage": object{"input_tokens": 10, "output_tokens": 5},
				}
			},
		},
		{
			name:  "responses",
			open:  func(c *http.Client) llm.Model { return openai.New(openai.Options{APIKey: "k", HTTP: c}) },
			names: func(b object) []string { return collect(b["tools"], "name") },
			answer: func(calls []wireCall) any {
				var output []any
				for _, c := range calls {
					output = append(output, object{
						"type": "function_call", "id": "fc_" + c.id, "call_id": c.id, "name": c.name, "arguments": c.encoded(), "status": "completed",
					})
				}
				if len(calls) == 0 {
					output = append(output, object{
						"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
						"content": []any{object{"type": "output_text", "text": "done", "annotations": []any{}}},
					})
				}
				return object{
					"id": "resp_1", "object": "response", "status": "completed", "model": "m", "output": output,
					"usage": object{"input_tokens": 10, "output_tokens": 5, "total_tokens": 15},
				}
			},
		},
		{
			name:  "chat",
			open:  func(c *http.Client) llm.Model { return openaichat.New(openaichat.Options{APIKey: "k", HTTP: c}) },
			names: func(b object) []string { return collect(b["tools"], "function", "name") },
			answer: func(calls []wireCall) any {
				message, finish := object{"role": "assistant", "content": "done"}, "stop"
				if len(calls) > 0 {
					var list []any
					for _, c := range calls {
						list = append(list, object{"id": c.id, "type": "function", "function": object{"name": c.name, "arguments": c.encoded()}})
					}
					message, finish = object{"role": "assistant", "content": nil, "tool_calls": list}, "tool_calls"
				}
				return object{
					"id": "chat_1", "model": "m", "choices": []any{object{"index": 0, "message": message, "finish_reason": finish}},
					"usage": object{"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
				}
			},
		},
		{
			name: "gemini",
			open: func(c *http.Client) llm.Model { return gemini.New(gemini.Options{APIKey: "k", HTTP: c}) },
			names: func(b object) []string {
				tools, _ := b["tools"].([]any)
				first, _ := tools[0].(object)
				return collect(first["functionDeclarations"], "name")
			},
			answer: func(calls []wireCall) any {
				parts := []any{object{"text": "done"}}
				if len(calls) > 0 {
					parts = nil
				}
				for _, c := range calls {
					parts = append(parts, object{"functionCall": object{"name": c.name, "args": c.args}})
				}
				return object{
					"candidates":   []any{object{"content": object{"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}},
					"modelVersion": "m", "responseId": "r", "usageMetadata": object{"promptTokenCount": 10, "candidatesTokenCount": 5},
				}
			},
		},
	}
}

// collect reads a text at a path in each object of a list.
func collect(list any, path ...string) []string {
	items, _ := list.([]any)
	var out []string
	for _, item := range items {
		var v any = item
		for _, key := range path {
			m, _ := v.(object)
			v = m[key]
		}
		s, _ := v.(string)
		out = append(out, s)
	}
	return out
}

// service answers the first request with the calls and the next with text. It
// stands in the place of the network.
type service struct {
	wire wireFormat
	// local are our names of the tools, in the order that they are offered.
	local []string
	calls []call
	turn  int
}

func (s *service) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var request object
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, fmt.Errorf("the request is no JSON: %w", err)
	}
	offered := s.wire.names(request)
	if len(offered) != len(s.local) {
		return nil, fmt.Errorf("%d tools are offered, not %d", len(offered), len(s.local))
	}
	var calls []wireCall
	if s.turn++; s.turn == 1 {
		for i, c := range s.calls {
			for n, name := range s.local {
				if name == c.name {
					calls = append(calls, wireCall{id: fmt.Sprintf("call_%d", i+1), name: offered[n], args: c.args})
				}
			}
		}
	}
	answer, err := json.Marshal(s.wire.answer(calls))
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(bytes.NewReader(answer)), ContentLength: int64(len(answer)),
	}, nil
}
