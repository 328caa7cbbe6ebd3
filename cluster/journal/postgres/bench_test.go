package postgres_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlrun/pawl/cluster/journal/postgres"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/journaltest"
	"github.com/pawlrun/pawl/journal/sqlite"
)

// appends returns how many appends a second a number of writers complete within a time,
// for each of the stores in turn.
func appends(b *testing.B, stores []journal.Store, writers int, within time.Duration) float64 {
	text := said(strings.Repeat("lorem ip", 60))
	var all sync.WaitGroup
	var n atomic.Int64
	drivers := make([]*journaltest.Driver, writers)
	for i := range drivers {
		drivers[i] = journaltest.Start(b, stores[i%len(stores)], fmt.Sprintf("run%d", i))
	}
	began := time.Now()
	for _, d := range drivers {
		all.Go(func() {
			for time.Since(began) < within {
				if err := d.Write(b, d.Batch(b, text, text)); err != nil {
					b.Error(err)
					return
				}
				n.Add(1)
			}
		})
	}
	all.Wait()
	return float64(n.Load()) / time.Since(began).Seconds()
}

// BenchmarkAppends measures appends a second, each of two events of about 560 bytes,
// for a journal on PostgreSQL and for a SQLite file on the same machine. The two take
// turns, so that both use the disk under the same conditions.
func BenchmarkAppends(b *testing.B) {
	for _, c := range []struct{ processes, writers int }{{1, 1}, {1, 16}, {1, 64}, {1, 256}, {4, 64}} {
		b.Run(fmt.Sprintf("processes=%d/writers=%d", c.processes, c.writers), func(b *testing.B) {
			database, file := 0.0, 0.0
			for range b.N {
				at := place(b)
				var stores []journal.Store
				for range c.processes {
					stores = append(stores, open(b, at, postgres.Options{}))
				}
				database += appends(b, stores, c.writers, 2*time.Second)
				s, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "journal.db"), sqlite.Options{})
				if err != nil {
					b.Fatal(err)
				}
				file += appends(b, []journal.Store{s}, c.writers, 2*time.Second)
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(database/float64(b.N), "appends/s")
			b.ReportMetric(file/float64(b.N), "sqlite-appends/s")
			b.ReportMetric(database/file, "of-sqlite")
		})
	}
}
