package loopbench

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkBareLoopThatSyncs is what the disk alone does to the bare loop: a raw
// 4 KiB append and its sync where a durable run has a commit, twice a cycle, and
// nothing else. It is no promise. It says how much of the figure of durable runs
// belongs to the machine: to wait twice a cycle is more than the two calls cost,
// because what follows each wait finds cold caches.
func BenchmarkBareLoopThatSyncs(b *testing.B) {
	base := startServer(b)
	client := &http.Client{Transport: &http.Transport{}}
	file, err := os.Create(filepath.Join(b.TempDir(), "raw"))
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	var page [4096]byte
	keep := func() error {
		if _, err := file.Write(page[:]); err != nil {
			return err
		}
		return file.Sync()
	}
	loop := func(keep func() error) func(id string) error {
		return func(id string) error {
			l := &bare{client: client, url: fmt.Sprintf("%s/%s/%d", base, id, cycles), keep: keep}
			_, err := l.run("go")
			return err
		}
	}
	measure(b, 1, loop(nil))
	measure(b, 1, loop(keep))
	var ratios []float64
	for b.Loop() {
		x, y := measure(b, 1, loop(nil)), measure(b, 1, loop(keep))
		ratios = append(ratios, float64(y.cpu)/float64(x.cpu))
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(ratios), "ratio")
}
