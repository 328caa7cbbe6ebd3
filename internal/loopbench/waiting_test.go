package loopbench

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/loopbench/drive"
	"github.com/pawlrun/pawl/internal/loopbench/lean"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/anthropic"
	"github.com/pawlrun/pawl/tool"
)

// atOnce is how many wait for an answer together.
const atOnce = 10_000

// BenchmarkTenThousandAtOnce measures what a child holds that waits for its model, of
// ten thousand that one workflow started, beyond what the lean loop holds with a small buffer. It is behind
// BenchmarkTenThousandItems, because the peak memory of a process that is started
// includes what its parent had.
func BenchmarkTenThousandAtOnce(b *testing.B) {
	for b.Loop() {
		lean := heldByWaiting(b, func(client *http.Client, n int) error { return leanLoops(client, "http://in-process", n, 4<<10) })
		below := heldByWaiting(b, steps)
		b.ReportMetric((below-lean)/atOnce/(1<<10), "KiB/child-above-lean")
		b.ReportMetric(lean/atOnce/(1<<10), "KiB/lean")
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkTenThousandStarted measures the same of runs that a program starts, each with
// [pawl.Agent.Start] in memory.
func BenchmarkTenThousandStarted(b *testing.B) {
	for b.Loop() {
		lean := heldByWaiting(b, func(client *http.Client, n int) error { return leanLoops(client, "http://in-process", n, 0) })
		b.ReportMetric((heldByWaiting(b, startedRuns)-lean)/atOnce/(1<<10), "KiB/run-above-lean")
	}
	b.ReportMetric(0, "ns/op")
}

// startedRuns starts so many runs of an agent at once and waits for them.
func startedRuns(client *http.Client, n int) error {
	echo := pawl.Tool(drive.EchoName, drive.EchoDoes, func(_ context.Context, e drive.Echo) (string, error) { return e.Do() })
	a := pawl.Agent{Name: "a", Tools: []tool.Tool{echo}, Model: inProcessModel(client)}
	runs := make([]*pawl.Run, 0, n)
	for range n {
		run, err := a.Start(context.Background(), "go", pawl.Options{})
		if err != nil {
			return err
		}
		runs = append(runs, run)
	}
	for _, run := range runs {
		s, err := run.Wait()
		if err == nil {
			err = s.Err()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func inProcessModel(client *http.Client) pawl.Target {
	return pawl.Target{
		Name: "anthropic/claude-sonnet-4-5", Client: anthropic.New(anthropic.Options{APIKey: "k", HTTP: client}), Price: &llm.Price{},
	}
}

// heldByWaiting returns how many bytes are in use while all the loops that do started
// wait for an answer.
func heldByWaiting(b *testing.B, do func(client *http.Client, n int) error) float64 {
	all := newMeeting(atOnce)
	client := &http.Client{Transport: inProcess(func(r *http.Request) []byte {
		all.attend()
		return lastAnswer(r)
	})}
	bytesInUse() // what is pooled goes with the second collection
	empty := bytesInUse()
	done := make(chan error, 1)
	go func() { done <- do(client, atOnce) }()
	select {
	case <-all.complete:
	case err := <-done:
		b.Fatal("it ended before all of them waited: ", err)
	}
	held := bytesInUse() - empty
	close(all.over)
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	return held
}

// steps runs a workflow with so many steps at once.
func steps(client *http.Client, n int) error {
	w := pawl.Workflow{
		Agents: map[string]pawl.Agent{"a": {Model: inProcessModel(client), Tools: []tool.Tool{noop()}}},
		Steps:  []pawl.Step{{ID: "each", Agent: "a", Instructions: "go", Loop: &pawl.Loop{Items: make([]int, n)}}},
	}
	run, err := w.Start(context.Background(), "", pawl.Options{})
	if err != nil {
		return err
	}
	s, err := run.Wait()
	if err == nil {
		err = s.Err()
	}
	return err
}

// leanLoops runs so many lean loops at once, with buffers of a size.
func leanLoops(client *http.Client, url string, n, buffer int) error {
	l := lean.Loop{Client: client, URL: url, Buffer: buffer, Head: `{"model":"sim","stream":true,"messages":[{"role":"user","content":`}
	var all sync.WaitGroup
	errs := make(chan error, n)
	for range n {
		all.Go(func() {
			if _, err := l.Run(context.Background(), "go"); err != nil {
				errs <- err
			}
		})
	}
	all.Wait()
	select {
	case err := <-errs:
		return fmt.Errorf("a lean loop: %w", err)
	default:
		return nil
	}
}

// lastAnswer calls no tool, in the dialect that is asked for.
func lastAnswer(r *http.Request) []byte {
	if strings.HasSuffix(r.URL.Path, "/completions") {
		return write(0, 0, "on", false)
	}
	return shortAnswer(1, false)
}
