package sqlite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/processor"
	"github.com/pawlrun/pawl/journal/journaltest"
	"github.com/pawlrun/pawl/journal/sqlite"
)

// quantile of durations; it sorts them.
func quantile(d []time.Duration, q float64) time.Duration {
	slices.Sort(d)
	return d[min(int(float64(len(d))*q), len(d)-1)]
}

func message(size int) event.Data {
	return event.InputReceived{Text: strings.Repeat("lorem ip", size/8), By: "bench"}
}

// BenchmarkOneEventAlone measures one durable event in a commit of its own, beside a
// raw 4 KiB append and fsync in the same directory. The two alternate, so that both see
// the same disk.
func BenchmarkOneEventAlone(b *testing.B) {
	dir := b.TempDir()
	s := open(b, filepath.Join(dir, "journal.db"))
	d := journaltest.Start(b, s, "a")
	raw, err := os.Create(filepath.Join(dir, "raw"))
	if err != nil {
		b.Fatal(err)
	}
	defer raw.Close()
	payload := message(400)
	durable, plain := make([]time.Duration, 0, b.N), make([]time.Duration, 0, b.N)
	b.ReportAllocs()
	for b.Loop() {
		batch := d.Batch(b, payload)
		start := time.Now()
		if err := d.Write(b, batch); err != nil {
			b.Fatal(err)
		}
		durable = append(durable, time.Since(start))
		plain = append(plain, appendRaw(b, raw))
	}
	p50, raw50 := quantile(durable, 0.5), quantile(plain, 0.5)
	b.ReportMetric(float64(p50), "p50-ns")
	b.ReportMetric(float64(raw50), "raw-p50-ns")
	b.ReportMetric(float64(p50)/float64(raw50), "ratio")
	b.ReportMetric(float64(quantile(durable, 0.99)), "p99-ns")
	b.ReportMetric(float64(quantile(plain, 0.99)), "raw-p99-ns")
}

// appendRaw measures the baseline: appending 4 KiB to a file and syncing it.
func appendRaw(b *testing.B, f *os.File) time.Duration {
	b.Helper()
	var page [4096]byte
	start := time.Now()
	if _, err := f.Write(page[:]); err != nil {
		b.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}

// BenchmarkWriters64 measures 64 runs whose drivers each wait for a commit before the
// next, with one event or with the events of half a cycle in each.
func BenchmarkWriters64(b *testing.B) {
	for _, size := range []int{1, 4} {
		b.Run(fmt.Sprintf("events-per-append=%d", size), func(b *testing.B) { benchmarkWriters(b, 64, size) })
	}
}

func benchmarkWriters(b *testing.B, writers, size int) {
	dir := b.TempDir()
	s := open(b, filepath.Join(dir, "journal.db"))
	drivers := make([]*journaltest.Driver, writers)
	for i := range drivers {
		drivers[i] = journaltest.Start(b, s, fmt.Sprintf("run%02d", i))
	}
	payload := slices.Repeat([]event.Data{message(400)}, size)
	each := max(b.N/writers/size, 1)
	latencies := make([][]time.Duration, writers)
	b.ReportAllocs()
	b.ResetTimer()
	cpu := processor.Time(b)
	var wg sync.WaitGroup
	for i, d := range drivers {
		latencies[i] = make([]time.Duration, 0, each)
		wg.Go(func() {
			for range each {
				batch := d.Batch(b, payload...)
				start := time.Now()
				if err := d.Write(b, batch); err != nil {
					b.Error(err)
					return
				}
				latencies[i] = append(latencies[i], time.Since(start))
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	cpu = processor.Time(b) - cpu
	all := slices.Concat(latencies...)
	b.ReportMetric(float64(each*size*writers)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(quantile(all, 0.5)), "p50-ns")
	b.ReportMetric(float64(quantile(all, 0.99)), "p99-ns")
	b.ReportMetric(float64(cpu)/float64(each*size*writers), "cpu-ns/event")
	b.ReportMetric(float64(logSize(b, s)), "wal-B")
	reportDisk(b, filepath.Join(dir, "raw"))
}

// reportDisk reports the current speed of the disk: a p99 of 64 writers cannot be
// better than that of a sync.
func reportDisk(b *testing.B, path string) {
	b.Helper()
	raw, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	defer raw.Close()
	plain := make([]time.Duration, 300)
	for i := range plain {
		plain[i] = appendRaw(b, raw)
	}
	b.ReportMetric(float64(quantile(plain, 0.5)), "raw-p50-ns")
	b.ReportMetric(float64(quantile(plain, 0.99)), "raw-p99-ns")
}

func logSize(b *testing.B, s *sqlite.Store) int64 {
	b.Helper()
	info, err := os.Stat(s.Path() + "-wal")
	if err != nil {
		b.Fatal(err)
	}
	return info.Size()
}

// BenchmarkRunOnDisk measures how much disk a run of 400 cycles uses, including the
// log, relative to 1.5 times its content.
func BenchmarkRunOnDisk(b *testing.B) {
	for b.Loop() {
		path := filepath.Join(b.TempDir(), fmt.Sprint(time.Now().UnixNano()), "journal.db")
		s := open(b, path)
		d := journaltest.Start(b, s, "a")
		content := int64(0)
		for cycle := range 400 {
			content += writeCycle(b, d, cycle)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(info.Size())/float64(d.Seq), "B/event")
		b.ReportMetric((float64(info.Size())-1.5*float64(content))/float64(d.Seq), "B/event-beyond-1.5x-content")
		b.ReportMetric(float64(info.Size())/float64(content), "B/content-B")
	}
}

// writeCycle writes the events of one cycle with one tool call, in its two commits, and
// returns the size of the external content.
func writeCycle(b *testing.B, d *journaltest.Driver, cycle int) int64 {
	id := fmt.Sprintf("%s-%d-1", d.Lease.Run, cycle)
	args := []byte(`{"command":"` + strings.Repeat("go test ", 10) + `"}`)
	text, output := strings.Repeat("thinking ", 40), strings.Repeat("ok  \tpackage\t0.01s\n", 50+cycle%100)
	d.Append(b,
		event.ModelResponse{
			Cycle: cycle, Attempt: 1, TextLength: len(text), FinishReason: "tool", RawFinish: "tool_use",
			ToolCalls: []event.CallRef{{CallID: id, Tool: "shell.exec"}}, Model: "provider/model-name",
			ResponseID: "msg_0123456789", RequestID: "req_0123456789",
		},
		event.Text{Text: text},
		event.ToolCall{CallID: id, Tool: "shell.exec", Args: args},
		event.PolicyDecision{CallID: id, Decision: "allow", Rule: "declared"},
		event.ToolStarted{CallID: id, Attempt: 1, Key: id},
	)
	d.Append(b,
		event.ToolResult{CallID: id, Tool: "shell.exec", Output: output},
		event.ToolResults{Cycle: cycle},
		event.CycleStart{Cycle: cycle + 1, MaxCycles: 400},
		event.ModelRequested{Attempt: 1, Model: "provider/model-name", RequestDigest: strings.Repeat("d", 64), RequestBytes: 100000},
	)
	return int64(len(text) + len(output) + len(args))
}
