package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// wireNames are providers that the config file knows by itself, one at least for
// each way to reach a wire.
var wireNames = []string{"anthropic", "openai", "openai-chat", "google", "ollama", "openrouter"}

// reply is what the provider answers one request with: a text, or one call of
// a tool by its name on the wire.
type reply struct {
	text       string
	tool, args string
	header     map[string]string
	// raw is the whole answer, in the words of the one wire that is asked.
	raw string
	// foreign is the whole answer of a server that implements no wire.
	foreign string
	// refused is the status of a request that is refused.
	refused int
	// damage, where it is set, changes what is streamed.
	damage func(events []string) []string
	// after, where it is set, holds the answer back until it is closed.
	after <-chan struct{}
}

// asked is a request as it came.
type asked struct {
	path   string
	header http.Header
	body   string
	at     time.Time
}

// provider stands for all providers: it gives the same answers in the words of
// each, whole or streamed as it is asked, and keeps what it was asked.
type provider struct {
	url     string
	replies []reply

	mu       sync.Mutex
	requests []asked
}

// newProvider answers one request with each reply, and all others with the last.
func newProvider(t *testing.T, replies ...reply) *provider {
	t.Helper()
	p := &provider{replies: replies}
	s := httptest.NewServer(p)
	t.Cleanup(s.Close)
	p.url = s.URL
	return p
}

// ServeHTTP answers a request and keeps it.
func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	p.requests = append(p.requests, asked{path: r.URL.RequestURI(), header: r.Header, body: string(body), at: time.Now()})
	answer := p.replies[min(len(p.requests), len(p.replies))-1]
	p.mu.Unlock()
	if answer.after != nil {
		select {
		case <-answer.after:
		case <-r.Context().Done():
			return
		}
	}
	for name, value := range answer.header {
		w.Header().Set(name, value)
	}
	if answer.refused != 0 {
		http.Error(w, `{"error":{"message":"not now"}}`, answer.refused)
		return
	}
	if answer.foreign != "" {
		_, _ = io.WriteString(w, answer.foreign)
		return
	}
	answer.write(w, r.URL.Path, strings.Contains(r.URL.Path, ":stream") || strings.Contains(string(body), `"stream":true`))
}

// last is the body of the last request.
func (p *provider) last() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.requests) == 0 {
		return ""
	}
	return p.requests[len(p.requests)-1].body
}

// asked are the requests so far.
func (p *provider) asked() []asked {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests)
}

// config has all providers answered by this one.
func (p *provider) config() string {
	var b strings.Builder
	b.WriteString("providers:\n")
	for _, name := range wireNames {
		fmt.Fprintf(&b, "  %s: {base_url: %q, api_key_env: PAWL_TEST_KEY}\n", name, p.url)
	}
	b.WriteString("models:\n" +
		"  ollama/blind: {can: [tools]}\n" +
		"  ollama/seeing: {can: [images]}\n")
	return b.String()
}

// Every answer costs as much as every other: ten tokens of input, four of them
// from a cache, and two of output, counted in each provider's own way.

// write answers in the words of the wire whose path was asked.
func (a reply) write(w http.ResponseWriter, path string, stream bool) {
	var whole string
	var events []string
	switch {
	case strings.HasSuffix(path, "/messages"):
		whole, events = a.messages()
	case strings.HasSuffix(path, "/responses"):
		whole, events = a.responses()
	case strings.HasSuffix(path, "/chat/completions"):
		whole, events = a.chat()
	case strings.Contains(path, "enerateContent"):
		whole, events = a.gemini()
	default:
		http.Error(w, "no such path", http.StatusNotFound)
		return
	}
	if a.raw != "" {
		whole, stream = a.raw, false
	}
	if !stream {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, whole)
		return
	}
	if a.damage != nil {
		events = a.damage(events)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range events {
		_, _ = fmt.Fprintf(w, "data: %s\n\n", e)
		w.(http.Flusher).Flush()
	}
}

// halves are the two pieces in which a text is streamed, quoted.
func halves(s string) (first, second string) {
	runes := []rune(s)
	return quoted(string(runes[:len(runes)/2])), quoted(string(runes[len(runes)/2:]))
}

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func (a reply) messages() (whole string, events []string) {
	block, stop := `{"type":"text","text":`+quoted(a.text)+`}`, "end_turn"
	empty, delta, said := `{"type":"text","text":""}`, `{"type":"text_delta","text":%s}`, a.text
	if a.tool != "" {
		block, stop = `{"type":"tool_use","id":"t1","name":`+quoted(a.tool)+`,"input":`+a.args+`}`, "tool_use"
		empty, delta, said = `{"type":"tool_use","id":"t1","name":`+quoted(a.tool)+`,"input":{}}`, `{"type":"input_json_delta","partial_json":%s}`, a.args
	}
	const head, usage = `"id":"m1","type":"message","role":"assistant","model":"m"`, `{"input_tokens":6,"cache_read_input_tokens":4,"output_tokens":2}`
	first, second := halves(said)
	return `{` + head + `,"content":[` + block + `],"stop_reason":"` + stop + `","usage":` + usage + `}`, []string{
		`{"type":"message_start","message":{` + head + `,"content":[],"stop_reason":null,"usage":` + usage + `}}`,
		`{"type":"content_block_start","index":0,"content_block":` + empty + `}`,
		`{"type":"content_block_delta","index":0,"delta":` + fmt.Sprintf(delta, first) + `}`,
		`{"type":"content_block_delta","index":0,"delta":` + fmt.Sprintf(delta, second) + `}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"` + stop + `"},"usage":` + usage + `}`,
		`{"type":"message_stop"}`,
	}
}

func (a reply) responses() (whole string, events []string) {
	item := `{"type":"message","id":"i1","status":"completed","role":"assistant","content":[{"type":"output_text","text":` + quoted(a.text) + `,"annotations":[]}]}`
	begun := `{"type":"message","id":"i1","status":"in_progress","role":"assistant","content":[]}`
	delta, said := `{"type":"response.output_text.delta","item_id":"i1","output_index":0,"content_index":0,"delta":%s}`, a.text
	if a.tool != "" {
		item = `{"type":"function_call","id":"i1","call_id":"t1","status":"completed","name":` + quoted(a.tool) + `,"arguments":` + quoted(a.args) + `}`
		begun = `{"type":"function_call","id":"i1","call_id":"t1","status":"in_progress","name":` + quoted(a.tool) + `,"arguments":""}`
		delta, said = `{"type":"response.function_call_arguments.delta","item_id":"i1","output_index":0,"delta":%s}`, a.args
	}
	first, second := halves(said)
	whole = `{"id":"r1","object":"response","status":"completed","output":[` + item + `],` +
		`"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":4},"output_tokens":2}}`
	return whole, []string{
		`{"type":"response.created","response":{"id":"r1","object":"response","status":"in_progress","output":[]}}`,
		`{"type":"response.output_item.added","output_index":0,"item":` + begun + `}`,
		fmt.Sprintf(delta, first), fmt.Sprintf(delta, second),
		`{"type":"response.output_item.done","output_index":0,"item":` + item + `}`,
		`{"type":"response.completed","response":` + whole + `}`,
	}
}

func (a reply) chat() (whole string, events []string) {
	const usage = `{"prompt_tokens":10,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens":2}`
	message, stop := `{"role":"assistant","content":`+quoted(a.text)+`}`, "stop"
	first, second := halves(a.text)
	deltas := []string{`{"role":"assistant","content":` + first + `}`, `{"content":` + second + `}`}
	if a.tool != "" {
		call := `"id":"t1","type":"function","function":{"name":` + quoted(a.tool) + `,"arguments":`
		message, stop = `{"role":"assistant","content":null,"tool_calls":[{`+call+quoted(a.args)+`}}]}`, "tool_calls"
		first, second = halves(a.args)
		deltas = []string{
			`{"role":"assistant","tool_calls":[{"index":0,` + call + first + `}}]}`,
			`{"tool_calls":[{"index":0,"function":{"arguments":` + second + `}}]}`,
		}
	}
	for _, d := range deltas {
		events = append(events, `{"choices":[{"index":0,"delta":`+d+`,"finish_reason":null}]}`)
	}
	return `{"choices":[{"index":0,"message":` + message + `,"finish_reason":"` + stop + `"}],"usage":` + usage + `}`, append(events,
		`{"choices":[{"index":0,"delta":{},"finish_reason":"`+stop+`"}]}`, `{"choices":[],"usage":`+usage+`}`, "[DONE]")
}

func (a reply) gemini() (whole string, events []string) {
	chunk := func(part, rest string) string {
		return `{"candidates":[{"content":{"role":"model","parts":[` + part + `]}` + rest + `,"usageMetadata":{"promptTokenCount":10,"cachedContentTokenCount":4,"candidatesTokenCount":2}}`
	}
	const open, done = `}]`, `,"finishReason":"STOP"}]`
	if a.tool != "" {
		call := chunk(`{"functionCall":{"name":`+quoted(a.tool)+`,"args":`+a.args+`}}`, done)
		return call, []string{call}
	}
	first, second := halves(a.text)
	return chunk(`{"text":`+quoted(a.text)+`}`, done), []string{chunk(`{"text":`+first+`}`, open), chunk(`{"text":`+second+`}`, done)}
}

// calls runs one command line to its end, with one more variable.
func (p project) calls(env string, args ...string) finished {
	p.t.Helper()
	return p.startWith([]string{env}, args...).wait()
}

const testKey = "PAWL_TEST_KEY=k"
