package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheNearestDirectoryIsFoundUpward(t *testing.T) {
	root := t.TempDir()
	home := filepath.Join(root, "home")
	for _, dir := range []string{
		"home/.pawl", "home/bare/deep", "home/project/.pawl", "home/project/a/b", "home/project/own/.pawl", "home/project/own/c",
		"outside/.pawl", "outside/a", ".pawl",
	} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(root, "home/project/file"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "home/project/file/.pawl"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ here, want string }{
		{"home/project", ".pawl"},
		{"home/project/a/b", "home/project/.pawl"},
		{"home/project/own/c", "home/project/own/.pawl"},
		{"home/project/file", "home/project/.pawl"},
		{"home/bare/deep", ".pawl"},
		{"home", ".pawl"},
		{"outside/a", "outside/.pawl"},
	} {
		want := tt.want
		if want != ".pawl" {
			want = filepath.Join(root, want)
		}
		if got := upward(filepath.Join(root, tt.here), home, oneFileSystem); got != want {
			t.Errorf("from %s: %s, want %s", tt.here, got, want)
		}
	}
	if err := os.RemoveAll(filepath.Join(home, ".pawl")); err != nil {
		t.Fatal(err)
	}
	if got := upward(home, home, oneFileSystem); got != ".pawl" {
		t.Errorf("from the home directory the search goes above it: %s", got)
	}
}

// A file of another user in a parent directory is not used: it could name programs.
func TestWhatIsAboveMustBelongToTheUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give a directory away")
	}
	root := t.TempDir()
	here := filepath.Join(root, "a")
	for _, dir := range []string{here, filepath.Join(root, ".pawl")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if got := upward(here, "", oneFileSystem); got != filepath.Join(root, ".pawl") {
		t.Fatalf("%s", got)
	}
	if err := os.Chown(filepath.Join(root, ".pawl"), 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if got := upward(here, "", oneFileSystem); got != ".pawl" {
		t.Errorf("took %s of another user", got)
	}
}

func TestTheSearchStaysOnItsFileSystem(t *testing.T) {
	root := t.TempDir()
	here := filepath.Join(root, "mounted", "a")
	for _, dir := range []string{here, filepath.Join(root, ".pawl")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	border := func(dir, _ string) bool { return filepath.Base(dir) != "mounted" }
	if got := upward(here, "", border); got != ".pawl" {
		t.Errorf("crossed the border to %s", got)
	}
	if !isDir("/proc/self") {
		t.Skip("the border itself is shown by /proc, which is not here")
	}
	if oneFileSystem("/proc", "/") || !oneFileSystem("/proc/self", "/proc") {
		t.Error("/proc is taken for a part of the file system that it is mounted in")
	}
}

// A command below the directory of a project is about its journal, with its
// config file, and its next step works there as it is pasted.
func TestACommandBelowAProjectHasItsJournalAndConfig(t *testing.T) {
	p := newProject(t, map[string]string{
		"agent.yaml":  "identity: {name: here}\nmodel_policy: {primary: {capability_class: quick}}\n",
		"script.yaml": "- tool_calls: [{name: shell.exec, arguments: {command: touch touched}}]\n- text: the end\n",
	})
	for _, dir := range []string{".pawl", "a", "a/b"} {
		if err := os.Mkdir(filepath.Join(p.dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	p.write(".pawl/config.yaml", "classes: {quick: "+"scripted/"+filepath.Join(p.dir, "script.yaml")+"}\n")
	below := project{t: t, dir: filepath.Join(p.dir, "a", "b"), state: p.state}
	f := below.exits(4, "run", "../../agent.yaml", "go")
	if p.exists("a/b/.pawl")() || !p.exists(".pawl/journal.db")() {
		t.Error("the journal is not that of the project")
	}
	if out := p.exits(0, "runs").out; !strings.Contains(out, "approval_required") {
		t.Errorf("the run is not in the journal of the project: %s", out)
	}
	if strings.Contains(f.err, "--journal") {
		t.Errorf("the next step names a journal that is found without: %s", f.err)
	}
	below.exits(2, "--journal", "other.db", "runs")
	if f := below.startWith([]string{"PAWL_JOURNAL=other.db"}, "runs").wait(); f.code != 2 {
		t.Errorf("a variable that names a journal does not come first: %d %s", f.code, f.out)
	}
}
