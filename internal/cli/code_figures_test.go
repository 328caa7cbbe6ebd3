package cli

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/journal"
)

// How long a key and the resumption of a long session take, and what an idle session costs.
// PAWL_BENCH_SESSION=1 measures it, on a machine that does nothing else.
func TestFiguresOfASession(t *testing.T) {
	if os.Getenv("PAWL_BENCH_SESSION") == "" {
		t.Skip("measured by 'make bench-session'")
	}
	t.Run("echo", echoes)
	t.Run("idle", idles)
	t.Run("resume", resumes)
}

// within fails if a figure is above its limit.
func within(t *testing.T, what string, got, most time.Duration) {
	t.Helper()
	t.Logf("%s: %v, at most %v", what, got, most)
	if got > most {
		t.Errorf("%s: %v is more than %v", what, got, most)
	}
}

// echoes types keys while 500 deltas a second arrive.
func echoes(t *testing.T) {
	const keys, rate = 400, 500
	s := streamsWords(t, 100*rate)
	p := s.project(t)
	y, _ := p.inRegion("--config", "config.yaml", "--agent", "agent.yaml")
	y.types("go\r")
	tick := time.NewTicker(time.Second / rate)
	defer tick.Stop()
	go func() {
		for {
			select {
			case <-tick.C:
				s.allow <- 1
			case <-t.Context().Done():
				return
			}
		}
	}()
	p.eventually("words arrive", func() bool { return strings.Contains(y.seen(), word(20)) })
	var took []time.Duration
	shown := ""
	for i := range keys {
		if len(shown) == 20 {
			y.types("\x15")
			p.eventually("the input is empty", func() bool { return !strings.Contains(y.frame(), shown) })
			shown = ""
		}
		key := string(rune('A' + i%26))
		shown += key
		from := time.Now()
		y.types(key)
		for !strings.Contains(y.frame(), "> "+shown) {
			time.Sleep(100 * time.Microsecond)
		}
		took = append(took, time.Since(from))
		time.Sleep(10 * time.Millisecond)
	}
	slices.Sort(took)
	t.Logf("echo: p50 %v, max %v", took[len(took)/2], took[len(took)-1])
	within(t, "echo p99", took[len(took)*99/100], 30*time.Millisecond)
}

// idles measures the processor time of a session that waits for a message after an answer.
func idles(t *testing.T) {
	p := newProject(t, map[string]string{"agent.yaml": slowly, "script.yaml": "- text: the answer\n"})
	y, s := p.inRegion("--agent", "agent.yaml")
	y.types("go\r")
	p.eventually("it answers", func() bool { return strings.Contains(y.text(), "the answer") })
	time.Sleep(time.Second)
	const over = 20 * time.Second
	before := processorTime(t, s.Process.Pid)
	time.Sleep(over)
	within(t, "processor time of 20 idle seconds", processorTime(t, s.Process.Pid)-before, over/200)
}

// processorTime returns what a process has used, in ticks of 10 ms.
func processorTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	var ticks int64
	for _, f := range fields[11:13] { // utime and stime
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// resumes opens a session of 10,000 events.
func resumes(t *testing.T) {
	var script strings.Builder
	for i := range 1100 {
		fmt.Fprintf(&script, "- {text: look %d, tool_calls: [{name: fs.read, arguments: {path: f.txt, offset: %d}}]}\n", i, i%100+1)
	}
	p := newProject(t, map[string]string{
		"agent.yaml":  slowly + "max_cycles: 1200\nbudgets: {max_tool_calls: none}\ntools: {allow: [fs.read]}\n",
		"script.yaml": script.String() + "- text: the end\n", "f.txt": strings.Repeat("line\n", 200),
	})
	p.exits(0, "code", "--agent", "agent.yaml", "-p", "go")
	id := p.newest()
	if row := p.row(id); row.State != journal.Ended || row.Seq < 10_000 {
		t.Fatalf("the run is %s after %d events", row.State, row.Seq)
	}
	var took []time.Duration
	for range 7 {
		from := time.Now()
		y, s := p.atTerminal(nil, "code", "--resume", id)
		for !strings.HasSuffix(strings.TrimSpace(drawn.ReplaceAllString(y.seen(), "")), ">") {
			time.Sleep(time.Millisecond)
		}
		took = append(took, time.Since(from))
		y.types("\x04")
		s.wait()
	}
	slices.Sort(took)
	within(t, "10,000 events", took[len(took)/2], 300*time.Millisecond)
}
