package openai_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/openai"
)

const own = "openai/gpt-5"

func raw(s string) json.RawMessage { return json.RawMessage(s) }

func assistant(origin string, parts ...llm.Part) *llm.Message {
	return &llm.Message{Role: llm.RoleAssistant, Origin: origin, Parts: parts}
}

func thought(id string) llm.Reasoning {
	return llm.Reasoning{Text: "hm", Raw: raw(`{"type":"reasoning","id":"` + id + `","summary":[],"encrypted_content":"sealed=="}`)}
}

func result(id, output string) *llm.Message {
	return &llm.Message{Role: llm.RoleTool, Parts: llm.Parts{llm.ToolResult{CallID: "run-1", ProviderID: id, Name: "add", Output: output}}}
}

func TestReasoningIsEchoedUntouchedBeforeWhatItLedTo(t *testing.T) {
	call := llm.ToolCall{CallID: "run-1", ProviderID: "call_a1b2c3d4e5", Name: "add", Args: raw(`{"x": 1}`), Raw: raw(`{"id":"fc_1"}`)}
	wantInput(t, []*llm.Message{
		assistant(own, thought("rs_1"), call),
		result("call_a1b2c3d4e5", "2"),
		assistant(own, thought("rs_2"), llm.Text{Text: "two", Raw: raw(`{"id":"msg_1","phase":"final_answer"}`)}),
	}, `[
		{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"sealed=="},
		{"type":"function_call","id":"fc_1","call_id":"call_a1b2c3d4e5","name":"add","arguments":"{\"x\":1}"},
		{"type":"function_call_output","call_id":"call_a1b2c3d4e5","output":"2"},
		{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"sealed=="},
		{"type":"message","role":"assistant","id":"msg_1","phase":"final_answer","status":"completed",
		 "content":[{"type":"output_text","text":"two","annotations":[]}]}
	]`)
}

func TestReasoningIsLeftOutWithAllIDsThatRestOnIt(t *testing.T) {
	call := llm.ToolCall{CallID: "run-1", ProviderID: "call_a1b2c3d4e5", Name: "add", Args: raw(`{}`), Raw: raw(`{"id":"fc_1"}`)}
	text := llm.Text{Text: "so", Raw: raw(`{"id":"msg_1","phase":"commentary"}`)}
	bareCall := `{"type":"function_call","call_id":"call_a1b2c3d4e5","name":"add","arguments":"{}"},` +
		`{"type":"function_call_output","call_id":"call_a1b2c3d4e5","output":"2"}`
	for name, c := range map[string]struct {
		message *llm.Message
		want    string
	}{
		"another provider's": {
			assistant("anthropic/claude", thought("rs_1"), text, call),
			`[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"so","annotations":[]}]},` + bareCall + `]`,
		},
		"another model's":   {assistant("openai/gpt-4o", thought("rs_1"), call), `[` + bareCall + `]`},
		"of unknown origin": {assistant("", thought("rs_1"), call), `[` + bareCall + `]`},
		"a bare id, which points nowhere": {
			assistant(own, llm.Reasoning{Raw: raw(`{"type":"reasoning","id":"rs_1","summary":[],"content":[],"encrypted_content":null}`)}, call),
			`[` + bareCall + `]`,
		},
		"behind what was kept of the answer": {
			assistant(own, text, thought("rs_1")),
			`[{"type":"message","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"so","annotations":[]}]}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			messages := []*llm.Message{c.message}
			if len(c.message.Parts.ToolCalls()) > 0 {
				messages = append(messages, result("call_a1b2c3d4e5", "2"))
			}
			wantInput(t, messages, c.want)
		})
	}
}

func TestOpenReasoningIsEchoedWhereTheServiceDoesNotSealIt(t *testing.T) {
	item := `{"type":"reasoning","id":"r1","content":[{"type":"reasoning_text","text":"hm"}],"summary":[]}`
	wantInput(t, []*llm.Message{assistant(own, llm.Reasoning{Text: "hm", Raw: raw(item)}, llm.Text{Text: "so"})},
		`[`+item+`,{"type":"message","role":"assistant","content":[{"type":"output_text","text":"so","annotations":[]}]}]`)
}

// rows: HAR-39
func TestItemsOfTheServiceGoBackUntouchedAndOnlyToIt(t *testing.T) {
	item := `{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"a<b"}}`
	parts := []llm.Part{llm.Item{Type: "web_search_call", Raw: raw(item)}, llm.Text{Text: "found"}}
	found := `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"found","annotations":[]}]}`
	wantInput(t, []*llm.Message{assistant(own, parts...)}, `[`+item+`,`+found+`]`)
	wantInput(t, []*llm.Message{assistant("xai/grok", parts...)}, `[`+found+`]`)
}

func TestPartsOfOneMessageItemStayOneItem(t *testing.T) {
	wantInput(t, []*llm.Message{assistant(own,
		llm.Text{Text: "a", Raw: raw(`{"id":"msg_1","annotations":[{"type":"url_citation","url":"u"}]}`)},
		llm.Text{Text: "no", Raw: raw(`{"id":"msg_1","type":"refusal"}`)},
		llm.Text{Text: "b", Raw: raw(`{"id":"msg_2"}`)},
	)}, `[
		{"type":"message","role":"assistant","content":[
			{"type":"output_text","text":"a","annotations":[{"type":"url_citation","url":"u"}]},{"type":"refusal","refusal":"no"}]},
		{"type":"message","role":"assistant","content":[{"type":"output_text","text":"b","annotations":[]}]}
	]`)
}

func TestImagesAndFilesGoInWithTheUserAndWithResults(t *testing.T) {
	wantInput(t, []*llm.Message{
		{Role: llm.RoleUser, Parts: llm.Parts{
			llm.Text{Text: "look"},
			llm.Media{MediaType: "image/png", Data: []byte("png")},
			llm.Media{MediaType: "image/jpeg", URL: "https://example.com/a.jpg"},
			llm.Media{MediaType: "application/pdf", Name: "a.pdf", Data: []byte("pdf")},
			llm.Media{MediaType: "application/pdf", URL: "https://example.com/a.pdf"},
		}},
		assistant(own, llm.ToolCall{ProviderID: "call_a1b2c3d4e5", Name: "shoot", Args: raw(`{}`)}),
		{Role: llm.RoleTool, Parts: llm.Parts{
			llm.ToolResult{ProviderID: "call_a1b2c3d4e5", Output: "shot", Media: []llm.Media{{MediaType: "image/png", Data: []byte("png")}}},
		}},
	}, `[
		{"type":"message","role":"user","content":[
			{"type":"input_text","text":"look"},
			{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,cG5n"},
			{"type":"input_image","detail":"auto","image_url":"https://example.com/a.jpg"},
			{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,cGRm"},
			{"type":"input_file","file_url":"https://example.com/a.pdf"}]},
		{"type":"function_call","call_id":"call_a1b2c3d4e5","name":"shoot","arguments":"{}"},
		{"type":"function_call_output","call_id":"call_a1b2c3d4e5","output":[
			{"type":"input_text","text":"shot"},
			{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,cG5n"}]}
	]`)
}

// Some services count call ids from zero in every answer, so that an id alone does not
// name a call. Services that check refuse it the second time: "Duplicate
// function_call_output for call_id 'terminal:0'. Each function_call must have exactly
// one matching function_call_output" (mnfst/llm-gateway#2851,
// NousResearch/hermes-agent#102629). The first one is made unique, too: the encoding of
// a message must not depend on others, which a compaction may remove.
func TestRepeatedCallIDsAreMadeUnique(t *testing.T) {
	messages := []*llm.Message{}
	for _, ours := range []string{"run-1", "run-2"} {
		messages = append(messages,
			assistant(own, llm.ToolCall{CallID: ours, ProviderID: "call_0", Name: "add", Args: raw(`{}`)}),
			&llm.Message{Role: llm.RoleTool, Parts: llm.Parts{llm.ToolResult{CallID: ours, ProviderID: "call_0", Output: ours}}})
	}
	wantInput(t, messages, `[
		{"type":"function_call","call_id":"call_0_run-1","name":"add","arguments":"{}"},
		{"type":"function_call_output","call_id":"call_0_run-1","output":"run-1"},
		{"type":"function_call","call_id":"call_0_run-2","name":"add","arguments":"{}"},
		{"type":"function_call_output","call_id":"call_0_run-2","output":"run-2"}
	]`)
	// With the later answer alone, as behind a compaction, it is the same.
	wantInput(t, messages[2:], `[
		{"type":"function_call","call_id":"call_0_run-2","name":"add","arguments":"{}"},
		{"type":"function_call_output","call_id":"call_0_run-2","output":"run-2"}
	]`)
	long := strings.Repeat("x", 80)
	body := encoded(t, &llm.Request{Model: "gpt-5", Messages: []*llm.Message{
		assistant("", llm.ToolCall{CallID: long, Name: "add"}),
		{Role: llm.RoleTool, Parts: llm.Parts{llm.ToolResult{CallID: long}}},
	}})
	items, _ := body["input"].([]any)
	call, answer := items[0].(map[string]any)["call_id"], items[1].(map[string]any)["call_id"]
	if id, _ := call.(string); call != answer || id == "" || len(id) > 64 {
		t.Errorf("an id of 80 bytes became %q for the call and %q for the result", call, answer)
	}
}

func TestFragmentOfArgumentsGoesBackAsNoArguments(t *testing.T) {
	wantInput(t, []*llm.Message{
		assistant(own, llm.ToolCall{ProviderID: "call_a1b2c3d4e5", Name: "add", ArgsText: `{"x":48`}), result("call_a1b2c3d4e5", "no JSON"),
	}, `[{"type":"function_call","call_id":"call_a1b2c3d4e5","name":"add","arguments":"{}"},
		{"type":"function_call_output","call_id":"call_a1b2c3d4e5","output":"no JSON"}]`)
}

func TestCallOfACustomToolIsAnsweredInKind(t *testing.T) {
	resp := mustStream(t, sse(
		`{"type":"response.output_item.done","output_index":0,"item":{"type":"custom_tool_call","id":"ct_1","call_id":"call_a1b2c3d4e5","name":"sql","input":"select \"1\""}}`,
		`{"type":"response.completed","response":{"id":"r","status":"completed","output":[]}}`))
	call := resp.Parts.ToolCalls()[0]
	call.CallID = "run-1"
	if resp.Finish != llm.FinishTool || string(call.Args) != `{"input":"select \"1\""}` {
		t.Fatalf("finish %s, arguments %s", resp.Finish, call.Args)
	}
	wantInput(t, []*llm.Message{assistant(own, call), result("call_a1b2c3d4e5", "1")}, `[
		{"type":"custom_tool_call","call_id":"call_a1b2c3d4e5","name":"sql","input":"select \"1\""},
		{"type":"custom_tool_call_output","call_id":"call_a1b2c3d4e5","output":"1"}
	]`)
}

func TestSettingsAreSentWhereTheyAreSet(t *testing.T) {
	bare := encoded(t, &llm.Request{Model: "gpt-5"})
	wantJSON(t, "bare request", any(bare), `{"model":"gpt-5","store":false,"include":["reasoning.encrypted_content"],"input":[],"stream":true}`)
	warm := 0.5
	full := encoded(t, &llm.Request{
		Model: "gpt-5", System: "Be <brief>.", MaxTokens: 100, Temperature: &warm, CacheKey: "run-7",
		Schema: raw(`{ "type": "object" }`), ProviderTools: []string{"web_search", "code_interpreter", `{"type": "file_search", "vector_store_ids": ["v"]}`},
		Tools: []llm.ToolDef{
			{Name: "fs.read", Description: "Reads.", Schema: raw(`{"type":"object","properties":{"path":{"type":"string"}}}`)},
			{Name: "now", Schema: raw(`{"type":"object","additionalProperties":false}`)},
			{Name: "ping"},
		},
	})
	wantJSON(t, "full request", any(full), `{
		"model":"gpt-5","store":false,"include":["reasoning.encrypted_content"],"input":[],"stream":true,
		"instructions":"Be <brief>.","max_output_tokens":100,"temperature":0.5,"prompt_cache_key":"run-7",
		"text":{"format":{"type":"json_schema","name":"answer","strict":false,"schema":{"type":"object"}}},
		"tools":[
			{"type":"function","name":"fs_read","description":"Reads.","strict":false,
			 "parameters":{"type":"object","properties":{"path":{"type":"string"}}}},
			{"type":"function","name":"now","strict":false,"parameters":{"type":"object","additionalProperties":false,"properties":{}}},
			{"type":"function","name":"ping","strict":false,"parameters":{"type":"object","properties":{}}},
			{"type":"web_search"},
			{"type":"code_interpreter","container":{"type":"auto"}},
			{"type":"file_search","vector_store_ids":["v"]}
		]}`)
}

func TestSealedReasoningIsAskedOnlyOfModelsThatReason(t *testing.T) {
	for model, want := range map[string]bool{
		"gpt-5": true, "gpt-5.4-mini": true, "o3": true, "grok-4.3": true, "openai.gpt-5.6-luna": true,
		"gpt-4o": false, "gpt-4.1-nano": false, "ft:gpt-4o:acme": false, "gpt-3.5-turbo": false, "chatgpt-4o-latest": false, "gpt-5-chat-latest": false,
	} {
		if _, got := encoded(t, &llm.Request{Model: model})["include"]; got != want {
			t.Errorf("%s: include sent: %t, want %t", model, got, want)
		}
	}
}

func TestExtraMembersAreSentUnlessTheRequestSetsThem(t *testing.T) {
	m := openai.New(openai.Options{Extra: map[string]json.RawMessage{
		"reasoning": raw(`{"effort": "high"}`), "max_output_tokens": raw("5"), "store": raw("true"), "service_tier": raw(`"flex"`),
	}})
	for maxTokens, want := range map[int]string{0: `"max_output_tokens":5,`, 7: `"max_output_tokens":7,`} {
		enc, err := m.Encode(&llm.Request{Model: "gpt-4o", MaxTokens: maxTokens})
		if err != nil {
			t.Fatal(err)
		}
		var body map[string]any
		if err := json.Unmarshal(bytes.Join(enc.Segments, nil), &body); err != nil {
			t.Fatal(err)
		}
		wantJSON(t, "body", any(body), `{"model":"gpt-4o",`+want+`"reasoning":{"effort":"high"},"service_tier":"flex","store":false,"input":[],"stream":true}`)
	}
}

func TestToolNamesAreMappedBothWays(t *testing.T) {
	tools := []llm.ToolDef{{Name: "fs.read"}, {Name: "fs_read"}, {Name: strings.Repeat("long.", 20)}}
	body := encoded(t, question(tools...))
	offered, _ := body["tools"].([]any)
	for i, tool := range offered {
		name, _ := tool.(map[string]any)["name"].(string)
		if len(name) > 64 || strings.Contains(name, ".") {
			t.Errorf("%q is offered as %q", tools[i].Name, name)
		}
		resp, deltas, err := stream(t, sse(
			`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"c","name":"`+name+`"}}`,
			`{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{}"}`,
			`{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"c","name":"`+name+`","arguments":"{}"}}`,
			`{"type":"response.completed","response":{"status":"completed"}}`), tools...)
		if err != nil {
			t.Fatal(err)
		}
		if got := resp.Parts.ToolCalls()[0].Name; got != tools[i].Name || deltas[0].Tool != tools[i].Name {
			t.Errorf("a call of %s is read as %q and shown as %q", name, got, deltas[0].Tool)
		}
	}
}

func TestMemoChangesNoByteAndEqualBytesHaveEqualDigests(t *testing.T) {
	messages := []*llm.Message{
		assistant("other/model", thought("rs_0")), // becomes nothing, and stands first
		llm.UserText("hi"),
		assistant(own, thought("rs_1"), llm.ToolCall{CallID: "run-1", ProviderID: "call_a1b2c3d4e5", Name: "fs.read", Args: raw(`{}`)}),
		result("call_a1b2c3d4e5", "text"),
		assistant(own, llm.Text{Text: "done"}),
	}
	m, memo, tools := openai.New(openai.Options{}), new(llm.Memo), []llm.ToolDef{{Name: "fs.read"}}
	digests := map[string]string{}
	for round := range 2 {
		for _, n := range []int{2, 4, 5} {
			for _, system := range []string{"a", "b"} {
				model := "gpt-5"
				if n == 4 {
					model = "gpt-5-mini" // a fallback, to which the reasoning is foreign
				}
				req := llm.Request{Model: model, System: system, Messages: messages[:n], Tools: tools}
				cold, err := m.Encode(&req)
				if err != nil {
					t.Fatal(err)
				}
				req.Memo = memo
				warm, err := m.Encode(&req)
				if err != nil {
					t.Fatal(err)
				}
				body := string(bytes.Join(warm.Segments, nil))
				if diff := cmp.Diff(string(bytes.Join(cold.Segments, nil)), body); diff != "" {
					t.Fatalf("round %d, %d messages: the memo changes the bytes (-without +with):\n%s", round, n, diff)
				}
				if cold.Digest != warm.Digest || digests[body] != "" && digests[body] != warm.Digest {
					t.Errorf("round %d, %d messages: digests %s, %s and %s of the same bytes", round, n, cold.Digest, warm.Digest, digests[body])
				}
				digests[body] = warm.Digest
				if !json.Valid([]byte(body)) {
					t.Errorf("no JSON: %s", body)
				}
			}
		}
	}
}

func TestWholeAnswerIsAskedForWithTheSameBytesButOne(t *testing.T) {
	s := &service{body: `{"id":"r","status":"completed","output":[]}`}
	m, req := s.model(openai.Options{}), question()
	enc, err := m.Encode(req)
	if err != nil {
		t.Fatal(err)
	}
	req.Encoded = enc
	before := string(bytes.Join(enc.Segments, nil))
	if _, err := m.Generate(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	whole := string(s.sent)
	if _, err := m.Stream(t.Context(), req, func(llm.Delta) {}); err != nil {
		t.Fatal(err)
	}
	if want := strings.Replace(before, `,"stream":true`, "", 1); whole != want {
		t.Errorf("Generate sent %s, want %s", whole, want)
	}
	if string(s.sent) != before {
		t.Errorf("Stream sent %s, want what was encoded: %s", s.sent, before)
	}
}
