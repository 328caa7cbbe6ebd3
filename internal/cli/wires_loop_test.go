package cli

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// wireForm is how a provider is asked, by its documentation.
type wireForm struct {
	model string
	// whole and streamed are the paths, keyHeader holds the key.
	whole, streamed, keyHeader, key string
	// system, tool, call and result say where in the second request of a loop
	// its parts are.
	system, tool, call, result place
	// cached is where a request asks for its prefix to be cached, if it does.
	cached place
}

// place is a way into a JSON document, and what is to be found there.
type place struct{ path, want string }

var wireForms = []wireForm{
	{
		model: "anthropic/claude-sonnet-4-5", whole: "/v1/messages", streamed: "/v1/messages", keyHeader: "X-Api-Key", key: "k",
		system: place{"system.0.text", "You read."}, tool: place{"tools.0.name", "fs_read"},
		call: place{"messages.1.content.0.input.path", "note.md"}, result: place{"messages.2.content.0.content", "     1\ta note\n"},
		cached: place{"messages.2.content.0.cache_control.type", "ephemeral"},
	},
	{
		model: "openai/gpt-4o", whole: "/responses", streamed: "/responses", keyHeader: "Authorization", key: "Bearer k",
		system: place{"instructions", "You read."}, tool: place{"tools.0.name", "fs_read"},
		call: place{"input.1.arguments", `{"path":"note.md"}`}, result: place{"input.2.output", "     1\ta note\n"},
		cached: place{"prompt_cache_key", "RUN"},
	},
	{
		model: "openai-chat/gpt-4o", whole: "/chat/completions", streamed: "/chat/completions", keyHeader: "Authorization", key: "Bearer k",
		system: place{"messages.0.content", "You read."}, tool: place{"tools.0.function.name", "fs_read"},
		call: place{"messages.2.tool_calls.0.function.arguments", `{"path":"note.md"}`}, result: place{"messages.3.content", "     1\ta note\n"},
	},
	{
		model: "google/gemini-2.5-pro", whole: "/v1beta/models/gemini-2.5-pro:generateContent",
		streamed: "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse", keyHeader: "X-Goog-Api-Key", key: "k",
		system: place{"systemInstruction.parts.0.text", "You read."}, tool: place{"tools.0.functionDeclarations.0.name", "fs_read"},
		call: place{"contents.1.parts.0.functionCall.args.path", "note.md"}, result: place{"contents.2.parts.0.functionResponse.response.output", "     1\ta note\n"},
	},
	{
		model: "ollama/qwen3", whole: "/chat/completions", streamed: "/chat/completions", keyHeader: "Authorization", key: "Bearer k",
		system: place{"messages.0.content", "You read."}, tool: place{"tools.0.function.name", "fs_read"},
		call: place{"messages.2.tool_calls.0.function.arguments", `{"path":"note.md"}`}, result: place{"messages.3.content", "     1\ta note\n"},
	},
}

// at is what a document holds at a place, as text.
func (p place) at(t *testing.T, doc string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(doc), &v); err != nil {
		t.Fatalf("%v: %s", err, doc)
	}
	for key := range strings.SplitSeq(p.path, ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i >= len(x) {
				return ""
			}
			v = x[i]
		default:
			return ""
		}
	}
	s, _ := v.(string)
	return s
}

const readsAgent = "identity: {name: reads}\nprompt: {system: You read.}\ntools: {allow: [fs.read]}\n"

// withHeaders is the config of a provider that stands behind a gateway.
func (p *provider) withHeaders() string {
	return strings.ReplaceAll(p.config(), "PAWL_TEST_KEY}", `PAWL_TEST_KEY, headers: {X-Team: agents, X-Gateway-Key: "gw-${PAWL_TEST_GATEWAY}"}}`)
}

func TestALoopWithAToolRunsOverEveryWireStreamedAndWhole(t *testing.T) {
	for _, form := range wireForms {
		for _, whole := range []bool{false, true} {
			name, path := strings.ReplaceAll(form.model, "/", " ")+" streamed", form.streamed
			args := []string{"run", "agent.yaml", "look", "--model", form.model, "--config", "config.yaml", "--no-budget", "--json", "--deltas"}
			if whole {
				name, path, args = strings.ReplaceAll(form.model, "/", " ")+" whole", form.whole, append(args, "--no-stream")
			}
			t.Run(name, func(t *testing.T) {
				listening := make(chan struct{})
				upstream := newProvider(t, reply{tool: "fs_read", args: `{"path":"note.md"}`, after: listening}, reply{text: "It says: a note."})
				p := newProject(t, map[string]string{"config.yaml": upstream.withHeaders(), "agent.yaml": readsAgent, "note.md": "a note"})
				run := p.startWith([]string{testKey, "PAWL_TEST_GATEWAY=secret"}, args...)
				// A reader who comes late has answers from the journal, and no pieces.
				p.eventually("the first request is shown", func() bool { return strings.Contains(run.out.String(), `"model.requested"`) })
				close(listening)
				f := run.wait()
				if f.code != 0 {
					t.Fatalf("exit code %d: %s", f.code, f.err)
				}
				events := p.events(f.out)
				form.checkAsked(t, upstream.asked(), path, events[0].Run)
				checkHeard(t, events, whole)
			})
		}
	}
}

// checkAsked holds the two requests of a loop with a tool against the form.
func (form wireForm) checkAsked(t *testing.T, requests []asked, path, run string) {
	t.Helper()
	if len(requests) != 2 {
		t.Fatalf("%d requests", len(requests))
	}
	for _, r := range requests {
		if r.path != path || r.header.Get(form.keyHeader) != form.key {
			t.Errorf("asked %s with the key %q", r.path, r.header.Get(form.keyHeader))
		}
		checkGateway(t, r.header)
	}
	cached := place{form.cached.path, strings.Replace(form.cached.want, "RUN", run, 1)}
	for _, w := range []place{form.system, form.tool, form.call, form.result, cached} {
		if got := w.at(t, requests[1].body); w.path != "" && got != w.want {
			t.Errorf("the second request has %q at %s, want %q", got, w.path, w.want)
		}
	}
}

func checkGateway(t *testing.T, h http.Header) {
	t.Helper()
	got := []string{h.Get("X-Team"), h.Get("X-Gateway-Key"), h.Get("User-Agent"), h.Get("Content-Type")}
	if diff := cmp.Diff([]string{"agents", "gw-secret", "pawl", "application/json"}, got); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
}

// checkHeard holds what the user of the run sees: the answer, in the pieces in
// which it came, and what it cost.
func checkHeard(t *testing.T, events []event.Event, whole bool) {
	t.Helper()
	var pieces []string
	var usage llm.Usage
	for _, e := range events {
		switch d := e.Data.(type) {
		case event.Unknown: // live events are not stored, so nothing decodes them
			var text event.Text
			if e.Type() == event.TypeText {
				if err := json.Unmarshal(d.Raw, &text); err != nil {
					t.Error(err)
				}
				pieces = append(pieces, text.Text)
			}
		case event.RunCompleted:
			usage = d.Outcome.Usage
			if d.Outcome.FinalOutput != "It says: a note." || d.Outcome.Cycles != 2 {
				t.Errorf("outcome %+v", d.Outcome)
			}
		}
	}
	if text := strings.Join(pieces, ""); text != "It says: a note." || whole && len(pieces) != 1 {
		t.Errorf("heard %q", pieces)
	}
	if usage.Input != 20 || usage.CacheRead != 8 || usage.Output != 4 || usage.Estimated {
		t.Errorf("usage %+v", usage)
	}
}
