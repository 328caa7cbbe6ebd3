package scripted_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
)

// streamed is what one call returned, as the loop sees it.
type streamed struct {
	Parts  llm.Parts
	Finish llm.Finish
	Usage  llm.Usage
	Class  llm.Class
	Status int
	After  time.Duration
	Told   bool
	Deltas string
}

func call(m llm.Model, ordinal int, stream bool) streamed {
	req := &llm.Request{Ordinal: ordinal, Messages: []*llm.Message{llm.UserText("hi")}}
	var h streamed
	var resp *llm.Response
	var err error
	if stream {
		var b strings.Builder
		resp, err = m.(llm.Streamer).Stream(context.Background(), req, func(d llm.Delta) { b.WriteString(d.Text) })
		h.Deltas = b.String()
	} else {
		resp, err = m.Generate(context.Background(), req)
	}
	if resp != nil {
		h.Parts, h.Finish, h.Usage = resp.Parts, resp.Finish, resp.Usage
	}
	if err != nil {
		e := llm.AsError(err)
		h.Class, h.Status, h.After, h.Told = e.Class, e.Status, e.RetryAfter, e.HasRetryAfter
	}
	return h
}

const everyTurn = `
- text: "Plain: with a colon, 'quotes' and\nlines\n"
  reasoning: "I think #1"
  usage: {input: 100, output: 20, cacheRead: 50, cacheWrite: 7, reasoning: 5}
- tool_calls:
    - {name: fs.read, arguments: {path: "a: b", deep: [1, 2.5, null, true, {x: "é 😀"}]}}
    - {name: fs.list}
    - {name: big, arguments: '{"n": 12345678901234567890123, "f": 1.0, "z": 1, "a": 2}'}
    - {name: broken, arguments: '{"path": '}
- {text: cut, finish: length}
- error: {status: 429, class: throttled, message: "slow: down", retry_after: 1.5}
- error: {class: network, partial: half an ans}
- error: {status: 529, class: overloaded, retry_after: 0}
- {text: end}
`

func TestARecordingPlaysWhatTheModelSaid(t *testing.T) {
	for _, stream := range []bool{false, true} {
		original, err := scripted.Parse("s", []byte(everyTurn))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "r.yaml")
		recorder := scripted.NewRecorder(path)
		model := recorder.Wrap(original)
		var want []streamed
		for n := range 7 {
			want = append(want, call(model, n, stream))
		}
		if err := recorder.Err(); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		again, err := scripted.Parse("s", text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		for n := range 7 {
			got := call(again, n, stream)
			if diff := cmp.Diff(want[n], got, canonical); diff != "" {
				t.Errorf("stream %t, turn %d (-said +played):\n%s\nin:\n%s", stream, n+1, diff, text)
			}
		}
	}
}

// canonical compares arguments by what they say, not by the order of keys.
var canonical = cmp.Transformer("json", func(raw json.RawMessage) any {
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return string(raw)
	}
	return v
})

func TestResumedRunGoesOnWithItsRecording(t *testing.T) {
	model := scripted.New("s", scripted.Turn{Text: "one"}, scripted.Turn{Text: "two"}, scripted.Turn{Text: "three"})
	path := filepath.Join(t.TempDir(), "r.yaml")
	first := scripted.NewRecorder(path).Wrap(model)
	call(first, 0, true)
	call(first, 1, true)
	// The process died before the second answer was journalled: it is made again.
	second := scripted.NewRecorder(path).Wrap(model)
	call(second, 1, true)
	call(second, 2, true)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	again, err := scripted.Parse("s", text)
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range []string{"one", "two", "three"} {
		if got := call(again, n, false).Parts.Text(); got != want {
			t.Errorf("turn %d is %q, want %q\n%s", n+1, got, want, text)
		}
	}
	if strings.Count(string(text), "text:") != 3 {
		t.Errorf("a turn is there twice:\n%s", text)
	}
}

func TestAStoppedCallIsNotRecorded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.yaml")
	recorder := scripted.NewRecorder(path)
	model := recorder.Wrap(scripted.New("s", scripted.Turn{Text: "late", Delay: time.Hour}))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := model.Generate(ctx, &llm.Request{}); err == nil {
		t.Fatal("a stopped call went well")
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) || recorder.Err() != nil {
		t.Errorf("recorded all the same: %v, %v", err, recorder.Err())
	}
}

func TestARecordingThatCannotBeWrittenCostsNoAnswer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "no", "such", "dir.yaml")
	recorder := scripted.NewRecorder(path)
	if got := call(recorder.Wrap(scripted.New("s", scripted.Turn{Text: "paid for"})), 0, true).Parts.Text(); got != "paid for" {
		t.Errorf("the answer is %q", got)
	}
	if err := recorder.Err(); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("the failure is %v", err)
	}
	foreign := filepath.Join(t.TempDir(), "notes.yaml")
	if err := os.WriteFile(foreign, []byte("shopping: milk\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	other := scripted.NewRecorder(foreign)
	call(other.Wrap(scripted.New("s", scripted.Turn{Text: "x"})), 0, false)
	if text, _ := os.ReadFile(foreign); other.Err() == nil || string(text) != "shopping: milk\n" {
		t.Errorf("a file that is no script became %q, %v", text, other.Err())
	}
}

// plainModel neither streams nor encodes.
type plainModel struct{ llm.Model }

// wholeModel encodes and does not stream, as a recorded run.
type wholeModel struct{ llm.Model }

func (wholeModel) Encode(*llm.Request) (*llm.Encoded, error) { return &llm.Encoded{}, nil }

func TestAWrappedModelCanWhatTheModelCan(t *testing.T) {
	r := scripted.NewRecorder("unused")
	if _, ok := r.Wrap(plainModel{scripted.New("s")}).(llm.Streamer); ok {
		t.Error("a model that does not stream does when it is recorded")
	}
	if _, ok := r.Wrap(plainModel{scripted.New("s")}).(llm.Encoder); ok {
		t.Error("a model that does not encode does when it is recorded")
	}
	_, streams := r.Wrap(wholeModel{scripted.New("s")}).(llm.Streamer)
	if _, ok := r.Wrap(wholeModel{scripted.New("s")}).(llm.Encoder); !ok || streams {
		t.Errorf("of a model that encodes and does not stream: encodes %t, streams %t", ok, streams)
	}
	known := llm.CacheRules{Minimum: 7}
	if rules, ok := r.Wrap(cachingModel{scripted.New("s"), known}).(llm.Cacher).CacheRules("m", ""); !ok || rules != known {
		t.Errorf("the cache of a recorded model is %+v, %v", rules, ok)
	}
	if _, ok := r.Wrap(scripted.New("s")).(llm.Cacher).CacheRules("m", ""); ok {
		t.Error("a model that knows of no cache does when it is recorded")
	}
}

type cachingModel struct {
	llm.Streamer
	rules llm.CacheRules
}

func (m cachingModel) CacheRules(string, llm.Caching) (llm.CacheRules, bool) { return m.rules, true }
