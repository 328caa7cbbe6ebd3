package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/replay"
	"github.com/pawlrun/pawl/internal/server"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/models"
)

// chatModel speaks Chat Completions: it calls fs.glob in its first answers and then says
// that it is done. It keeps what it was sent.
type chatModel struct {
	mu    sync.Mutex
	calls int
	sent  []string
	auth  string
	url   string
	// says follows the text of each answer that calls.
	says string
}

func (m *chatModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sent, m.auth = append(m.sent, string(body)), r.Header.Get("Authorization")
	delta, finish := `{"role": "assistant", "content": "That is all."}`, "stop"
	if n := len(m.sent); n <= m.calls {
		delta, finish = fmt.Sprintf(`{"role": "assistant", "content": "I look.%s", "tool_calls": [{"index": 0, "id": "c%d", "type": "function", "function": {"name": "fs_glob", "arguments": "{\"pattern\": \"*.y%dml\"}"}}]}`, m.says, n, n), "tool_calls"
	}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, `data: {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [{"index": 0, "delta": %s, "finish_reason": "%s"}], "usage": {"prompt_tokens": 1000, "completion_tokens": 5}}`+"\n\ndata: [DONE]\n\n", delta, finish)
}

// served starts a server whose model speaks Chat Completions.
func (m *chatModel) served(t *testing.T, store journal.Store) local {
	t.Helper()
	web := httptest.NewServer(m)
	t.Cleanup(web.Close)
	m.url = web.URL + "/v1"
	t.Setenv("OPENAI_BASE_URL", m.url)
	t.Setenv("OPENAI_API_KEY", "sk-not-to-be-shown")
	s, _ := newServerOn(t, store, map[string]string{
		"looks.yaml": "identity: {name: looks}\nprompt: {system: You look.}\nmodel_policy: {primary: {model: openai-chat/m}}\ntools: {allow: [fs.glob]}\n",
		"sums.yaml": "identity: {name: sums}\nmodel_policy: {primary: {model: openai-chat/m}}\ntools: {allow: [fs.glob]}\n" +
			"iteration: {max_cycles: 20, context_window: 3000, summary_strategy: periodic-summary, termination_conditions: [{kind: text-includes, text: That is all}]}\n",
		"quick.yaml": "identity: {name: quick}\nmodel_policy: {primary: {model: scripted/quick.script.yaml}}\n", "quick.script.yaml": "- {text: done}\n- {text: never}\n",
	})
	return local{s, t}
}

// ran starts a run, waits for its end, and returns its id and path.
func (l local) ran(agent string) (id, path string) {
	l.t.Helper()
	run := gets[journal.Run](l, http.StatusCreated, http.MethodPost, "/v1/runs?wait=300", `{"agent": "`+agent+`", "input": "go"}`)
	return run.ID, "/v1/runs/" + run.ID
}

// altered is a store with other bytes in the events that are read.
type altered struct {
	journal.Store
	change atomic.Pointer[[2]string]
}

// alter replaces a text of every event by another one, "" nothing.
func (s *altered) alter(from, to string) { s.change.Store(&[2]string{from, to}) }

func (s *altered) Records(ctx context.Context, run string, after int64, limit int) ([]journal.Record, error) {
	records, err := s.Store.Records(ctx, run, after, limit)
	if c := s.change.Load(); c != nil && c[0] != "" {
		for i := range records {
			records[i].Body = bytes.Replace(bytes.Clone(records[i].Body), []byte(c[0]), []byte(c[1]), 1)
		}
	}
	return records, err
}

func TestRequestIsMadeAgainAsItWasSent(t *testing.T) {
	model := &chatModel{calls: 2}
	l := model.served(t, memory.New(nil))
	_, path := l.ran("looks")
	if len(model.sent) != 3 {
		t.Fatalf("%d requests were sent", len(model.sent))
	}
	w := httptest.NewRecorder()
	l.serve(w, http.MethodGet, path+"/requests/2", "")
	if strings.Contains(w.Body.String(), "sk-not") || !strings.Contains(model.auth, "sk-not") {
		t.Errorf("the key is in the answer: %s", w.Body)
	}
	var got replay.Request
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if !got.Proven || got.Why != "" || got.Body != model.sent[1] || got.Bytes != int64(len(got.Body)) {
		t.Errorf("it is not what was sent: %v, %q\n%s\n%s", got.Proven, got.Why, got.Body, model.sent[1])
	}
	if got.Headers["Authorization"] != "Bearer $API_KEY" || !strings.HasSuffix(got.Address, "/v1/chat/completions") {
		t.Errorf("it goes to %s with %v", got.Address, got.Headers)
	}
	if fmt.Sprint(got.Cycles) != "[1 2 3]" || got.Before != 1 || got.Changed != 0 || got.Usage == nil || got.Usage.Input != 1000 {
		t.Errorf("%+v", got)
	}
	var kinds []string
	var sum int64
	for _, s := range got.Segments {
		kinds = append(kinds, s.Kind)
		if sum += s.Tokens; s.Later != 1 && s.Kind != "settings" {
			t.Errorf("%s was carried by %d later requests", s.Kind, s.Later)
		}
	}
	if strings.Join(kinds, " ") != "tools system text text call result" && strings.Join(kinds, " ") != "tools system settings text text call result" {
		t.Errorf("it has %q", kinds)
	}
	if sum < 990 || sum > 1010 {
		t.Errorf("the segments have %d of 1000 tokens", sum)
	}

	// A service with other rules gets other bytes: nothing is proven, and a replay finds it.
	t.Setenv("OPENAI_BASE_URL", "https://api.openai.com/v1")
	changed := gets[replay.Request](l, http.StatusOK, http.MethodGet, path+"/requests/2", "")
	if changed.Proven || !strings.Contains(changed.Why, "other bytes") || changed.Body == got.Body || changed.Digest != got.Digest {
		t.Errorf("%v, %q", changed.Proven, changed.Why)
	}
	replayed := gets[replay.Replayed](l, http.StatusOK, http.MethodGet, path+"/replay", "")
	if len(replayed.Divergences) != 3 || !strings.Contains(replayed.Divergences[0].What, "other bytes") {
		t.Errorf("%+v", replayed)
	}
	t.Setenv("OPENAI_BASE_URL", model.url)
	replayed = gets[replay.Replayed](l, http.StatusOK, http.MethodGet, path+"/replay", "")
	if len(replayed.Divergences) != 0 || replayed.Requests != 3 || replayed.Compared != 3 || replayed.Decisions < 10 {
		t.Errorf("%+v", replayed)
	}
	l.refuses(http.StatusNotFound, "not-found", http.MethodGet, path+"/requests/4", "")
	l.refuses(http.StatusNotFound, "not-found", http.MethodGet, path+"/requests/0", "")
	l.refuses(http.StatusNotFound, "not-found", http.MethodGet, "/v1/runs/none/requests/1", "")

	_, scripted := l.ran("quick")
	if script := gets[replay.Request](l, http.StatusOK, http.MethodGet, scripted+"/requests/1", ""); !script.Proven || script.Address != "" || script.Before != 0 || len(script.Cycles) != 1 {
		t.Errorf("of a script: %+v", script)
	}
}

func TestRequestsOfCompactionsAreMadeAgain(t *testing.T) {
	model := &chatModel{calls: 8, says: strings.Repeat(" word", 500)}
	l := model.served(t, memory.New(nil))
	_, path := l.ran("sums")
	// After cycle 4, each cycle is followed by a compaction.
	for cycle, at := range map[int]int{4: 4, 5: 6, 6: 8} {
		got := gets[replay.Request](l, http.StatusOK, http.MethodGet, fmt.Sprintf("%s/requests/%d?purpose=summary", path, cycle), "")
		if !got.Proven || got.Body != model.sent[at] || got.Purpose != event.PurposeSummary || fmt.Sprint(got.Cycles) != "[4 5 6]" || got.Usage == nil {
			t.Errorf("the summary of cycle %d: %v, %q, of cycles %v with %v\n%s\n%s", cycle, got.Proven, got.Why, got.Cycles, got.Usage, got.Body, model.sent[at])
		}
		if want := map[int]int{5: 4, 6: 5}[cycle]; got.Before != want {
			t.Errorf("before the summary of cycle %d is that of %d", cycle, got.Before)
		}
		own := gets[replay.Request](l, http.StatusOK, http.MethodGet, fmt.Sprintf("%s/requests/%d", path, cycle), "")
		if !own.Proven || own.Body != model.sent[at-1] || fmt.Sprint(own.Summaries, own.Cycles) != "[4 5 6] [1 2 3 4 5 6 7]" {
			t.Errorf("cycle %d: %v, %q, %v, %v", cycle, own.Proven, own.Why, own.Summaries, own.Cycles)
		}
	}
	l.refuses(http.StatusNotFound, "not-found", http.MethodGet, path+"/requests/3?purpose=summary", "")
	l.refuses(http.StatusBadRequest, "bad-query", http.MethodGet, path+"/requests/4?purpose=other", "")
}

func TestDiffOverHTTPComparesTwoRuns(t *testing.T) {
	model := &chatModel{calls: 1}
	l := model.served(t, memory.New(nil))
	one, path := l.ran("looks")
	two, _ := l.ran("looks") // the model calls no tool this time
	type diff struct {
		Left, Right string
		Same        int
		PartAt      *struct {
			Left, Right         struct{ Type string }
			LeftText, RightText string
		}
		Cycles []struct {
			Same        bool
			Left, Right *struct{ Text string }
		}
	}
	got := gets[diff](l, http.StatusOK, http.MethodGet, path+"/diff/"+two, "")
	if got.Left != one || got.Right != two || got.Same == 0 || got.PartAt == nil || got.PartAt.Left.Type != "model.response" || !strings.Contains(got.PartAt.RightText, "That is all.") {
		t.Errorf("%+v", got)
	}
	if len(got.Cycles) != 2 || got.Cycles[0].Same || got.Cycles[1].Right != nil || got.Cycles[0].Left.Text != "I look." {
		t.Errorf("%+v", got.Cycles)
	}
	if same := gets[diff](l, http.StatusOK, http.MethodGet, path+"/diff/"+one, ""); same.PartAt != nil || !same.Cycles[0].Same {
		t.Errorf("a run differs from itself: %+v", same)
	}
	l.refuses(http.StatusNotFound, "not-found", http.MethodGet, path+"/diff/none", "")
}

func TestBrokenChainIsNamedByItsEvent(t *testing.T) {
	model, store := &chatModel{calls: 1}, &altered{Store: memory.New(nil)}
	l := model.served(t, store)
	id, path := l.ran("looks")
	type check struct {
		Run, Head, Problem string
		OK                 bool
		Events, BreaksAt   int64
	}
	sound := gets[check](l, http.StatusOK, http.MethodGet, path+"/verify", "")
	if !sound.OK || sound.Run != id || sound.Events < 10 || sound.Head == "" || sound.BreaksAt != 0 {
		t.Errorf("%+v", sound)
	}
	exported := func() string {
		w := httptest.NewRecorder()
		l.serve(w, http.MethodGet, path+"/export", "")
		if w.Code != http.StatusOK || !strings.Contains(w.Header().Get("Content-Disposition"), id+".jsonl") {
			t.Errorf("%d %v", w.Code, w.Header())
		}
		return w.Body.String()
	}
	var file bytes.Buffer
	if _, err := journal.Export(t.Context(), store, id, &file); err != nil || exported() != file.String() {
		t.Errorf("the export is another one: %v", err)
	}
	store.alter("I look.", "I leap.")
	if broken := gets[check](l, http.StatusOK, http.MethodGet, path+"/verify", ""); broken.OK || broken.BreaksAt == 0 || !strings.Contains(broken.Problem, fmt.Sprint("event ", broken.BreaksAt)) {
		t.Errorf("%+v", broken)
	}
}

func TestEventsAreSelectedByTypeAndPlace(t *testing.T) {
	model := &chatModel{calls: 3}
	l := model.served(t, memory.New(nil))
	_, path := l.ran("looks")
	type page struct {
		Items []struct {
			Seq  int64
			Type string
		}
		Next string
	}
	all := gets[page](l, http.StatusOK, http.MethodGet, path+"/events?limit=500", "")
	var want []string
	for _, e := range all.Items {
		if e.Type == "tool_call" || e.Type == "tool_result" {
			want = append(want, fmt.Sprint(e.Seq, e.Type))
		}
	}
	var got []string
	for at := "/events?limit=2&type=tool_call&type=tool_result"; at != ""; {
		p := gets[page](l, http.StatusOK, http.MethodGet, path+at, "")
		for _, e := range p.Items {
			got = append(got, fmt.Sprint(e.Seq, e.Type))
		}
		if at = ""; p.Next != "" {
			at = "/events?limit=2&type=tool_call&type=tool_result&cursor=" + p.Next
		}
	}
	if len(want) != 6 || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("selected %v of %v", got, want)
	}
	if none := gets[page](l, http.StatusOK, http.MethodGet, path+"/events?type=nothing", ""); len(none.Items) != 0 || none.Next != "" {
		t.Errorf("%+v", none)
	}
	from := gets[page](l, http.StatusOK, http.MethodGet, path+"/events?from=7&limit=3", "")
	if len(from.Items) != 3 || from.Items[0] != all.Items[6] || from.Next == "" {
		t.Errorf("%+v", from)
	}
	for _, wrong := range []string{"from=0", "from=x", "from=2&cursor=1", "tree=true&type=x", "tree=true&from=1"} {
		l.refuses(http.StatusBadRequest, "bad-query", http.MethodGet, path+"/events?"+wrong, "")
	}
}

func TestSpendSumsToTheCostOfTheRun(t *testing.T) {
	model := &chatModel{calls: 3}
	web := httptest.NewServer(model)
	t.Cleanup(web.Close)
	t.Setenv("OPENAI_BASE_URL", web.URL+"/v1")
	s, _ := newServerWith(t, memory.New(nil), map[string]string{
		"looks.yaml": "identity: {name: looks}\nmodel_policy: {primary: {model: openai-chat/m}}\ntools: {allow: [fs.glob]}\n",
		"flow.yaml": "apiVersion: pawl/v1\nname: flow\nagents: {w: {description: d, model: openai-chat/m, tools: [fs.glob]}, v: {description: d, model: openai-chat/other, tools: []}}\n" +
			"steps: [{id: a, agent: w, instructions: x}, {id: b, agent: v, instructions: y, dependsOn: [a]}]\n",
	}, func(o *server.Options) {
		price := &llm.Price{Input: 1.1, Output: 7.3}
		o.Launch.Config = models.Config{Models: map[string]models.Override{"openai-chat/m": {Price: price}, "openai-chat/other": {Price: &llm.Price{Input: 0.13, Output: 0.7}}}}
	})
	l := local{s, t}
	type spend struct {
		Items []struct {
			Run, Step, Model string
			Cycle, Calls     int
			USD, Reserved    float64
			Usage            llm.Usage
		}
		Parts []struct {
			Run, Kind, Name, CallID string
			Requests                int
			Tokens, USD             float64
		}
		Cost llm.Cost
	}
	sums := func(path string) spend {
		got := gets[spend](l, http.StatusOK, http.MethodGet, path+"/spend?parts=true", "")
		parts := 0.0
		for _, p := range got.Parts {
			if parts += p.USD; p.USD <= 0 || p.Requests == 0 {
				t.Errorf("%+v", p)
			}
		}
		if math.Abs(parts-got.Cost.USD) > 1e-7 {
			t.Errorf("the parts have USD %.8f, and the run cost %.8f: %+v", parts, got.Cost.USD, got.Parts)
		}
		sum := 0.0
		for _, row := range got.Items {
			if sum += row.USD; row.Reserved != 0 || row.Calls != 1 || row.Usage.Input != 1000 {
				t.Errorf("%+v", row)
			}
		}
		if math.Abs(sum-got.Cost.USD) > 1e-7 || sum == 0 {
			t.Errorf("the rows have USD %.8f, and the run cost %.8f", sum, got.Cost.USD)
		}
		return got
	}
	id, path := l.ran("looks")
	if own := sums(path); len(own.Items) != 4 || own.Items[3].Cycle != 4 || own.Items[0].Run != id || own.Items[0].Model != "openai-chat/m" {
		t.Errorf("%+v", own)
	} else {
		requests, results := map[string]int{}, 0
		for _, p := range own.Parts {
			if requests[p.Kind] = p.Requests; p.Kind == "result" {
				if results++; p.Name != "fs.glob" || p.CallID == "" || p.Requests != 4-results {
					t.Errorf("result %d: %+v", results, p)
				}
			}
		}
		if results != 3 || requests["answer"] != 4 || requests["other"] != 0 {
			t.Errorf("%d results, %v", results, requests)
		}
	}
	if short := gets[spend](l, http.StatusOK, http.MethodGet, path+"/spend", ""); short.Parts != nil {
		t.Errorf("%+v", short.Parts)
	}
	model.mu.Lock()
	model.calls = 5 // the first step calls a tool again
	model.mu.Unlock()
	flow := gets[journal.Run](l, http.StatusCreated, http.MethodPost, "/v1/runs?wait=300", `{"workflow": "flow", "input": "go"}`)
	tree := sums("/v1/runs/" + flow.ID)
	if len(tree.Items) != 3 || tree.Items[0].Step != "a" || tree.Items[2].Step != "b" || tree.Items[2].Model != "openai-chat/other" {
		t.Errorf("%+v", tree.Items)
	}
	// A fork has an account of its own.
	fork := gets[journal.Run](l, http.StatusCreated, http.MethodPost, path+"/fork", `{"seq": 20, "run": false}`)
	if of := gets[spend](l, http.StatusOK, http.MethodGet, "/v1/runs/"+fork.ID+"/spend", ""); len(of.Items) != 0 || of.Cost.USD != 0 {
		t.Errorf("%+v", of)
	}
	l.refuses(http.StatusNotFound, "not-found", http.MethodGet, "/v1/runs/none/spend", "")
}

// A run whose events were altered is refused with where the chain breaks: the server has not failed.
func TestDamagedRunIsRefusedWithItsProblem(t *testing.T) {
	store := &altered{Store: memory.New(nil)}
	l := (&chatModel{calls: 2}).served(t, store)
	id, path := l.ran("looks")
	store.alter("I look.", "I lied.")
	for _, view := range []string{"/requests/2", "/replay", "/diff/" + id} {
		problem := l.refuses(http.StatusConflict, "run-damaged", http.MethodGet, path+view, "")
		if !strings.Contains(problem.Detail, "is damaged at event") || problem.Run != id {
			t.Errorf("%s: %+v", view, problem)
		}
	}
}
