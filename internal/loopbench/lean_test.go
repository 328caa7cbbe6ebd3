package loopbench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal/sqlite"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/openaichat"
	"github.com/pawlrun/pawl/tool"
)

// chat answers POST /N/K/v1/chat/completions: the N-th answer in a conversation is text,
// each before it asks K times for the tool.
func chat(w http.ResponseWriter, turn, last, calls int) {
	w.Header().Set("Content-Type", "text/event-stream")
	b := bufio.NewWriter(w)
	chunk := func(delta, finish string) {
		fmt.Fprintf(b, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"sim\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n", delta, finish)
	}
	chunk(`{"role":"assistant","content":""}`, "null")
	for range 8 {
		chunk(`{"content":"some words of text "}`, "null")
	}
	finish := `"stop"`
	if turn < last {
		finish = `"tool_calls"`
		for i := range calls {
			chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":"call_%d_%d","type":"function","function":{"name":"noop","arguments":""}}]}`, i, turn, i), "null")
			chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":"{\"n\":%d}"}}]}`, i, turn), "null")
		}
	}
	chunk("{}", finish)
	fmt.Fprint(b, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"sim\",\"choices\":[],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":60,\"total_tokens\":160}}\n\ndata: [DONE]\n\n")
	_ = b.Flush()
}

// lean is the least that an agent loop can be over net/http: the request grows by what is
// appended to it, and a stream is searched for the few strings that matter.
type lean struct {
	client *http.Client
	url    string
	// keep, if there is one, is called before each request and each round of calls.
	keep func() error
	body bytes.Buffer
}

const leanHead = `{"model":"sim","stream":true,"stream_options":{"include_usage":true},"tools":[{"type":"function","function":{"name":"noop","description":"Do nothing.","parameters":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}}}],"messages":[{"role":"user","content":"go"}`

type leanCall struct{ id, args []byte }

var leanReaders = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 16<<10) }}

func (l *lean) run() error {
	l.body.WriteString(leanHead)
	for {
		if err := l.kept(); err != nil {
			return err
		}
		calls, text, err := l.ask()
		if err != nil {
			return err
		}
		if err := l.kept(); err != nil || len(calls) == 0 {
			return err
		}
		fmt.Fprintf(&l.body, `,{"role":"assistant","content":"%s","tool_calls":[`, text)
		for i, c := range calls {
			if i > 0 {
				l.body.WriteByte(',')
			}
			fmt.Fprintf(&l.body, `{"id":"%s","type":"function","function":{"name":"noop","arguments":"%s"}}`, c.id, c.args)
		}
		l.body.WriteString("]}")
		for _, c := range calls {
			var args struct{ N int }
			if err := json.Unmarshal(bytes.ReplaceAll(c.args, []byte(`\"`), []byte(`"`)), &args); err != nil {
				return err
			}
			fmt.Fprintf(&l.body, `,{"role":"tool","tool_call_id":"%s","content":"ok"}`, c.id)
		}
	}
}

func (l *lean) kept() error {
	if l.keep == nil {
		return nil
	}
	return l.keep()
}

func (l *lean) ask() (calls []leanCall, text []byte, err error) {
	n := l.body.Len()
	l.body.WriteString("]}")
	req, err := http.NewRequest(http.MethodPost, l.url+"/v1/chat/completions", bytes.NewReader(l.body.Bytes()))
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer k")
	resp, err := l.client.Do(req)
	l.body.Truncate(n)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	r := leanReaders.Get().(*bufio.Reader)
	defer leanReaders.Put(r)
	r.Reset(resp.Body)
	for {
		line, err := r.ReadSlice('\n')
		if err == io.EOF {
			return calls, text, nil
		}
		if err != nil {
			return nil, nil, err
		}
		if at := bytes.Index(line, []byte(`"tool_calls":[{"index":`)); at >= 0 {
			if id := quoted(line, `"id":"call`); id != nil {
				calls = append(calls, leanCall{id: append([]byte("call"), id...)})
			}
			c := &calls[len(calls)-1]
			c.args = append(c.args, quoted(line, `"arguments":"`)...)
			continue
		}
		text = append(text, quoted(line, `"content":"`)...)
	}
}

// quoted is what stands behind a key, up to the end of its string; nil where the key is
// not there.
func quoted(line []byte, key string) []byte {
	at := bytes.Index(line, []byte(key))
	if at < 0 {
		return nil
	}
	rest := line[at+len(key):]
	for i := 0; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case '"':
			return rest[:i]
		}
	}
	return nil
}

// startedAnew returns a loop that starts a run of one agent as a program would: all that a
// start makes is made each time, and all else is as it is by default.
func startedAnew(url string, turns int, o pawl.Options) func(id string) error {
	type args struct {
		N int `json:"n"`
	}
	noop := pawl.Tool("noop", "Do nothing.", func(context.Context, args) (string, error) { return "ok", nil })
	noop.ReadOnly, noop.Concurrent, noop.Labels = true, true, &event.Labels{}
	agent := pawl.Agent{
		Name: "bench", Tools: []tool.Tool{noop}, Limits: pawl.Limits{MaxCycles: turns + 1, MaxToolCalls: -1},
		Model: pawl.Target{Name: "openai-chat/sim", Price: &llm.Price{}, Client: openaichat.New(openaichat.Options{APIKey: "k", BaseURL: url + "/v1"})},
	}
	return func(string) error {
		run, err := agent.Start(context.Background(), "go", o)
		if err != nil {
			return err
		}
		for _, err := range run.Stream() {
			if err != nil {
				return err
			}
		}
		final, err := run.Wait()
		if err == nil && (final.Status != pawl.StatusCompleted || final.Turns != turns) {
			err = fmt.Errorf("the run is %s after %d turns: %+v", final.Status, final.Turns, final.Outcome)
		}
		return err
	}
}

// BenchmarkTurn measures the CPU of a turn of a run that is started as a program would,
// against the lean loop, round by round. A durable run that is alone is held against the
// lean loop with two appends and syncs of 4 KiB a turn.
func BenchmarkTurn(b *testing.B) {
	for _, at := range []struct{ runs, turns, calls int }{{1, 50, 1}, {1, 20, 8}, {64, 10, 2}, {512, 10, 2}} {
		for _, kind := range []string{"memory", "durable"} {
			b.Run(fmt.Sprintf("%s/runs=%d/N=%d/K=%d", kind, at.runs, at.turns, at.calls), func(b *testing.B) {
				base := startServer(b)
				client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: at.runs}}
				var o pawl.Options
				var keep func() error
				if kind == "durable" {
					store, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "journal.db"), sqlite.Options{})
					if err != nil {
						b.Fatal(err)
					}
					defer store.Close()
					o.Journal = store
					if at.runs == 1 {
						keep = syncing(b)
					}
				}
				url := fmt.Sprintf("%s/%d/%d", base, at.turns, at.calls)
				leanRun := func(string) error { return (&lean{client: client, keep: keep, url: url}).run() }
				pawlRun := startedAnew(url, at.turns, o)
				var ratios, leanCPU, pawlCPU []float64
				measure(b, at.runs, at.turns, leanRun)
				measure(b, at.runs, at.turns, pawlRun)
				for b.Loop() {
					x, y := measure(b, at.runs, at.turns, leanRun), measure(b, at.runs, at.turns, pawlRun)
					ratios = append(ratios, float64(y.cpu)/float64(x.cpu))
					leanCPU, pawlCPU = append(leanCPU, float64(x.cpu)), append(pawlCPU, float64(y.cpu))
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(median(ratios), "ratio")
				b.ReportMetric(median(leanCPU), "lean-cpu-ns/turn")
				b.ReportMetric(median(pawlCPU), "cpu-ns/turn")
			})
		}
	}
}

// syncing appends 4 KiB to a file and syncs it.
func syncing(b *testing.B) func() error {
	b.Helper()
	file, err := os.Create(filepath.Join(b.TempDir(), "raw"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = file.Close() })
	var page [4096]byte
	return func() error {
		if _, err := file.Write(page[:]); err != nil {
			return err
		}
		return file.Sync()
	}
}

// serveChat answers what belongs to [chat], and reports whether it did. The server knows
// the turn from the answers that the request repeats, so that all runs have one address.
func serveChat(w http.ResponseWriter, body io.Reader, parts []string) bool {
	if len(parts) < 3 || parts[len(parts)-1] != "completions" {
		return false
	}
	last, _ := strconv.Atoi(parts[0])
	calls, _ := strconv.Atoi(parts[1])
	request, _ := io.ReadAll(body)
	chat(w, bytes.Count(request, []byte(`"role":"assistant"`))+1, last, calls)
	return true
}
