package journal

import (
	"encoding/json"
	"time"
)

// Note is a record of a server that belongs to no run: a request with a client's key,
// or a refused request.
type Note struct {
	// ID counts notes from 1; the store assigns it.
	ID int64 `json:"id"`
	// Key is unique among notes that have one.
	Key string    `json:"-"`
	At  time.Time `json:"at"`
	// Expires is when the note expires; the next new note then deletes it.
	Expires time.Time       `json:"-"`
	Body    json.RawMessage `json:"body"`
}
