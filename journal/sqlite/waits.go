package sqlite

import (
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/pawlrun/pawl/journal"
)

// encodeWaits returns the text of the column waits: nil (NULL) if it is unknown
// what the run waits for, and "" if that is nothing.
func encodeWaits(w *journal.Waits) (*string, error) {
	if w == nil {
		return nil, nil
	}
	if w.Nothing() {
		return new(string), nil
	}
	text, err := json.Marshal(w)
	if err != nil {
		return nil, fmt.Errorf("encode what the run waits for: %w", err)
	}
	s := string(text)
	return &s, nil
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
