package sqlite_test

import (
	"bytes"
	"database/sql"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/journaltest"
	"github.com/pawlrun/pawl/journal/sqlite"
)

// A process that is killed while it makes a file a journal, or changes its
// mode, leaves a rollback log. A reader must not be stopped by it.
func TestAReaderRecoversWhatAKilledWriterLeft(t *testing.T) {
	dir := t.TempDir()
	path, left := filepath.Join(dir, "a.db"), filepath.Join(dir, "left.db")
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	interruptedWrite(t, path, left)
	reader, err := sqlite.Open(t.Context(), left, sqlite.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if runs, err := reader.Runs(t.Context(), journal.Filter{}); err != nil || len(runs) != 0 {
		t.Errorf("%d runs: %v", len(runs), err)
	}
}

// interruptedWrite copies the file at path in the middle of a transaction that
// has already changed it, with its rollback log.
func interruptedWrite(t *testing.T, path, left string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, q := range []string{
		"PRAGMA journal_mode = DELETE", "PRAGMA cache_size = 1", "PRAGMA synchronous = FULL", "BEGIN IMMEDIATE",
		"CREATE TABLE unfinished (b BLOB)",
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) INSERT INTO unfinished SELECT randomblob(4000) FROM n",
	} {
		if _, err := db.ExecContext(t.Context(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
	for _, suffix := range []string{"", "-journal"} {
		data, err := os.ReadFile(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(left+suffix, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
}

// SQLite copies a rollback log into the file beside it, so a foreign log could change
// the journal.
func TestARollbackLogThatIsNotTheJournalsOwnIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	journaltest.Start(t, s, "original").Append(t, texts(1)...)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	forge(t, path, "original", "imposter")
	for _, readOnly := range []bool{true, false} {
		s, err := sqlite.Open(t.Context(), path, sqlite.Options{ReadOnly: readOnly})
		if err == nil {
			runs, _ := s.Runs(t.Context(), journal.Filter{})
			t.Errorf("read-only %t: the journal opens and has %+v", readOnly, runs)
			s.Close()
		} else if !strings.Contains(err.Error(), path+"-journal, which Pawl does not write") {
			t.Errorf("read-only %t: %v", readOnly, err)
		}
	}
	if err := os.Remove(path + "-journal"); err != nil {
		t.Fatal(err)
	}
	if runs, err := open(t, path).Runs(t.Context(), journal.Filter{}); err != nil || len(runs) != 1 || runs[0].ID != "original" {
		t.Errorf("afterwards it has %+v: %v", runs, err)
	}
}

// forge puts a rollback log beside a journal that changes a word in it (SQLite,
// "Database File Format", 3).
func forge(t *testing.T, path, from, to string) {
	t.Helper()
	const page, sector, nonce = 4096, 512, 7
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var count uint32
	var pages []byte
	for i, rest := uint32(1), data; len(rest) > 0; i, rest = i+1, rest[page:] {
		if !bytes.Contains(rest[:page], []byte(from)) {
			continue
		}
		changed := bytes.ReplaceAll(rest[:page], []byte(from), []byte(to))
		sum := uint32(nonce)
		for at := page - 200; at > 0; at -= 200 {
			sum += uint32(changed[at])
		}
		pages = append(binary.BigEndian.AppendUint32(pages, i), changed...)
		pages = binary.BigEndian.AppendUint32(pages, sum)
		count++
	}
	log := []byte{0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7}
	for _, n := range []uint32{count, nonce, uint32(len(data) / page), sector, page} {
		log = binary.BigEndian.AppendUint32(log, n)
	}
	log = append(log, make([]byte, sector-len(log))...)
	if err := os.WriteFile(path+"-journal", append(log, pages...), 0o600); err != nil {
		t.Fatal(err)
	}
}
