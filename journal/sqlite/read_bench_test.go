package sqlite_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pawlrun/pawl/journal/journaltest"
)

// BenchmarkSparseRun is to read a run that wrote an event now and then while
// others wrote half a million: its beginning, its end, and all of it in pages.
func BenchmarkSparseRun(b *testing.B) {
	s := open(b, filepath.Join(b.TempDir(), "journal.db"))
	sparse, busy := journaltest.Start(b, s, "sparse"), journaltest.Start(b, s, "busy")
	others := slices.Repeat(texts(1), 2500)
	for range 200 {
		sparse.Append(b, texts(1)...)
		busy.Append(b, others...)
	}
	for _, c := range []struct {
		name  string
		after int64
		limit int
	}{{"first", 0, 1}, {"whole", 0, 0}, {"last", sparse.Seq - 1, 0}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if r, err := s.Records(b.Context(), "sparse", c.after, c.limit); err != nil || len(r) == 0 {
					b.Fatal(fmt.Sprint(len(r), err))
				}
			}
		})
	}
	b.Run("pages", func(b *testing.B) {
		for b.Loop() {
			for after := int64(0); after < sparse.Seq; {
				r, err := s.Records(b.Context(), "sparse", after, 20)
				if err != nil {
					b.Fatal(err)
				}
				after += int64(len(r))
			}
		}
	})
}
