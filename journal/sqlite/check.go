package sqlite

import (
	"context"
	"fmt"
	"strings"

	"github.com/pawlrun/pawl/journal"
)

// mostFaults bounds what Check tells of a damaged file.
const mostFaults = 5

// Check reads the whole file and says whether it is in order: its pages and
// indexes, and events without a run. The runs themselves are for
// [journal.Verify]. A damaged file is a [journal.ErrCorrupt]. It may take long
// and stops nobody from writing.
func (s *Store) Check(ctx context.Context) error {
	faults, err := s.integrity(ctx)
	if err == nil && len(faults) == 0 && s.queries.ownerless != "" {
		var n int
		err = s.readers.QueryRowContext(ctx, s.queries.ownerless).Scan(&n)
		if n > 0 {
			faults = []string{fmt.Sprintf("%d events belong to no run", n)}
		}
	}
	if err != nil {
		return fmt.Errorf("sqlite: check the file: %w", classify(err))
	}
	if len(faults) > 0 {
		return fmt.Errorf("sqlite: %w: %s", journal.ErrCorrupt, strings.Join(faults, "; "))
	}
	return nil
}

// integrity is what SQLite finds wrong with the file.
func (s *Store) integrity(ctx context.Context) ([]string, error) {
	rows, err := s.readers.QueryContext(ctx, fmt.Sprintf("PRAGMA integrity_check(%d)", mostFaults))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var faults []string
	for rows.Next() {
		var fault string
		if err := rows.Scan(&fault); err != nil {
			return nil, err
		}
		if fault != "ok" {
			faults = append(faults, strings.ReplaceAll(fault, "\n", "; "))
		}
	}
	return faults, rows.Err()
}
