package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// wordServer is a provider that streams numbered words, one in a delta, as many as the
// test allows.
type wordServer struct {
	url   string
	allow chan int
}

const paragraph = 40

// streamsWords starts a provider that streams a number of words.
func streamsWords(t *testing.T, words int) *wordServer {
	s := &wordServer{allow: make(chan int, 100)}
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		data := func(text string) {
			fmt.Fprintf(w, "data: %s\n\n", text)
			w.(http.Flusher).Flush()
		}
		left := 0
		for i := range words {
			for left == 0 {
				select {
				case left = <-s.allow:
				case <-r.Context().Done():
					return
				}
			}
			left--
			end := " "
			if i%paragraph == paragraph-1 {
				end = `\n\n`
			}
			data(fmt.Sprintf(`{"id":"x","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"%s%s"}}]}`, word(i), end))
		}
		data(`{"id":"x","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`)
		data(`{"id":"x","model":"m","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":10,"total_tokens":20}}`)
		data("[DONE]")
	}))
	t.Cleanup(h.Close)
	s.url = h.URL
	return s
}

// inputs counts the lines of messages and of the input.
func inputs(screen string) (n int) {
	for line := range strings.Lines(screen) {
		if strings.HasPrefix(line, ">") {
			n++
		}
	}
	return n
}

func word(i int) string { return fmt.Sprintf("word%04d", i) }

// streamed is a project whose agent is answered by a server.
func (s *wordServer) project(t *testing.T) project {
	return newProject(t, map[string]string{
		"agent.yaml":  "identity: {name: coder}\nmodel_policy: {primary: {model: ollama/m}}\ntools: {allow: []}\n",
		"config.yaml": fmt.Sprintf("providers:\n  ollama: {base_url: %q}\n", s.url),
	})
}

// Also where the terminal wraps its rows anew before the process knows of the size.
func TestResizesLeaveEachWordOnceAndNoOldFrame(t *testing.T) {
	const words, resizes = 1200, 20
	s := streamsWords(t, words)
	p := s.project(t)
	n := p.inTmux(100, 24, "--config", "config.yaml", "code", "--agent", "agent.yaml")
	p.eventually("it waits for a message", func() bool { return strings.Contains(n.all(), ">") })
	raw := filepath.Join(t.TempDir(), "raw")
	n.tmux("pipe-pane", "-o", "cat > '"+raw+"'")
	n.tmux("send-keys", "tell me", "Enter")
	p.eventually("the message is sent", func() bool { return strings.Contains(n.all(), "> tell me") })
	for i := range resizes {
		s.allow <- words / resizes
		width, height := []int{100, 61, 38, 80, 24}[i%5], []int{24, 18, 30, 12}[i%4]
		n.tmux("resize-window", "-x", fmt.Sprint(width), "-y", fmt.Sprint(height))
		seen := word((i + 1) * words / resizes / paragraph * paragraph / 2)
		p.eventually("words arrive", func() bool { return strings.Contains(n.all(), seen) })
	}
	all := ""
	p.eventually("the answer has ended, and the live region is drawn", func() bool {
		all = n.all()
		return strings.Contains(all, word(words-1)) && strings.Contains(all, "USD") && inputs(all) >= 2
	})
	for i := range words {
		if got := strings.Count(all, word(i)); got != 1 {
			t.Fatalf("%s is there %d times:\n%s", word(i), got, all)
		}
	}
	if got := strings.Count(all, "ollama/m"); got > 1 {
		t.Errorf("%d status lines are there:\n%s", got, all)
	}
	if n := inputs(all); n != 2 {
		t.Errorf("the message and the input are %d lines:\n%s", n, all)
	}
	written, err := os.ReadFile(raw)
	if err != nil || len(written) == 0 {
		t.Fatal(err)
	}
	for _, clear := range []string{"\x1b[2J", "\x1b[3J", "\x1bc"} {
		if strings.Contains(string(written), clear) {
			t.Errorf("the screen is cleared by %q", clear)
		}
	}
}
