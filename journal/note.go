package journal

import (
	"encoding/json"
	"time"
)

// Note is what a server keeps beside the runs: what it was asked under a key of the
// client's, and whom it has refused what.
type Note struct {
	// ID counts notes from 1; the store gives it.
	ID int64 `json:"id"`
	// Key is that of one note at most; any number have none.
	Key string    `json:"-"`
	At  time.Time `json:"at"`
	// Expires is when the note goes, with the first that is made after it.
	Expires time.Time       `json:"-"`
	Body    json.RawMessage `json:"body"`
}
