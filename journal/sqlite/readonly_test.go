package sqlite_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/journaltest"
	"github.com/pawlrun/pawl/journal/sqlite"
)

// Permissions do not bind root, so a test of them runs in a process of another user.
func TestAJournalThatCannotBeWrittenIsReadAndSaysSo(t *testing.T) {
	for name, c := range map[string]struct {
		file, dir os.FileMode
		want      error
	}{
		"all allowed":           {0o600, 0o700, nil},
		"a read-only file":      {0o400, 0o700, journal.ErrReadOnly},
		"a read-only directory": {0o600, 0o500, journal.ErrReadOnly},
		"both":                  {0o400, 0o500, journal.ErrReadOnly},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "journal")
			path := filepath.Join(dir, "journal.db")
			s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			d := journaltest.Start(t, s, "a")
			d.Append(t, texts(5)...)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(os.Chmod(path, c.file), os.Chmod(dir, c.dir)); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
			cmd := child(t, "read", path)
			if os.Geteuid() == 0 {
				const nobody = 65534
				giveAway(t, dir, nobody)
				cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", asUser, nobody))
			}
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			want := "writing: <nil>\n"
			if c.want != nil {
				want = "writing: " + c.want.Error() + "\n"
			}
			if got := string(out); got != "reading: 6 events\n"+want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// giveAway makes another user the owner of a directory and its content.
func giveAway(t *testing.T, dir string, uid int) {
	t.Helper()
	for up := filepath.Dir(dir); strings.HasPrefix(up, os.TempDir()+string(filepath.Separator)); up = filepath.Dir(up) {
		if err := os.Chmod(up, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(names, dir) {
		if err := os.Chown(name, uid, uid); err != nil {
			t.Fatal(err)
		}
	}
}
