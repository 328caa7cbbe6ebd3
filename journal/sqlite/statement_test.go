package sqlite_test

import (
	"bytes"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/journal"
)

func TestSQLiteGivesBackTheValuesThatItWasGiven(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "journal.db"))
	for name, value := range map[string]any{
		"the smallest number":    int64(math.MinInt64),
		"the largest number":     int64(math.MaxInt64),
		"nothing":                nil,
		"no text":                "",
		"text":                   "grüße\nto all",
		"text with a zero in it": "before\x00after",
		"text that is no UTF-8":  "\xff\xfe",
		"no bytes":               []byte{},
		"bytes":                  []byte{0, 1, 254, 255},
		"more than one page":     bytes.Repeat([]byte("0123456789abcdef"), 4096),
		"a long text":            strings.Repeat("long ", 50_000),
	} {
		t.Run(name, func(t *testing.T) {
			row, err := s.Query(`SELECT ?1, ?2, typeof(?1)`, value, int64(7))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]any{value, int64(7)}, row[:2]); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAStatementThatFailedIsAsGoodAsNew(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "journal.db"))
	const once = `INSERT INTO blobs (digest, bytes) VALUES (?1, ?2) RETURNING digest`
	for _, try := range []struct {
		digest any
		bytes  any
		ok     bool
	}{
		{"a", []byte("1"), true},
		{"a", []byte("1"), false}, // there is one
		{"b", nil, false},         // NULL is none
		{"b", 1.5, false},         // no type of ours
		{"b", []byte{}, true},
	} {
		row, err := s.Query(once, try.digest, try.bytes)
		if (err == nil) != try.ok || try.ok && row[0] != try.digest {
			t.Errorf("%v, %v: %v, %v", try.digest, try.bytes, row, err)
		}
	}
	row, err := s.Query(`SELECT group_concat(digest || ':' || length(bytes)) FROM blobs`)
	if err != nil || row[0] != "a:1,b:0" {
		t.Errorf("stored are %v, %v", row, err)
	}
}

func TestAnErrorSaysWhatSQLiteSays(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "journal.db"))
	_, err := s.Query(`SELECT body FROM nowhere`)
	if err == nil || !strings.Contains(err.Error(), "no such table: nowhere (1)") || errors.Is(err, journal.ErrIO) {
		t.Errorf("got %v", err)
	}
}
