package loopbench

import (
	"fmt"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/loopbench/drive"
)

// BenchmarkManyAtOnce measures the memory of a process at its peak, by the run, with many
// runs at once whose model takes its time, beside the lean loop.
func BenchmarkManyAtOnce(b *testing.B) {
	d := newDrivers(b)
	for _, c := range []struct{ runs, turns, ms int }{{2_000, 4, 200}, {10_000, 3, 2_000}} {
		b.Run(fmt.Sprintf("runs=%d", c.runs), func(b *testing.B) {
			o := drive.Order{Turns: c.turns, Calls: 2, Runs: c.runs, AtOnce: c.runs, Warm: 20, Over: time.Duration(c.ms) * time.Millisecond}
			var ratios, lean, above []float64
			for b.Loop() {
				x := float64(d.do(b, d.lean, o, c.ms).PeakKiB) / float64(c.runs)
				y := float64(d.do(b, d.pawl, o, c.ms).PeakKiB) / float64(c.runs)
				ratios, lean, above = append(ratios, y/x), append(lean, x), append(above, y-x)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(ratios), "ratio")
			b.ReportMetric(median(lean), "lean-KiB/run")
			b.ReportMetric(median(above), "KiB/run-above-lean")
		})
	}
}
