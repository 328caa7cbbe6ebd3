package cli

import (
	"database/sql"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	_ "modernc.org/sqlite"
)

// asNobody runs pawl as a user who owns nothing here, so that permissions
// count also where the tests run as root.
func (p project) asNobody(code int, args ...string) finished {
	p.t.Helper()
	cmd := p.command(args...)
	if os.Getuid() == 0 {
		cmd.Path = p.publicBinary(cmd.Path)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	f := p.begin(cmd).wait()
	if f.code != code {
		p.t.Fatalf("pawl %s: exit code %d, want %d\nstdout: %s\nstderr: %s", strings.Join(args, " "), f.code, code, f.out, f.err)
	}
	return f
}

// publicBinary copies the binary to where everybody may run it.
func (p project) publicBinary(path string) string {
	p.t.Helper()
	to := filepath.Join(p.dir, "bin", filepath.Base(path))
	if _, err := os.Stat(to); err == nil {
		return to
	}
	for _, args := range [][]string{
		{"mkdir", filepath.Dir(to)}, {"cp", path, to}, {"chmod", "755", to, filepath.Dir(to), p.dir, filepath.Dir(p.dir)},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			p.t.Fatalf("%v: %s", err, out)
		}
	}
	return to
}

// greeter is a run that is over at once.
func greeter(t *testing.T) project {
	return newProject(t, map[string]string{
		"agent.yaml":  "identity: {name: greeter}\nmodel_policy: {primary: {model: scripted/script.yaml}}\ntools: {allow: []}\n",
		"script.yaml": "- text: hello\n",
	})
}

// readOnly makes the project's files readable for all users and writable for none.
func (p project) readOnly() {
	p.t.Helper()
	if out, err := exec.Command("chmod", "-R", "a+rX,a-w", p.dir).CombinedOutput(); err != nil {
		p.t.Fatalf("%v: %s", err, out)
	}
	p.t.Cleanup(func() { _ = exec.Command("chmod", "-R", "u+w", p.dir).Run() })
}

func TestAReadOnlyJournalCanBeReadAndSaysThatItCannotBeWritten(t *testing.T) {
	p := greeter(t)
	p.exits(0, "run", "agent.yaml", "hi")
	id := p.newest()
	if os.Getuid() == 0 {
		p.publicBinary(p.command().Path)
	}
	p.readOnly()
	if f := p.asNobody(0, "runs"); !strings.HasPrefix(f.out, id) {
		t.Errorf("list: %q", f.out)
	}
	p.asNobody(0, "runs", "show", id)
	p.asNobody(0, "runs", "verify", id)
	if f := p.asNobody(0, "runs", "events", id); strings.Count(f.out, "\n") < 5 {
		t.Errorf("events: %q", f.out)
	}
	for _, args := range [][]string{{"run", "agent.yaml", "hi"}, {"runs", "rm", id}} {
		if f := p.asNobody(1, args...); !strings.Contains(f.err, "cannot be written") || !strings.Contains(f.err, "--journal") {
			t.Errorf("%v: %q", args, f.err)
		}
	}
}

func TestAJournalThatCannotBeMadeIsNamed(t *testing.T) {
	p := greeter(t)
	if os.Getuid() == 0 {
		p.publicBinary(p.command().Path)
	}
	p.readOnly()
	f := p.asNobody(1, "run", "agent.yaml", "hi")
	if !strings.Contains(f.err, "cannot be written") || !strings.Contains(f.err, "--journal") {
		t.Errorf("stderr %q", f.err)
	}
}

func TestWhatIsNoPathOfAFileIsNoJournal(t *testing.T) {
	p := greeter(t)
	before := names(t, p.dir)
	for path, why := range map[string]string{
		"": "is empty", ":memory:": "is a name of SQLite's", "file:j.db?mode=memory": "one of that name is ./file:j.db?mode=memory",
		"runs/": "is a directory's path",
	} {
		for _, args := range [][]string{{"run", "agent.yaml", "hi"}, {"runs"}, {"runs", "cancel", "x"}, {"serve", "--addr", "127.0.0.1:0"}} {
			if f := p.exits(2, append(args, "--journal", path)...); !strings.Contains(f.err, why) || !strings.Contains(f.err, "--journal or $PAWL_JOURNAL") {
				t.Errorf("%v with the journal %q: %q", args, path, f.err)
			}
		}
		if f := p.exits(1, "doctor", "--journal", path); !strings.Contains(f.out, why) {
			t.Errorf("doctor with the journal %q: %q", path, f.out)
		}
	}
	if diff := cmp.Diff(before, names(t, p.dir)); diff != "" {
		t.Errorf("something was left (-before +after)\n%s", diff)
	}
	p.exits(0, "run", "agent.yaml", "hi", "--journal", "./:memory:")
	if f := p.exits(0, "runs", "--journal", "./:memory:"); !strings.Contains(f.out, "final_answer") {
		t.Errorf("a file that is called so is none: %q", f.out)
	}
}

// names are those in a directory.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestAJournalOfANewerVersionIsLeftAlone(t *testing.T) {
	p := greeter(t)
	p.exits(0, "run", "agent.yaml", "hi")
	p.sql("PRAGMA user_version = 999")
	for _, args := range [][]string{{"run", "agent.yaml", "hi"}, {"runs"}} {
		if f := p.exits(2, args...); !strings.Contains(f.err, "newer version of Pawl") || !strings.Contains(f.err, "journal.db") {
			t.Errorf("%v: %q", args, f.err)
		}
	}
}

func TestAFileThatIsNoJournalIsLeftAlone(t *testing.T) {
	p := greeter(t)
	const content = "this is somebody's diary, and not a journal of runs"
	p.write("diary.txt", content)
	for _, args := range [][]string{{"run", "agent.yaml", "hi"}, {"runs"}} {
		if f := p.exits(2, append(args, "--journal", "diary.txt")...); !strings.Contains(f.err, "not a journal") {
			t.Errorf("%v: %q", args, f.err)
		}
	}
	if p.read("diary.txt") != content {
		t.Error("the file was changed")
	}
}

func TestLockedJournalIsReported(t *testing.T) {
	p := greeter(t)
	p.exits(0, "run", "agent.yaml", "hi")
	db := p.open()
	defer db.Close()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	if f := p.exits(1, "run", "agent.yaml", "hi"); !strings.Contains(f.err, "locked by another process") {
		t.Errorf("stderr %q", f.err)
	}
	p.exits(0, "runs")
}

func TestAnEditedJournalIsFoundOut(t *testing.T) {
	p := greeter(t)
	p.exits(0, "run", "agent.yaml", "hi")
	id := p.newest()
	p.sql("UPDATE commits SET body = replace(body, 'hello', 'jello')")
	if f := p.exits(1, "runs", "verify", id); !strings.Contains(f.out, "journal checksum does NOT match") {
		t.Errorf("stdout %q", f.out)
	}
	p.exits(1, "runs", "verify", "--all")
}

// A list shows the run's row, so that is held to the events as well.
func TestAnEditedListIsFoundOut(t *testing.T) {
	p := greeter(t)
	p.exits(0, "run", "agent.yaml", "hi")
	p.exits(0, "runs", "verify", "--all")
	p.sql(`UPDATE runs SET outcome = replace(outcome, '"ok":true', '"ok":false')`)
	if f := p.exits(1, "runs", "verify", "--all"); !strings.Contains(f.out, "the run's outcome is not that of its last event") {
		t.Errorf("stdout %q", f.out)
	}
}

// The output lists what was deleted, even if the rest could not be.
func TestARemovalThatIsCutShortSaysWhatItRemoved(t *testing.T) {
	p := greeter(t)
	p.exits(0, "run", "agent.yaml", "first")
	first := p.newest()
	p.exits(0, "run", "agent.yaml", "second")
	second := p.newest()
	p.sql("CREATE TRIGGER stays BEFORE DELETE ON runs WHEN old.id = '" + first + "' BEGIN SELECT RAISE(ABORT, 'it stays'); END")
	f := p.exits(1, "runs", "prune", "--older-than", "0s")
	if f.out != "removed "+second+"\n" || !strings.Contains(f.err, "it stays") {
		t.Errorf("stdout %q, stderr %q", f.out, f.err)
	}
	p.exits(0, "runs", "show", first)
}

func TestInterruptedRemovalReportsWhatItRemoved(t *testing.T) {
	p := greeter(t)
	var ids [3]string
	for i := range ids {
		p.exits(0, "run", "agent.yaml", "hi")
		ids[i] = p.newest()
	}
	root, child, grandchild := ids[0], ids[1], ids[2]
	p.sql("UPDATE runs SET parent = '" + root + "' WHERE id = '" + child + "'")
	p.sql("UPDATE runs SET parent = '" + child + "' WHERE id = '" + grandchild + "'")
	p.sql("CREATE TRIGGER stays BEFORE DELETE ON runs WHEN old.id = '" + child + "' BEGIN SELECT RAISE(ABORT, 'it stays'); END")
	f := p.exits(1, "runs", "rm", root)
	if f.out != "removed "+grandchild+"\n" || !strings.Contains(f.err, "it stays") {
		t.Errorf("stdout %q, stderr %q", f.out, f.err)
	}
	p.exits(0, "runs", "show", child)
}

// A damage beside the runs leaves each of them sound.
func TestADamagedFileIsFoundOut(t *testing.T) {
	p := greeter(t)
	p.exits(0, "run", "agent.yaml", "hi")
	p.sql(`DELETE FROM runs`)
	for _, args := range [][]string{{"runs", "verify", "--all"}, {"runs", "verify", "--all", "--json"}} {
		if f := p.exits(1, args...); !strings.Contains(f.out, "events belong to no run") {
			t.Errorf("%q prints %q", args, f.out)
		}
	}
}

func (p project) open() *sql.DB {
	p.t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(p.dir, ".pawl", "journal.db")+"?_pragma=busy_timeout(5000)")
	if err != nil {
		p.t.Fatal(err)
	}
	return db
}

func (p project) sql(statement string) {
	p.t.Helper()
	db := p.open()
	defer db.Close()
	if _, err := db.ExecContext(p.t.Context(), statement); err != nil {
		p.t.Fatal(err)
	}
}
