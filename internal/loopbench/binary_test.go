package loopbench

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// binary builds the release binary and returns where it is.
func binary(b *testing.B) string {
	b.Helper()
	bin := filepath.Join(b.TempDir(), "pawl")
	out, err := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", bin, "github.com/pawlrun/pawl/cmd/pawl").CombinedOutput()
	if err != nil {
		b.Fatalf("build: %v\n%s", err, out)
	}
	return bin
}

// BenchmarkBinary measures the release binary: its size, and how long the
// smallest command takes from start to end.
func BenchmarkBinary(b *testing.B) {
	bin := binary(b)
	info, err := os.Stat(bin)
	if err != nil {
		b.Fatal(err)
	}
	var took []float64
	for b.Loop() {
		for range 10 {
			start := time.Now()
			if err := exec.Command(bin, "version").Run(); err != nil {
				b.Fatal(err)
			}
			took = append(took, float64(time.Since(start).Microseconds())/1000)
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(took), "version-ms")
	b.ReportMetric(float64(info.Size())/(1<<20), "MiB")
}
