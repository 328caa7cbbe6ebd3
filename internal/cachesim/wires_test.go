package cachesim_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// wire is how one API writes requests and answers.
type wire struct {
	// render reads a request body.
	render func(path string, body []byte) (rendered, error)
	// answer is the n-th answer: so many calls of the tool, or the last word.
	answer func(n, calls int, c counted) string
}

type members = map[string]json.RawMessage

var (
	anthropicMark = regexp.MustCompile(`,"cache_control":\{"type":"ephemeral"(,"ttl":"1h")?\}`)
	openaiMark    = regexp.MustCompile(`,"prompt_cache_breakpoint":\{"mode":"explicit"\}`)
)

// strip takes the mark off a block and says which it was.
func strip(raw json.RawMessage, mark *regexp.Regexp) (string, time.Duration) {
	m := mark.FindStringSubmatch(string(raw))
	switch {
	case m == nil:
		return string(raw), 0
	case len(m) > 1 && m[1] != "":
		return mark.ReplaceAllString(string(raw), ""), time.Hour
	}
	return mark.ReplaceAllString(string(raw), ""), 5 * time.Minute
}

func renderAnthropic(_ string, body []byte) (rendered, error) {
	var req struct {
		Model    string
		Tools    []json.RawMessage
		System   []json.RawMessage
		Messages []struct {
			Role    string
			Content []json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &req); err != nil {
		return rendered{}, err
	}
	r := rendered{scope: req.Model}
	add := func(role string, raw json.RawMessage) {
		b := block{}
		b.text, b.mark = strip(raw, anthropicMark)
		b.text = role + b.text
		b.unmarkable = strings.Contains(b.text, `{"type":"thinking"`) || strings.Contains(b.text, `"text":""`)
		r.blocks = append(r.blocks, b)
	}
	for _, t := range req.Tools {
		add("tool ", t)
	}
	for _, s := range req.System {
		add("system ", s)
	}
	for _, m := range req.Messages {
		for _, c := range m.Content {
			add(m.Role+" ", c)
		}
	}
	return r, nil
}

func answerAnthropic(n, calls int, c counted) string {
	content := []any{members{"type": quote("thinking"), "thinking": quote(thought(n)), "signature": quote(fmt.Sprint("sig", n))}}
	stop := "tool_use"
	for i := range calls {
		content = append(content, members{
			"type": quote("tool_use"), "id": quote(fmt.Sprintf("toolu_%d_%d", n, i)), "name": quote("read"), "input": arguments(n, i),
		})
	}
	if calls == 0 {
		stop = "end_turn"
		content = append(content, members{"type": quote("text"), "text": quote("done")})
	}
	return encode(map[string]any{
		"id": fmt.Sprint("msg_", n), "type": "message", "role": "assistant", "model": "m", "content": content, "stop_reason": stop,
		"usage": map[string]any{
			"input_tokens": c.input - c.read - c.write, "output_tokens": 50,
			"cache_read_input_tokens": c.read, "cache_creation_input_tokens": c.write,
			"cache_creation": map[string]any{"ephemeral_5m_input_tokens": c.write - c.long, "ephemeral_1h_input_tokens": c.long},
		},
	})
}

func renderOpenAI(_ string, body []byte) (rendered, error) {
	var req struct {
		Model        string
		Instructions string
		Tools, Input []json.RawMessage
		Key          string `json:"prompt_cache_key"`
		Options      struct{ Mode string }
	}
	if err := json.Unmarshal(body, &req); err != nil {
		return rendered{}, err
	}
	r := rendered{scope: req.Model + "/" + req.Key, implicit: req.Options.Mode != "explicit"}
	for _, t := range req.Tools {
		r.blocks = append(r.blocks, block{text: string(t)})
	}
	r.blocks = append(r.blocks, block{text: "system " + req.Instructions})
	for _, item := range req.Input {
		b := block{}
		b.text, b.mark = strip(item, openaiMark)
		r.blocks = append(r.blocks, b)
	}
	return r, nil
}

func answerOpenAI(n, calls int, c counted) string {
	output := []any{map[string]any{
		"type": "reasoning", "id": fmt.Sprint("rs_", n), "summary": []any{}, "encrypted_content": thought(n), "status": "completed",
	}}
	for i := range calls {
		output = append(output, map[string]any{
			"type": "function_call", "id": fmt.Sprintf("fc_%d_%d", n, i), "call_id": fmt.Sprintf("call_%08d_%d", n, i),
			"name": "read", "arguments": string(arguments(n, i)), "status": "completed",
		})
	}
	if calls == 0 {
		output = append(output, map[string]any{
			"type": "message", "id": "msg", "role": "assistant", "status": "completed",
			"content": []any{map[string]any{"type": "output_text", "text": "done", "annotations": []any{}}},
		})
	}
	return encode(map[string]any{
		"id": fmt.Sprint("resp_", n), "object": "response", "status": "completed", "model": "m", "output": output,
		"usage": map[string]any{
			"input_tokens": c.input, "output_tokens": 50, "total_tokens": c.input + 50,
			"input_tokens_details": map[string]any{"cached_tokens": c.read, "cache_write_tokens": c.write},
		},
	})
}

func renderChat(_ string, body []byte) (rendered, error) {
	var req struct {
		Model           string
		Tools, Messages []json.RawMessage
		Key             string `json:"prompt_cache_key"`
	}
	if err := json.Unmarshal(body, &req); err != nil {
		return rendered{}, err
	}
	r := rendered{scope: req.Model + "/" + req.Key, implicit: true}
	for _, raw := range append(req.Tools, req.Messages...) {
		r.blocks = append(r.blocks, block{text: string(raw)})
	}
	return r, nil
}

func answerChat(n, calls int, c counted) string {
	message, finish := map[string]any{"role": "assistant", "content": nil}, "tool_calls"
	var list []any
	for i := range calls {
		list = append(list, map[string]any{
			"id": fmt.Sprintf("call_%08d_%d", n, i), "type": "function",
			"function": map[string]any{"name": "read", "arguments": string(arguments(n, i))},
		})
	}
	if message["tool_calls"] = list; calls == 0 {
		message, finish = map[string]any{"role": "assistant", "content": "done"}, "stop"
	}
	return encode(map[string]any{
		"id": fmt.Sprint("chatcmpl-", n), "object": "chat.completion", "model": "m",
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": finish}},
		"usage": map[string]any{
			"prompt_tokens": c.input, "completion_tokens": 50, "total_tokens": c.input + 50,
			"prompt_tokens_details": map[string]any{"cached_tokens": c.read},
		},
	})
}

func renderGemini(path string, body []byte) (rendered, error) {
	var req struct {
		System   json.RawMessage `json:"systemInstruction"`
		Tools    json.RawMessage
		Contents []json.RawMessage
	}
	if err := json.Unmarshal(body, &req); err != nil {
		return rendered{}, err
	}
	r := rendered{scope: path, implicit: true}
	for _, raw := range append([]json.RawMessage{req.System, req.Tools}, req.Contents...) {
		r.blocks = append(r.blocks, block{text: string(raw)})
	}
	return r, nil
}

func answerGemini(n, calls int, c counted) string {
	var parts []any
	for i := range calls {
		part := map[string]any{"functionCall": map[string]any{"name": "read", "args": arguments(n, i)}}
		if i == 0 {
			part["thoughtSignature"] = thought(n)
		}
		parts = append(parts, part)
	}
	if calls == 0 {
		parts = append(parts, map[string]any{"text": "done"})
	}
	return encode(map[string]any{
		"candidates": []any{map[string]any{"content": map[string]any{"role": "model", "parts": parts}, "finishReason": "STOP"}},
		"usageMetadata": map[string]any{
			"promptTokenCount": c.input, "candidatesTokenCount": 50, "totalTokenCount": c.input + 50, "cachedContentTokenCount": c.read,
		},
		"modelVersion": "m",
	})
}

func arguments(n, i int) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"path":"dir-%d/file-%d.go"}`, n, i))
}

func thought(n int) string { return strings.Repeat(fmt.Sprintf("dGhvdWdodCAl%04d", n), 20) }

func quote(s string) json.RawMessage { return json.RawMessage(encode(s)) }

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
