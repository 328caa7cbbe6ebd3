package loopbench

import (
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/loopbench/drive"
)

// BenchmarkStart measures how long it takes until the first request of a run is with the
// model's server, beside the lean loop: from the start of a process, and from the start of
// a run in a process that has done some before.
func BenchmarkStart(b *testing.B) {
	d := newDrivers(b)
	for _, c := range []struct {
		name  string
		order drive.Order
		took  func(*testing.B, time.Time, drive.Report) float64
	}{
		{"process", drive.Order{Runs: 1}, func(b *testing.B, start time.Time, r drive.Report) float64 { return since(b, start, r.Texts[0]) }},
		{"run", drive.Order{Runs: 500, Warm: 100}, func(b *testing.B, _ time.Time, r drive.Report) float64 {
			var took []float64
			for i, text := range r.Texts {
				took = append(took, since(b, r.Began[i], text))
			}
			return median(took)
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			c.order.Turns, c.order.AtOnce = 1, 1
			var ratios, lean, pawl []float64
			d.do(b, d.lean, c.order, 0) // the first start reads the program from the disk
			d.do(b, d.pawl, c.order, 0)
			for b.Loop() {
				start := time.Now()
				x := c.took(b, start, d.do(b, d.lean, c.order, 0))
				start = time.Now()
				y := c.took(b, start, d.do(b, d.pawl, c.order, 0))
				ratios, lean, pawl = append(ratios, y/x), append(lean, x), append(pawl, y)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(ratios), "ratio")
			b.ReportMetric(median(lean), "lean-ns")
			b.ReportMetric(median(pawl), "ns")
		})
	}
}

// since is how long after a time a request came, which a run of one turn has as its text.
func since(b *testing.B, start time.Time, text string) float64 {
	b.Helper()
	came, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	at, err := time.Parse(time.RFC3339Nano, came)
	if err != nil {
		b.Fatal(err)
	}
	return float64(at.Sub(start))
}
