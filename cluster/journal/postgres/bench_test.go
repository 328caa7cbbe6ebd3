package postgres_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

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

// single returns how many appends a second a number of writers complete if each is a
// transaction of its own, which takes its positions from a counter row.
func single(b *testing.B, writers int, within time.Duration) float64 {
	table := fmt.Sprintf("single%d", time.Now().UnixNano())
	admin, err := pgx.Connect(b.Context(), server.URL())
	if err != nil {
		b.Fatal(err)
	}
	defer admin.Close(b.Context())
	if _, err := admin.Exec(b.Context(), `CREATE TABLE `+table+`_head (pos bigint); INSERT INTO `+table+`_head VALUES (0); CREATE TABLE `+table+` (pos bigint PRIMARY KEY, body bytea)`); err != nil {
		b.Fatal(err)
	}
	body := []byte(strings.Repeat("lorem ip", 70))
	var all sync.WaitGroup
	var n atomic.Int64
	conns := make([]*pgx.Conn, writers)
	for i := range conns {
		if conns[i], err = pgx.Connect(b.Context(), server.URL()); err != nil {
			b.Fatal(err)
		}
		defer conns[i].Close(b.Context())
	}
	began := time.Now()
	for _, c := range conns {
		all.Go(func() {
			for time.Since(began) < within {
				err := pgx.BeginFunc(b.Context(), c, func(tx pgx.Tx) error {
					var pos int64
					if err := tx.QueryRow(b.Context(), `UPDATE `+table+`_head SET pos = pos + 2 RETURNING pos`).Scan(&pos); err != nil {
						return err
					}
					_, err := tx.Exec(b.Context(), `INSERT INTO `+table+` VALUES ($1, $3), ($2, $3)`, pos-1, pos, body)
					return err
				})
				if err != nil {
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

// BenchmarkAppends measures appends a second, each of two events of about 560 bytes, for
// a journal on PostgreSQL, for a SQLite file on the same machine, and with a transaction
// for each append. They take turns, so that all use the disk under the same conditions.
func BenchmarkAppends(b *testing.B) {
	const each = 2 * time.Second
	for _, writers := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			one, four, file, alone := 0.0, 0.0, 0.0, 0.0
			commits, grouped := int64(0), int64(0)
			for range b.N {
				for processes, sum := range map[int]*float64{1: &one, 4: &four} {
					at := place(b)
					var stores []journal.Store
					for range processes {
						stores = append(stores, open(b, at, postgres.Options{}))
					}
					*sum += appends(b, stores, writers, each)
					if processes == 1 {
						c, n := stores[0].(*postgres.Store).Commits()
						commits, grouped = commits+c, grouped+n
					}
				}
				s, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "journal.db"), sqlite.Options{})
				if err != nil {
					b.Fatal(err)
				}
				file += appends(b, []journal.Store{s}, writers, each)
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
				if writers <= 64 {
					alone += single(b, writers, each)
				}
			}
			b.ReportMetric(one/float64(b.N), "appends/s")
			b.ReportMetric(file/float64(b.N), "sqlite-appends/s")
			b.ReportMetric(float64(grouped)/float64(commits), "appends/commit")
			b.ReportMetric(one/file, "of-sqlite")
			b.ReportMetric(four/one, "four-processes-of-one")
			if alone > 0 {
				b.ReportMetric(alone/float64(b.N), "single-appends/s")
				b.ReportMetric(one/alone, "of-single")
			}
		})
	}
}

// BenchmarkOneAppend alternates between an append and a synced write of a file, and
// reports the median time of each.
func BenchmarkOneAppend(b *testing.B) {
	s := open(b, place(b), postgres.Options{})
	d := journaltest.Start(b, s, "run")
	text := said(strings.Repeat("lorem ip", 60))
	// The data of the server are in the same directory.
	f, err := os.CreateTemp(os.TempDir(), "pawl-fsync-")
	if err != nil {
		b.Fatal(err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	var appended, synced []time.Duration
	for range b.N {
		began := time.Now()
		if err := d.Write(b, d.Batch(b, text, text)); err != nil {
			b.Fatal(err)
		}
		appended = append(appended, time.Since(began))
		began = time.Now()
		if _, err := f.Write(make([]byte, 8<<10)); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
		synced = append(synced, time.Since(began))
	}
	slices.Sort(appended)
	slices.Sort(synced)
	half := func(all []time.Duration) float64 { return float64(all[len(all)/2].Microseconds()) }
	b.ReportMetric(half(appended), "append-us")
	b.ReportMetric(half(synced), "fsync-us")
	b.ReportMetric(half(appended)/half(synced), "of-fsync")
}
