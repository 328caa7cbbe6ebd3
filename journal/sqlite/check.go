package sqlite

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pawlrun/pawl/journal"
)

// mostFaults bounds the faults that Check reports.
const mostFaults = 5

// Check reads the whole file and checks its pages and indexes, and that every event
// has a run. [journal.Verify] checks the runs themselves. A damaged file is a
// [journal.ErrCorrupt]. It may take long and blocks no writes.
func (s *Store) Check(ctx context.Context) error {
	faults, err := s.integrity(ctx, "integrity_check")
	if err == nil && len(faults) == 0 && s.queries.ownerless != "" {
		var n int
		err = s.readers.QueryRowContext(ctx, s.queries.ownerless).Scan(&n)
		if n > 0 {
			faults = []string{fmt.Sprintf("%d events belong to no run", n)}
		}
	}
	if err != nil {
		return fmt.Errorf("sqlite: check the file: %w", s.cause(err))
	}
	if len(faults) > 0 {
		return fmt.Errorf("sqlite: %w: %s", journal.ErrCorrupt, strings.Join(faults, "; "))
	}
	return nil
}

// CheckPages is the part of [Store.Check] that reads each page once. It stops after
// patience without an error, because a large file takes longer.
func (s *Store) CheckPages(ctx context.Context, patience time.Duration) error {
	within, stop := context.WithTimeout(ctx, patience)
	defer stop()
	switch faults, err := s.integrity(within, "quick_check"); {
	case err != nil && within.Err() != nil && ctx.Err() == nil:
		return nil
	case err != nil:
		return fmt.Errorf("sqlite: check the file: %w", s.cause(err))
	case len(faults) > 0:
		return fmt.Errorf("sqlite: %w: %s", journal.ErrCorrupt, strings.Join(faults, "; "))
	}
	return nil
}

// integrity returns the faults that one of SQLite's checks finds.
func (s *Store) integrity(ctx context.Context, check string) ([]string, error) {
	rows, err := s.readers.QueryContext(ctx, fmt.Sprintf("PRAGMA %s(%d)", check, mostFaults))
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
