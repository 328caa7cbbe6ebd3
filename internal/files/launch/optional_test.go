package launch_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/machine/versions"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/models"
)

// Each optional key of a file has an effect on the provider's request or on the end of
// the run.
// rows: ALF-80
func TestWhatAFileMaySayHasItsEffectAndMayBeLeftOut(t *testing.T) {
	const everything = `
model_policy:
  roles: {architect: controller/architect, editor: controller/editor}
  decoding: {temperature: 0.25, max_tokens: 77}
role: editor
prompt: {system: You are brief.}
tools: {allow: [fs.list, fs.glob], approvals: {fs.glob: always}}
hooks: {before_tool: [{command: "echo no lists today >&2; exit 2", tools: [fs.list]}]}
budgets: {max_retries_per_model_call: 0}
iteration: {max_cycles: 2, context_window: 64000}
`
	var status int
	var interrupt context.CancelFunc
	var sent []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent = append(sent, r.Header.Get("Authorization")+" "+string(body))
		if interrupt != nil {
			interrupt()
			<-r.Context().Done()
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		if !strings.Contains(string(body), "You are brief.") {
			fmt.Fprint(w, `{"choices":[{"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}]}`)
			return
		}
		n := len(sent)
		fmt.Fprintf(w, `{"choices":[{"message":{"role":"assistant","tool_calls":[`+
			`{"id":"a%d","type":"function","function":{"name":"fs_list","arguments":"{}"}},`+
			`{"id":"b%d","type":"function","function":{"name":"fs_glob","arguments":"{\"pattern\":\"*\"}"}}`+
			`]},"finish_reason":"tool_calls"}]}`, n, n)
	}))
	t.Cleanup(server.Close)
	play := func(text string, code int) ([]event.Event, agent.Config) {
		t.Helper()
		status, sent = code, nil
		o := options(t)
		o.NoStream, o.NoBudget, o.Approve = true, true, agent.ApproveDeny
		o.Config = models.Config{Providers: map[string]models.Provider{"controller": {BaseURL: server.URL, APIKeyEnv: "DESK_API_KEY"}}}
		started, cfg, env := start(t, file(t, text), o)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if interrupt != nil {
			interrupt = cancel
		}
		e := engine.New(memory.New(nil), versions.Make, engine.Options{})
		defer func() { _ = e.Close() }()
		r, err := e.Start(ctx, started, env)
		if err != nil {
			t.Fatal(err)
		}
		return drain(t, r), cfg
	}

	events, cfg := play(everything, http.StatusOK)
	if got := outcome(t, events); got.Reason != event.ReasonMaxCycles || got.Cycles != 2 || len(sent) != 2 {
		t.Fatalf("ended with %s after %d cycles and %d requests", got.Reason, got.Cycles, len(sent))
	}
	for _, want := range []string{"Bearer test ", `"model":"editor"`, "You are brief.", `"max_tokens":77`, `"temperature":0.25`, "fs_list", "fs_glob"} {
		if !strings.Contains(sent[0], want) {
			t.Errorf("the first request lacks %s: %s", want, sent[0])
		}
	}
	for _, want := range []string{"no lists today", "approve deny"} {
		if !strings.Contains(sent[1], want) {
			t.Errorf("the second request lacks %s: %s", want, sent[1])
		}
	}
	if window, known := cfg.Compact.WindowFor(0); window != 64000 || !known {
		t.Errorf("the window is %d", window)
	}

	if events, _ = play(everything, http.StatusServiceUnavailable); len(sent) != 1 || outcome(t, events).OK {
		t.Errorf("without retries %d requests were made", len(sent))
	}

	if events, _ = play("model_policy: {primary: controller/plain}", http.StatusOK); outcome(t, events).Reason != event.ReasonFinalAnswer {
		t.Errorf("a file with nothing but a model: %+v", outcome(t, events))
	}

	interrupt = func() {}
	events, _ = play(everything, http.StatusOK)
	if got := outcome(t, events); got.Reason != event.ReasonCancelled || len(sent) != 1 {
		t.Errorf("ended with %s after %d requests", got.Reason, len(sent))
	}
}
