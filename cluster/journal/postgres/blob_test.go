package postgres_test

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"github.com/pawlrun/pawl/cluster/journal/postgres"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/journaltest"
)

// Several runs write contents at once, so that groups of commits have more than a
// statement may hold.
func TestContentsFromEmptyTo64MiBAreKept(t *testing.T) {
	at := place(t)
	s, elsewhere := open(t, at, postgres.Options{}), open(t, at, postgres.Options{ReadOnly: true})
	var writers sync.WaitGroup
	for i, size := range []int{0, 1, 16 << 20, 64<<20 - 1, 64 << 20} {
		content := bytes.Repeat([]byte{byte(i), 0, 0xff}, size/3+1)[:size]
		blob := journal.NewBlob(content)
		for n := range 2 {
			d := journaltest.Start(t, s, fmt.Sprintf("r%d-%d", i, n))
			b := d.Batch(t, said("stored"))
			b.Blobs = []journal.Blob{blob}
			writers.Go(func() {
				if err := d.Write(t, b); err != nil {
					t.Errorf("%d bytes: %v", size, err)
				}
				if got, err := elsewhere.Blob(t.Context(), blob.Digest); err != nil || !bytes.Equal(got, content) {
					t.Errorf("%d of %d bytes: %v", len(got), size, err)
				}
			})
		}
	}
	writers.Wait()
}
