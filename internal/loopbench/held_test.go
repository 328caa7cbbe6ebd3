package loopbench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/machine/versions"
	"github.com/pawlrun/pawl/internal/server"
	"github.com/pawlrun/pawl/journal/sqlite"
)

// holderEnv makes the test binary a model server that keeps so many waiting until a
// line comes: in a process of its own, so that what it holds is not counted.
const holderEnv = "PAWL_LOOPBENCH_HOLDER"

// servedAtOnce is how many wait together. A run has a connection and its workspace
// open, and to begin one is work for a processor, so these are fewer than ten thousand.
const servedAtOnce = 1_000

// hold answers one request at once, and the others when all have come and a line has.
func hold(n int) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr())
	var mu sync.Mutex
	asked, over := 0, make(chan struct{})
	go func() {
		_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			mu.Lock()
			asked++
			mine := asked
			mu.Unlock()
			if mine == n+1 {
				fmt.Println("complete")
			}
			if mine > 1 {
				<-over
			}
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write(lastAnswer(r))
		}))
	}()
	lines := bufio.NewReader(os.Stdin)
	_, _ = lines.ReadString('\n')
	close(over)
	_, _ = lines.ReadString('\n')
}

// heldOverHTTP is how many bytes are in use when so many wait for a model in another
// process, whom do started at its address.
func heldOverHTTP(b *testing.B, do func(url string, n int, over <-chan struct{}) error) float64 {
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), fmt.Sprint(holderEnv, "=", servedAtOnce)), os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() { _ = stdin.Close(); _ = cmd.Wait() }()
	lines := bufio.NewReader(stdout)
	addr, err := lines.ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	bytesInUse()
	empty := bytesInUse()
	done, over := make(chan error, 1), make(chan struct{})
	go func() { done <- do("http://"+strings.TrimSpace(addr), servedAtOnce+1, over) }()
	complete := make(chan struct{})
	go func() {
		if line, _ := lines.ReadString('\n'); strings.TrimSpace(line) == "complete" {
			close(complete)
		}
	}()
	select {
	case <-complete:
	case err := <-done:
		b.Fatal("it ended before all of them waited: ", err)
	}
	bytesInUse()
	held := bytesInUse() - empty
	fmt.Fprintln(stdin, "over")
	close(over)
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	return held
}

// BenchmarkWaitingRunsOfAServer measures what a run holds that a server started by
// a request and that waits for its model, in another process, beyond what the lean loop
// holds there. Both have a connection each.
func BenchmarkWaitingRunsOfAServer(b *testing.B) {
	for b.Loop() {
		client := &http.Client{Transport: &http.Transport{}}
		lean := heldOverHTTP(b, func(url string, n int, _ <-chan struct{}) error { return leanLoops(client, url, n, 4<<10) })
		client.CloseIdleConnections()
		served := heldOverHTTP(b, func(url string, n int, over <-chan struct{}) error { return servedRuns(b, url, n, over) })
		b.ReportMetric((served-lean)/servedAtOnce/(1<<10), "KiB/run-above-lean")
		b.ReportMetric(lean/servedAtOnce/(1<<10), "KiB/lean")
	}
	b.ReportMetric(0, "ns/op")
}

// servedRuns starts so many runs by requests, and stops the server when it is over.
func servedRuns(b *testing.B, model string, n int, over <-chan struct{}) error {
	dir := b.TempDir()
	agent := "identity: {name: a}\nmodel_policy: {primary: {model: anthropic/claude-sonnet-4-5}}\ntools: {allow: []}\n"
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(agent), 0o600); err != nil {
		return err
	}
	store, err := sqlite.Open(b.Context(), filepath.Join(dir, "journal.db"), sqlite.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	e := engine.New(store, versions.Make, engine.Options{})
	l := launch.Options{Host: launch.Host{Getenv: func(name string) string {
		return map[string]string{"ANTHROPIC_BASE_URL": model, "ANTHROPIC_API_KEY": "k"}[name]
	}}}
	l.Workspace = dir
	s, err := server.New(server.Options{
		Store: store, Engine: e, Controller: control.New(store, e), Agents: dir, User: "somebody", Launch: l,
		NoAuth: true,
	})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, listener) }()
	if err = startRuns("http://"+listener.Addr().String(), n); err == nil {
		<-over
	}
	stop()
	return errors.Join(err, <-ended)
}

// startRuns asks for so many runs, no faster than one principal may.
func startRuns(url string, n int) error {
	for i := 0; i < n; {
		answer, err := http.Post(url+"/v1/runs", "application/json", strings.NewReader(`{"agent": "a", "input": "go"}`))
		if err != nil {
			return err
		}
		text, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		switch answer.StatusCode {
		case http.StatusCreated:
			i++
		case http.StatusTooManyRequests:
			time.Sleep(100 * time.Millisecond)
		default:
			return fmt.Errorf("status %d: %s", answer.StatusCode, text)
		}
	}
	return nil
}
