package anthropic_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/anthropic"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const target = "anthropic/claude-sonnet-4-5"

func encoded(t *testing.T, m *anthropic.Model, req *llm.Request) string {
	t.Helper()
	e, err := m.Encode(req)
	if err != nil {
		t.Fatal(err)
	}
	body := bytes.Join(e.Segments, nil)
	if !json.Valid(body) {
		t.Fatalf("the body is no JSON: %s", body)
	}
	if e.Len() != int64(len(body)) {
		t.Errorf("Len says %d of %d bytes", e.Len(), len(body))
	}
	return string(body)
}

// everything is a request that uses all that there is.
func everything() *llm.Request {
	temperature := 0.2
	return &llm.Request{
		Model: "claude-sonnet-4-5", System: "Be careful.\n\"Quote\" <tags>.", MaxTokens: 1000, Temperature: &temperature,
		Schema:        json.RawMessage(`{ "type": "object", "properties": {"answer": {"type": "string"}}, "additionalProperties": false }`),
		ProviderTools: []string{"web_search", `{"type":"advisor_20260301","name":"advisor"}`},
		Tools: []llm.ToolDef{
			{Name: "fs.read", Description: "Read.", Schema: json.RawMessage(`{"type":"object", "properties":{"path":{"type":"string"}}}`)},
			{Name: "shell.exec", Schema: json.RawMessage(`{"type":"object"}`)},
		},
		Messages: []*llm.Message{
			{Role: llm.RoleUser, Parts: llm.Parts{
				llm.Text{Text: "look at these"},
				llm.Media{MediaType: "image/png", Data: []byte("png")},
				llm.Media{MediaType: "image/jpeg", URL: "https://example.com/a.jpg"},
				llm.Media{MediaType: "application/pdf", Name: "a.pdf", Data: []byte("%PDF")},
				llm.Media{MediaType: "text/csv", Name: "a.csv", Data: []byte("a,b\n")},
				llm.Media{MediaType: "audio/wav", Name: "a.wav", Data: []byte("RIFF")},
			}},
			{Role: llm.RoleAssistant, Origin: target + "-20250929", Parts: llm.Parts{
				llm.Reasoning{Text: "hm", Signature: "c2ln"},
				llm.Reasoning{Raw: json.RawMessage(`{"type":"redacted_thinking","data":"sealed"}`)},
				llm.Text{Text: "quoted", Raw: json.RawMessage(`{"citations":[{"type":"char_location"}]}`)},
				llm.Text{Text: " \n"},
				llm.Item{Type: "server_tool_use", Raw: json.RawMessage(`{"type":"server_tool_use","id":"srvtoolu_1"}`)},
				llm.ToolCall{CallID: "run-1-1", ProviderID: "toolu_1", Name: "fs.read", Args: json.RawMessage(`{"path": "a"}`)},
				llm.ToolCall{CallID: "run-1-2", ProviderID: "toolu_2", Name: "shell.exec", ArgsText: `{"comma`},
			}},
			{Role: llm.RoleTool, Parts: llm.Parts{
				llm.ToolResult{CallID: "run-1-1", ProviderID: "toolu_1", Name: "fs.read", Output: "a", Media: []llm.Media{{MediaType: "image/png", Data: []byte("png")}}},
				llm.ToolResult{CallID: "run-1-2", ProviderID: "toolu_2", Name: "shell.exec", Output: "bad arguments", IsError: true},
			}},
		},
	}
}

func TestARequestWithEverythingInIt(t *testing.T) {
	m := anthropic.New(anthropic.Options{Extra: map[string]json.RawMessage{
		"thinking": json.RawMessage(`{"type":"enabled","budget_tokens":2000}`), "model": json.RawMessage(`"ignored"`),
		"tool_choice": json.RawMessage(`{"type":"auto"}`),
	}})
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, []byte(encoded(t, m, everything())), "", "  "); err != nil {
		t.Fatal(err)
	}
	pretty.WriteByte('\n')
	path := filepath.Join("testdata", "everything.json")
	if *update {
		if err := os.WriteFile(path, pretty.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), pretty.String()); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsNotSaidIsLeftToTheService(t *testing.T) {
	got := encoded(t, modelOf(nil), ask())
	want := `{"model":"claude-sonnet-4-5","max_tokens":8192,"messages":[{"role":"user","content":[{"type":"text","text":"go",` +
		`"cache_control":{"type":"ephemeral"}}]}],"stream":true}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Reasoning, sealed items and citations belong to the model family that made
// them; anybody else's are left out whole.
func TestForeignReasoningIsLeftOutWhole(t *testing.T) {
	for origin, echoed := range map[string]bool{
		"anthropic/claude-sonnet-4-5":          true,
		"anthropic/claude-sonnet-4-5-20250929": true,
		"anthropic/claude-sonnet-4-5-latest":   true,
		"anthropic/claude-opus-4-5":            false,
		"anthropic/claude-sonnet-4":            false,
		"openai/claude-sonnet-4-5":             false,
		"":                                     false,
	} {
		req := everything()
		answer := *req.Messages[1]
		answer.Origin = origin
		req.Messages[1] = &answer
		body := encoded(t, modelOf(nil), req)
		for _, private := range []string{`"c2ln"`, `"thinking":"hm"`, `"sealed"`, `srvtoolu_1`, `citations`} {
			if strings.Contains(body, private) != echoed {
				t.Errorf("origin %q: %s echoed: %t, want %t", origin, private, !echoed, echoed)
			}
		}
		for _, public := range []string{`"quoted"`, `"toolu_1"`, `"fs_read"`} {
			if !strings.Contains(body, public) {
				t.Errorf("origin %q: %s is lost", origin, public)
			}
		}
	}
}

func TestAMessageOfForeignReasoningAloneIsNoMessage(t *testing.T) {
	req := ask()
	req.Messages = []*llm.Message{
		{Role: llm.RoleAssistant, Origin: "openai/gpt-5", Parts: llm.Parts{llm.Reasoning{Text: "hm", Raw: json.RawMessage(`{}`)}}},
		llm.UserText("go"),
		{Role: llm.RoleAssistant, Origin: target, Parts: llm.Parts{llm.Reasoning{Text: "cut before its signature"}}},
	}
	var got struct{ Messages []json.RawMessage }
	if err := json.Unmarshal([]byte(encoded(t, modelOf(nil), req)), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Messages) != 1 {
		t.Errorf("got %d messages: %s", len(got.Messages), got.Messages)
	}
}

// Some providers reuse their ids from turn to turn, which this one refuses:
// a foreign id gives way to ours, in the call and in its result.
func TestAForeignCallIDGivesWayToOurs(t *testing.T) {
	req := ask()
	req.Messages = append(req.Messages,
		&llm.Message{Role: llm.RoleAssistant, Origin: "openai/gpt-5", Parts: llm.Parts{
			llm.ToolCall{CallID: "run:1-1", ProviderID: "functions.read:0", Name: "fs.read", Args: json.RawMessage(`{}`)},
		}},
		&llm.Message{Role: llm.RoleTool, Parts: llm.Parts{llm.ToolResult{CallID: "run:1-1", ProviderID: "functions.read:0", Name: "fs.read"}}})
	body := encoded(t, modelOf(nil), req)
	if !strings.Contains(body, `"id":"run_1-1"`) || !strings.Contains(body, `"tool_use_id":"run_1-1"`) {
		t.Error(body)
	}
}

func TestTheMemoChangesNoByteAndKeepsThePrefixStable(t *testing.T) {
	m := modelOf(nil)
	memo := new(llm.Memo)
	all := conversation(21)
	var before string
	for n := 1; n <= len(all); n += 2 {
		req := everything()
		req.Messages = all[:n:n]
		cold := encoded(t, m, req)
		coldDigest := digest(t, m, req)
		req.Memo = memo
		warm := encoded(t, m, req)
		if warm != cold || digest(t, m, req) != coldDigest {
			t.Fatalf("%d messages: the memo changes the bytes", n)
		}
		if marks := strings.Count(warm, `"cache_control"`); marks > 4 || marks < 2 {
			t.Errorf("%d messages: %d cache marks", n, marks)
		}
		// Without its marks, each request begins with the one before it.
		plain := strings.ReplaceAll(warm, `,"cache_control":{"type":"ephemeral"}`, "")
		if !strings.HasPrefix(plain, strings.TrimSuffix(before, `],"stream":true}`)) {
			t.Errorf("%d messages: the prefix moved", n)
		}
		before = plain
	}
}

func digest(t *testing.T, m *anthropic.Model, req *llm.Request) string {
	t.Helper()
	e, err := m.Encode(req)
	if err != nil {
		t.Fatal(err)
	}
	return e.Digest
}

// The mark that this request sets is one that the next request has too, so that
// what was written to the cache is read from it however much an answer holds.
func TestTheNextRequestMarksTheEndOfThisOne(t *testing.T) {
	m := modelOf(nil)
	all := conversation(9)
	marked := func(n int) (at []int) {
		var body struct {
			Messages []struct{ Content []map[string]any }
		}
		if err := json.Unmarshal([]byte(encoded(t, m, &llm.Request{Model: "claude-sonnet-4-5", Messages: all[:n]})), &body); err != nil {
			t.Fatal(err)
		}
		for i, msg := range body.Messages {
			if msg.Content[len(msg.Content)-1]["cache_control"] != nil {
				at = append(at, i)
			}
		}
		return at
	}
	for n, want := range map[int][]int{1: {0}, 3: {0, 2}, 5: {2, 4}, 9: {6, 8}} {
		if got := marked(n); !slices.Equal(got, want) {
			t.Errorf("%d messages: marks at %v, want %v", n, got, want)
		}
	}
	if got := encoded(t, anthropic.New(anthropic.Options{NoCache: true}), everything()); strings.Contains(got, "cache_control") {
		t.Error("NoCache still marks")
	}
}

func TestAnUnknownProviderToolIsRefusedByName(t *testing.T) {
	for _, name := range []string{"web_serch", `{"type":`} {
		req := ask()
		req.ProviderTools = []string{name}
		_, err := modelOf(nil).Encode(req)
		e, ok := errors.AsType[*llm.Error](err)
		if !ok || e.Class != llm.ClassInvalid || !strings.Contains(e.Message, "web_search") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A chain of fallbacks may hold one service twice, with other options.
func TestTwoModelsWithOneMemoKeepTheirOwnSettings(t *testing.T) {
	memo := new(llm.Memo)
	for _, thinking := range []string{"1000", "2000", "1000"} {
		m := anthropic.New(anthropic.Options{Extra: map[string]json.RawMessage{"thinking": json.RawMessage(thinking)}})
		req := ask()
		req.Memo = memo
		if body := encoded(t, m, req); !strings.Contains(body, `"thinking":`+thinking) {
			t.Errorf("the settings of another model: %s", body)
		}
	}
}
