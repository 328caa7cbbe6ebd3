package sqlite

import (
	"context"
	"fmt"

	"github.com/pawlrun/pawl/journal"
)

// notes are separate from runs, so they contain no run's commands or events.
const notes = `
CREATE TABLE notes (
	id      INTEGER PRIMARY KEY AUTOINCREMENT,
	key     TEXT UNIQUE,
	at      INTEGER NOT NULL,
	expires INTEGER NOT NULL DEFAULT 0,
	body    BLOB NOT NULL
);
CREATE INDEX notes_expires ON notes (expires) WHERE expires <> 0;
`

// Note adds a note, unless there is one with its key.
func (s *Store) Note(ctx context.Context, n journal.Note) (kept journal.Note, fresh bool, err error) {
	err = s.write(ctx, func(c *conn) error {
		kept, fresh, err = c.note(n)
		return err
	})
	if err != nil {
		return kept, false, fmt.Errorf("sqlite: write a note: %w", err)
	}
	return kept, fresh, nil
}

func (c *conn) note(n journal.Note) (kept journal.Note, fresh bool, err error) {
	if _, err := c.exec(`DELETE FROM notes WHERE expires <> 0 AND expires < ?1`, nanos(n.At)); err != nil {
		return n, false, err
	}
	var key any
	if n.Key != "" {
		key = n.Key
		row, some, err := c.queryRow(`SELECT id, at, expires, body FROM notes WHERE key = ?1`, n.Key)
		if err != nil || some {
			return noteOf(n.Key, row), false, err
		}
	}
	n.ID, _, err = c.insert(`INSERT INTO notes (key, at, expires, body) VALUES (?1, ?2, ?3, ?4)`, key, nanos(n.At), nanos(n.Expires), []byte(n.Body))
	return n, true, err
}

// noteOf decodes a note from the columns id, at, expires and body.
func noteOf(key string, row []any) journal.Note {
	if len(row) != 4 {
		return journal.Note{}
	}
	id, _ := row[0].(int64)
	at, _ := row[1].(int64)
	expires, _ := row[2].(int64)
	body, _ := row[3].([]byte)
	return journal.Note{ID: id, Key: key, At: fromNanos(at), Expires: fromNanos(expires), Body: body}
}

// Amend replaces a note's body, or deletes the note if body is nil.
func (s *Store) Amend(ctx context.Context, id int64, body []byte) error {
	err := s.write(ctx, func(c *conn) error {
		query, args := `UPDATE notes SET body = ?2 WHERE id = ?1`, []any{id, body}
		if body == nil {
			query, args = `DELETE FROM notes WHERE id = ?1`, []any{id}
		}
		n, err := c.exec(query, args...)
		if err == nil && n == 0 {
			err = journal.ErrNotFound
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("sqlite: note %d: %w", id, err)
	}
	return nil
}

// Notes returns the notes without a key, newest first.
func (s *Store) Notes(ctx context.Context, before int64, limit int) ([]journal.Note, error) {
	rows, err := s.readers.QueryContext(ctx,
		`SELECT id, at, expires, body FROM notes WHERE key IS NULL AND (?1 = 0 OR id < ?1) ORDER BY id DESC LIMIT ?2`, before, limit)
	if err != nil {
		return nil, fmt.Errorf("sqlite: read notes: %w", s.cause(err))
	}
	defer rows.Close()
	var out []journal.Note
	for rows.Next() {
		var n journal.Note
		var at, expires int64
		var body []byte
		if err := rows.Scan(&n.ID, &at, &expires, &body); err != nil {
			return nil, fmt.Errorf("sqlite: read notes: %w", s.cause(err))
		}
		n.At, n.Expires, n.Body = fromNanos(at), fromNanos(expires), body
		out = append(out, n)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("sqlite: read notes: %w", s.cause(err))
	}
	return out, nil
}
