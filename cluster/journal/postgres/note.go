package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/pawlrun/pawl/journal"
)

// insertNote returns no row if there is a note with the key. If another process is
// inserting such a note, it waits for that process.
const insertNote = `
INSERT INTO @notes (key, at, expires, body) VALUES (nullif($1, ''), $2, $3, $4) ON CONFLICT (key) DO NOTHING RETURNING id`

// Note adds a note, unless there is one with its key. After an error, the note may
// exist nevertheless if the connection was lost.
func (s *Store) Note(ctx context.Context, n journal.Note) (kept journal.Note, fresh bool, err error) {
	err = journal.ErrReadOnly
	if s.writer != nil {
		err = s.try(ctx, false, func(ctx context.Context) error {
			return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
				kept, fresh, err = s.note(ctx, tx, n)
				return err
			})
		})
	}
	if err != nil {
		return n, false, fmt.Errorf("postgres: write a note: %w", err)
	}
	return kept, fresh, nil
}

func (s *Store) note(ctx context.Context, tx pgx.Tx, n journal.Note) (kept journal.Note, fresh bool, err error) {
	if _, err := tx.Exec(ctx, s.config.at(`DELETE FROM @notes WHERE expires <> 0 AND expires < $1`), nanos(n.At)); err != nil {
		return n, false, err
	}
	body := append([]byte{}, n.Body...)
	err = tx.QueryRow(ctx, s.config.at(insertNote), n.Key, nanos(n.At), nanos(n.Expires), body).Scan(&n.ID)
	if !errors.Is(err, pgx.ErrNoRows) {
		return n, err == nil, err
	}
	kept.Key = n.Key
	var at, expires int64
	err = tx.QueryRow(ctx, s.config.at(`SELECT id, at, expires, body FROM @notes WHERE key = $1`), n.Key).Scan(&kept.ID, &at, &expires, (*[]byte)(&kept.Body))
	kept.At, kept.Expires = fromNanos(at), fromNanos(expires)
	return kept, false, err
}

// Amend replaces a note's body, or deletes the note if body is nil.
func (s *Store) Amend(ctx context.Context, id int64, body []byte) error {
	sql, args := `UPDATE @notes SET body = $2 WHERE id = $1 RETURNING id`, []any{id, body}
	if body == nil {
		sql, args = `DELETE FROM @notes WHERE id = $1 RETURNING id`, []any{id}
	}
	if err := s.write(ctx, body != nil, sql, args, &id); err != nil {
		return fmt.Errorf("postgres: note %d: %w", id, err)
	}
	return nil
}

// Notes returns the notes without a key, newest first.
func (s *Store) Notes(ctx context.Context, before int64, limit int) ([]journal.Note, error) {
	scan := func(row pgx.CollectableRow) (n journal.Note, err error) {
		var at, expires int64
		err = row.Scan(&n.ID, &at, &expires, (*[]byte)(&n.Body))
		n.At, n.Expires = fromNanos(at), fromNanos(expires)
		return n, err
	}
	notes, err := collect(ctx, s, scan,
		`SELECT id, at, expires, body FROM @notes WHERE key IS NULL AND ($1 = 0 OR id < $1) ORDER BY id DESC LIMIT $2`, before, limit)
	if err != nil {
		return nil, fmt.Errorf("postgres: read notes: %w", err)
	}
	return notes, nil
}
