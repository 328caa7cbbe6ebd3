// Package crash kills the real binary and looks at what is left.
package crash

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/sqlite"
)

// pawl is the binary under test, built once by TestMain.
var pawl string

func TestMain(m *testing.M) {
	for name, of := range map[string]func(dir string) owner{
		familyDir: func(dir string) owner { return familyOf(dir) }, itemsDir: func(dir string) owner { return itemsOf(dir) },
	} {
		if dir := os.Getenv(name); dir != "" {
			if err := playFamily(dir, of(dir)); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "pawl-crash")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(dir)
	pawl = filepath.Join(dir, "pawl")
	if out, err := exec.Command("go", "build", "-o", pawl, "github.com/pawlrun/pawl/cmd/pawl").CombinedOutput(); err != nil {
		fmt.Printf("build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// world is a directory with an agent, its script and its journal.
type world struct {
	dir string
}

// newWorld makes an agent that may use the shell and read files, and whose
// model plays a script.
func newWorld(t *testing.T, script string) world {
	t.Helper()
	w := world{dir: t.TempDir()}
	w.write(t, "agent.yaml", `
identity: {name: crash}
model_policy: {primary: {model: scripted/script.yaml}}
tools: {allow: [shell.exec, fs.read]}
`)
	w.write(t, "script.yaml", script)
	return w
}

func (w world) path(name string) string { return filepath.Join(w.dir, name) }

func (w world) write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(w.path(name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// read returns a file's content, "" when it is not there.
func (w world) read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(w.path(name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(data)
}

// await waits for a file that another process makes.
func (w world) await(t *testing.T, name string) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(2 * time.Millisecond) {
		if _, err := os.Stat(w.path(name)); err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("nobody made %s", name)
		}
	}
}

func (w world) command(args ...string) *exec.Cmd {
	cmd := exec.Command(pawl, args...)
	cmd.Dir = w.dir
	return cmd
}

// look opens the journal for reading; ok is false if it does not exist yet.
func (w world) look(t *testing.T, do func(s journal.Store)) (ok bool) {
	t.Helper()
	path := w.path(".pawl/journal.db")
	if info, err := os.Stat(path); err != nil || info.Size() == 0 {
		return false
	}
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{ReadOnly: true})
	if errors.Is(err, fs.ErrNotExist) {
		return false // killed between the file and its tables
	}
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	do(s)
	return true
}

// theRun returns the one run of the journal and its events, and whether there
// is one.
func (w world) theRun(t *testing.T) (row journal.Run, records []journal.Record, ok bool) {
	t.Helper()
	w.look(t, func(s journal.Store) {
		rows, err := s.Runs(t.Context(), journal.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) > 1 {
			t.Fatalf("%d runs, want one", len(rows))
		}
		if len(rows) == 0 {
			return
		}
		row, ok = rows[0], true
		if records, err = s.Records(t.Context(), row.ID, 0, 0); err != nil {
			t.Fatal(err)
		}
		if v, err := journal.Verify(t.Context(), s, row.ID, row.Head); err != nil || v.Events != int64(len(records)) {
			t.Fatalf("verify: %+v of %d events, %v", v, len(records), err)
		}
	})
	return row, records, ok
}

// decode gives the events of a run's records.
func decode(t *testing.T, records []journal.Record) []*event.Event {
	t.Helper()
	events := make([]*event.Event, len(records))
	for i, r := range records {
		e, err := event.Decode(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		events[i] = e
	}
	return events
}

// published returns the durable events that a process printed whole, by seq.
func published(t *testing.T, out []byte) map[int64]*event.Event {
	t.Helper()
	seen := map[int64]*event.Event{}
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e event.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			continue // the line that the kill cut
		}
		if e.Seq > 0 {
			seen[e.Seq] = &e
		}
	}
	return seen
}
