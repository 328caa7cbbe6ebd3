package server_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/journal"
)

// dictated is a provider whose model says what a test has it say, word by word.
func dictated(t *testing.T) (words chan string) {
	t.Helper()
	words = make(chan string)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		control := http.NewResponseController(w)
		if err := control.Flush(); err != nil {
			t.Error(err)
		}
		for word := range words {
			if word == "" {
				break
			}
			fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", word)
			if err := control.Flush(); err != nil {
				t.Error(err)
			}
		}
		fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(web.Close)
	t.Setenv("OPENAI_BASE_URL", web.URL+"/v1")
	t.Setenv("OPENAI_API_KEY", "k")
	return words
}

// listener reads the stream of a run.
type listener struct {
	t     *testing.T
	lines *bufio.Scanner
	// text is what the live events since the last request to the model say.
	text string
}

func (s site) listen(path string) *listener {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.URL+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	answer, err := s.Client().Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = answer.Body.Close() })
	l := &listener{t: s.t, lines: bufio.NewScanner(answer.Body)}
	l.lines.Buffer(nil, 4<<20)
	return l
}

// until reads on until an event of a type, or until the text is a certain one.
func (l *listener) until(kind, text string) {
	l.t.Helper()
	for of := ""; l.lines.Scan(); {
		line := l.lines.Text()
		if name, is := strings.CutPrefix(line, "event: "); is {
			of = name
		}
		data, is := strings.CutPrefix(line, "data: ")
		if !is {
			continue
		}
		if of == "text" {
			var e struct{ Data struct{ Text string } }
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				l.t.Fatal(err)
			}
			l.text += e.Data.Text
		}
		if kind != "" && of == kind || kind == "" && l.text == text {
			return
		}
	}
	l.t.Fatalf("the stream ended before %q %q, with the text %q: %v", kind, text, l.text, l.lines.Err())
}

// The live text adds up to the answer, for a reader that is there from the beginning and
// for those that come in the middle.
func TestAReaderInTheMiddleOfAnAnswerGetsTheTextSoFarOverHTTP(t *testing.T) {
	words := dictated(t)
	to := listening(t, map[string]string{
		"agent.yaml": "identity: {name: answers}\nmodel_policy: {primary: {model: openai-chat/m}}\ntools: {allow: []}\n",
	})
	for range 2 {
		path := "/v1/runs/" + to.starts().ID + "/events?deltas=true"
		words <- "One "
		words <- "two "
		first := to.listen(path)
		first.until("", "One two ")
		words <- "three "
		first.until("", "One two three ")
		second, tree := to.listen(path), to.listen(path+"&tree=true")
		second.until("", "One two three ")
		tree.until("", "One two three ")
		words <- "four."
		words <- ""
		for name, l := range map[string]*listener{"the first": first, "the second": second, "of the tree": tree} {
			if l.until("model.response", ""); l.text != "One two three four." {
				t.Errorf("%s gets %q", name, l.text)
			}
			l.until("run.completed", "")
		}
	}
}

// starts starts the agent "answers".
func (s site) starts() (run journal.Run) {
	s.t.Helper()
	answer, err := s.Client().Post(s.URL+"/v1/runs", "application/json", strings.NewReader(`{"agent": "answers", "input": "go"}`))
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&run); err != nil || answer.StatusCode != http.StatusCreated {
		s.t.Fatalf("%s, %v", answer.Status, err)
	}
	return run
}
