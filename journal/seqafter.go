package journal

import (
	"context"
	"sort"
)

// SeqAfter returns the number of a run's last event up to a pos, 0 for none. A run's
// pos grow with its numbers.
func SeqAfter(ctx context.Context, s Store, run Run, pos int64) (seq int64, err error) {
	if pos == 0 {
		return 0, nil
	}
	n := sort.Search(int(run.Seq), func(i int) bool {
		var records []Record
		if err == nil {
			records, err = s.Records(ctx, run.ID, int64(i), 1)
		}
		return err != nil || len(records) == 0 || records[0].Pos > pos
	})
	return int64(n), err
}
