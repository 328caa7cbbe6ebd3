package loopbench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// BenchmarkTenThousandItems measures `pawl run` of a loop over ten thousand items, 64 at
// once on SQLite, with answers of 200 bytes, against that of one over a thousand.
func BenchmarkTenThousandItems(b *testing.B) {
	bin, dir := binary(b), b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "answer.yaml"), []byte("- text: "+strings.Repeat("x", 200)), 0o600); err != nil {
		b.Fatal(err)
	}
	over := func(n int) (cpu, took time.Duration, peakMiB float64) {
		items, err := json.Marshal(make([]int, n))
		if err != nil {
			b.Fatal(err)
		}
		file := fmt.Sprintf("name: many\nagents: {a: {description: Answers., model: scripted/answer.yaml, tools: []}}\n"+
			"steps:\n- {id: each, agent: a, instructions: go, loop: {forEach: %s, maxConcurrency: 64}}\n", items)
		if err := os.WriteFile(filepath.Join(dir, "many.yaml"), []byte(file), 0o600); err != nil {
			b.Fatal(err)
		}
		cmd := exec.Command(bin, "--journal", filepath.Join(b.TempDir(), "journal.db"), "run", "many.yaml")
		var said bytes.Buffer
		cmd.Dir, cmd.Stderr = dir, &said
		start := time.Now()
		if err := cmd.Run(); err != nil {
			b.Fatalf("%v: %s", err, said.Bytes())
		}
		s := cmd.ProcessState
		return s.UserTime() + s.SystemTime(), time.Since(start), float64(s.SysUsage().(*syscall.Rusage).Maxrss) / (1 << 10)
	}
	for b.Loop() {
		cpu, took, _ := over(1000)
		cpuOfMany, tookMany, peak := over(10_000)
		b.ReportMetric(float64(cpuOfMany)/float64(cpu), "ratio")
		b.ReportMetric(float64(tookMany)/float64(took), "time-ratio")
		b.ReportMetric(float64(cpuOfMany)/10_000, "cpu-ns/item")
		b.ReportMetric(peak, "peak-MiB")
	}
	b.ReportMetric(0, "ns/op")
}
