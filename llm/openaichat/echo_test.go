package openaichat_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/openaichat"
)

// thoughtsSentBack are the members of an answer's message with its thoughts, as
// the request behind it has them.
func thoughtsSentBack(t *testing.T, o openaichat.Options, resp *llm.Response) string {
	t.Helper()
	results := &llm.Message{Role: llm.RoleTool}
	for _, c := range resp.Parts.ToolCalls() {
		results.Parts = append(results.Parts, llm.ToolResult{ProviderID: c.ProviderID, Name: c.Name, Output: "rain"})
	}
	enc, err := openaichat.New(o).Encode(&llm.Request{Model: "m", Messages: []*llm.Message{
		llm.UserText("weather?"), {Role: llm.RoleAssistant, Origin: "gateway/m", Parts: resp.Parts}, results,
	}})
	if err != nil {
		t.Fatal(err)
	}
	var body struct {
		Messages []map[string]json.RawMessage
	}
	if err := json.Unmarshal(bytes.Join(enc.Segments, nil), &body); err != nil {
		t.Fatal(err)
	}
	thoughts := map[string]json.RawMessage{}
	for _, name := range []string{"reasoning", "reasoning_content", "reasoning_details"} {
		if v := body.Messages[1][name]; v != nil {
			thoughts[name] = v
		}
	}
	text, err := json.Marshal(thoughts)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestThoughtsGoBackThroughTheGatewayThatSentThem(t *testing.T) {
	const call = `"tool_calls":[{"index":0,"id":"call_w","type":"function","function":{"name":"weather","arguments":"{}"}}]`
	const signed = `"reasoning_details":[{"type":"reasoning.encrypted","index":0,"data":"c2lnbmVk","id":"call_w","format":"google-gemini-v1"}]`
	const content, plain = `"reasoning_content":"Rain."`, `"reasoning":"Rain."`
	for _, c := range []struct{ profile, sent, want string }{
		{"vercel", plain + "," + signed, signed},
		{"openrouter", plain + "," + signed, signed},
		{"llamacpp", content, content},
		{"xai", content, content},
		{"unknown", plain + "," + signed, signed},
		{"unknown", content, content},
		{"unknown", plain, plain},
		{"unknown", plain + "," + content, plain},
		{"groq", plain, ""},
	} {
		profile := profileOf(c.profile)
		o := openaichat.Options{Provider: "gateway", Profile: &profile}
		resp, _ := answered(t, o, sse(`{"choices":[{"index":0,"delta":{`+c.sent+`}}]}`, `{"choices":[{"index":0,"delta":{`+call+`},"finish_reason":"tool_calls"}]}`))
		stored, err := json.Marshal(resp.Parts)
		if err != nil {
			t.Fatal(err)
		}
		var resumed llm.Response
		if err := json.Unmarshal(stored, &resumed.Parts); err != nil {
			t.Fatal(err)
		}
		for _, r := range []*llm.Response{resp, &resumed} {
			if got := thoughtsSentBack(t, o, r); got != "{"+c.want+"}" {
				t.Errorf("%q: %s goes back as %s", c.profile, c.sent, got)
			}
		}
		o.Provider = "another"
		if got := thoughtsSentBack(t, o, resp); got != "{}" {
			t.Errorf("%q: %s goes to another provider as %s", c.profile, c.sent, got)
		}
	}
}

func TestVercelsGatewayIsKnownByItsAddress(t *testing.T) {
	if p := openaichat.ProfileFor("https://ai-gateway.vercel.sh/v1"); p.Name != "vercel" || p.Echo != openaichat.EchoDetails {
		t.Errorf("its profile is %+v", p)
	}
}
