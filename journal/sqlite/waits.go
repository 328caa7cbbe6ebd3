package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/pawlrun/pawl/journal"
)

// showing is the part of a [journal.Progress] in the table runs.
type showing struct {
	*journal.Progress
	// waits is the text of the column: "" if the run waits for nothing. Without
	// Progress.Waits it is unknown, and NULL.
	waits string
}

func showingOf(p *journal.Progress) (showing, error) {
	s := showing{Progress: p}
	if p.Waits == nil || p.Waits.Nothing() {
		return s, nil
	}
	text, err := json.Marshal(p.Waits)
	if err != nil {
		return s, fmt.Errorf("encode what the run waits for: %w", err)
	}
	s.waits = string(text)
	return s, nil
}

func (s showing) waitsOrNil() any {
	if s.Waits == nil {
		return nil
	}
	return s.waits
}

// digest returns the value of heads.shown: different for different content, and not 0.
func (s showing) digest() int64 {
	known := "-"
	if s.Waits != nil {
		known = "+"
	}
	hash := uint64(14695981039346656037) // FNV-1a
	for _, part := range [...]string{string(s.State), s.Detail, known, s.waits} {
		for i := range len(part) {
			hash = (hash ^ uint64(part[i])) * 1099511628211
		}
		hash = (hash ^ 0xff) * 1099511628211 // a byte that no text contains
	}
	for _, b := range s.Outcome {
		hash = (hash ^ uint64(b)) * 1099511628211
	}
	return int64(hash | 1)
}

func decodeWaits(column sql.NullString) (*journal.Waits, error) {
	if !column.Valid {
		return nil, nil
	}
	w := &journal.Waits{}
	if column.String == "" {
		return w, nil
	}
	if err := json.Unmarshal([]byte(column.String), w); err != nil {
		return nil, fmt.Errorf("decode what the run waits for: %w", err)
	}
	return w, nil
}

var _ journal.FillsWaits = (*Store)(nil)

const fillWaits = `
UPDATE runs SET waits = ?1 WHERE id = ?2 AND waits IS NULL AND EXISTS (SELECT 1 FROM heads WHERE heads.rid = runs.rid AND seq = ?3 AND head = ?4)`

// FillWaits sets the waits of a row that has none.
func (s *Store) FillWaits(ctx context.Context, row journal.Run, w *journal.Waits) error {
	shown, err := showingOf(&journal.Progress{Waits: w})
	if err == nil {
		err = s.write(ctx, func(c *conn) error {
			filled, err := c.exec(fillWaits, shown.waits, row.ID, row.Seq, row.Head)
			if err == nil && filled > 0 {
				_, err = c.exec(`UPDATE heads SET shown = 0 WHERE rid = (SELECT rid FROM runs WHERE id = ?1)`, row.ID)
			}
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("sqlite: set what run %s waits for: %w", row.ID, err)
	}
	return nil
}
