package loopbench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/pawlrun/pawl/internal/loopbench/drive"
)

// scripts answer POST /N/K/MS/chat/completions: after so many ms the N-th answer of a
// conversation is text, and each before it calls the tools K times. An answer is made once
// and kept, so that the server is not what is measured.
type scripts struct {
	kept    sync.Map // [scriptTurn] to []byte
	buffers sync.Pool
}

// scriptTurn names an answer.
type scriptTurn struct {
	path  string
	turn  int
	usage bool
}

func (s *scripts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var turns, calls, ms int
	if _, err := fmt.Sscanf(r.URL.Path, "/%d/%d/%d/chat/completions", &turns, &calls, &ms); err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	body, _ := s.buffers.Get().(*bytes.Buffer)
	if body == nil {
		body = new(bytes.Buffer)
	}
	defer s.buffers.Put(body)
	body.Reset()
	_, _ = io.Copy(body, r.Body)
	came := time.Now()
	name := scriptTurn{path: r.URL.Path, usage: bytes.Contains(body.Bytes(), []byte(`"include_usage":true`))}
	if calls > 0 {
		name.turn = bytes.Count(body.Bytes(), []byte(`"role":"tool"`)) / calls
	}
	var answer []byte
	switch kept, ok := s.kept.Load(name); {
	case turns == 1:
		answer = write(0, 0, came.Format(time.RFC3339Nano), name.usage)
	case ok:
		answer = kept.([]byte)
	default:
		if name.turn == turns-1 {
			calls = 0
		}
		answer = write(name.turn, calls, fmt.Sprintf(" T%04d", name.turn), name.usage)
		s.kept.Store(name, answer)
	}
	time.Sleep(time.Duration(ms) * time.Millisecond)
	w.Header()["Content-Type"] = []string{"text/event-stream"}
	first := bytes.Index(answer, []byte("\n\n")) + 2
	_, _ = w.Write(answer[:first])
	w.(http.Flusher).Flush()
	_, _ = w.Write(answer[first:])
}

// write is the answer of a turn: some text, which begins with a word, and calls.
func write(turn, calls int, word string, usage bool) []byte {
	var b bytes.Buffer
	part := func(choices, more string) {
		fmt.Fprintf(&b, `data: {"id":"chatcmpl-%d","object":"chat.completion.chunk","created":1700000000,"model":%q,"choices":[%s]%s}`+"\n\n", turn, drive.Model, choices, more)
	}
	delta := func(delta, finish string) {
		part(fmt.Sprintf(`{"index":0,"delta":%s,"logprobs":null,"finish_reason":%s}`, delta, finish), "")
	}
	delta(`{"role":"assistant","content":""}`, "null")
	delta(fmt.Sprintf(`{"content":%q}`, word), "null")
	for i := range 7 {
		delta(fmt.Sprintf(`{"content":" w%04d"}`, i), "null")
	}
	for i := range calls {
		name, args := called(turn, i)
		delta(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":"call_%d_%d","type":"function","function":{"name":%q,"arguments":""}}]}`, i, turn, i, name), "null")
		for size := (len(args) + 3) / 4; args != ""; args = args[min(size, len(args)):] {
			piece, _ := json.Marshal(args[:min(size, len(args))])
			delta(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, i, piece), "null")
		}
	}
	if calls > 0 {
		delta("{}", `"tool_calls"`)
	} else {
		delta("{}", `"stop"`)
	}
	if usage {
		part("", `,"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}`)
	}
	b.WriteString("data: [DONE]\n\n")
	return b.Bytes()
}

// called is a call of a turn, unlike all others.
func called(turn, i int) (name, args string) {
	if (turn+i)%2 == 0 {
		text := fmt.Sprintf("turn %d call %d", turn, i)
		return drive.EchoName, fmt.Sprintf(`{"text":%q,"ms":0}`, text+strings.Repeat(".", 32-len(text)))
	}
	return drive.SumName, fmt.Sprintf(`{"a":%d,"b":%d,"ms":0}`, turn+1, i+1)
}
