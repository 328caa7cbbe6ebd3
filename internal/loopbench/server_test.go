package loopbench

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/pawlrun/pawl/sandbox"
)

// serverEnv makes the test binary a model server: in a process of its own, so
// that its CPU time is not counted as the loop's.
const serverEnv = "PAWL_LOOPBENCH_SERVER"

// shim makes the test binary what supervises commands, too.
var shim sandbox.Shim

func TestMain(m *testing.M) {
	shim = sandbox.Main()
	if os.Getenv(serverEnv) != "" {
		serve()
		return
	}
	if events, err := strconv.ParseInt(os.Getenv(readersEnv), 10, 64); err == nil {
		read(events)
		return
	}
	if n, err := strconv.Atoi(os.Getenv(holderEnv)); err == nil {
		hold(n)
		return
	}
	os.Exit(m.Run())
}

// deltas is how many text deltas an answer has.
const deltas = 20

func serve() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(l.Addr())
	go func() {
		// The parent's end of stdin closes when it is gone.
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	s := &modelServer{turns: map[string]int{}}
	_ = http.Serve(l, s)
}

// modelServer speaks the Messages API. The base URL of a run ends in /ID/N: the
// answer of its N-th request is text, those before it ask for the tool.
type modelServer struct {
	scripts scripts
	mu      sync.Mutex
	turns   map[string]int
}

func (s *modelServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if s.scripts.serve(w, r, parts) {
		return
	}
	_, _ = io.Copy(io.Discard, r.Body)
	last, _ := strconv.Atoi(parts[1])
	s.mu.Lock()
	s.turns[parts[0]]++
	turn := s.turns[parts[0]]
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	b := bufio.NewWriter(w)
	sse(b, "message_start", `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"stop_reason":null,"usage":{"input_tokens":100,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}}}`)
	sse(b, "content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
	for range deltas {
		sse(b, "content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"some words of text "}}`)
	}
	sse(b, "content_block_stop", `{"type":"content_block_stop","index":0}`)
	stop := "end_turn"
	if turn < last {
		stop = "tool_use"
		sse(b, "content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_%d","name":"noop","input":{}}}`, turn))
		sse(b, "content_block_delta", `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"n\":"}}`)
		sse(b, "content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"%d}"}}`, turn))
		sse(b, "content_block_stop", `{"type":"content_block_stop","index":1}`)
	}
	sse(b, "message_delta", `{"type":"message_delta","delta":{"stop_reason":"`+stop+`","stop_sequence":null},"usage":{"output_tokens":60}}`)
	sse(b, "message_stop", `{"type":"message_stop"}`)
	_ = b.Flush()
}

func sse(w io.Writer, name, data string) { fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, data) }

// startServer runs the server process and returns its base URL.
func startServer(b testing.TB) string {
	b.Helper()
	return serverOf(b, exec.Command(os.Args[0]))
}

// serverOf runs the server process by a command.
func serverOf(b testing.TB, cmd *exec.Cmd) string {
	b.Helper()
	cmd.Env = append(cmd.Environ(), serverEnv+"=1")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return "http://" + strings.TrimSpace(addr)
}
