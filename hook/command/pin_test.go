package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/pawlrun/pawl/hook/command"
)

// place puts files into a directory: those whose names end in * may be run.
func place(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		program, runs := strings.CutSuffix(name, "*")
		path, mode := filepath.Join(dir, program), os.FileMode(0o644)
		if runs {
			mode = 0o755
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheProgramsAndScriptsOfAHookArePinnedAndItsDataAreNot(t *testing.T) {
	dir := t.TempDir()
	place(t, dir, map[string]string{
		"bin/tool*": "#!/bin/sh\n", "guard*": "#!/bin/sh\n", "check.py": "pass\n", "marked": "#!/bin/sh\n", "log.txt": "x\n", "venv/keep": "",
	})
	for _, c := range []struct {
		name    string
		command command.Command
		want    []string
	}{
		{"a program by its path", command.Command{Words: []string{"./guard", "log.txt"}}, []string{"guard"}},
		{"a program by $PATH", command.Command{Words: []string{"tool"}}, []string{"venv/tool", "bin/tool"}},
		{"a script of an interpreter", command.Command{Words: []string{"/usr/bin/python3", "-u", "./check.py", "./log.txt"}}, []string{"check.py"}},
		{"an interpreter behind env", command.Command{Words: []string{"/usr/bin/env", "tool", "./check.py"}}, []string{"venv/tool", "bin/tool"}},
		{"a script by its first line", command.Command{Words: []string{"/bin/true", "./marked"}}, []string{"marked"}},
		{"a line", command.Command{Line: `/bin/sh "$PAWL_AGENT_DIR/check.py" < ./log.txt | ./guard`}, []string{"check.py", "guard"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.command.FileDir, c.command.Workspace = dir, dir
			c.command.Env = []string{"PATH=" + filepath.Join(dir, "venv") + ":" + filepath.Join(dir, "bin")}
			pins, err := c.command.Pins()
			if err != nil {
				t.Fatal(err)
			}
			got := []string{}
			for _, p := range pins {
				if strings.HasPrefix(p.Path, "/usr/bin/") {
					t.Errorf("the system's %s is pinned", p.Path)
				}
				if rel, err := filepath.Rel(dir, p.Path); err == nil && filepath.IsLocal(rel) {
					got = append(got, rel)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A command that runs beside no boundary could put a program of its own in the
// place of the owner's gate.
//
// rows: ALF-64
func TestAHookWhoseProgramHasChangedFails(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, dir string){
		"its script is another":          func(t *testing.T, dir string) { place(t, dir, map[string]string{"guard*": "#!/bin/sh\nexit 0\n"}) },
		"its script is gone":             func(_ *testing.T, dir string) { _ = os.Remove(filepath.Join(dir, "guard")) },
		"a program would be found first": func(t *testing.T, dir string) { place(t, dir, map[string]string{"venv/tool*": "#!/bin/sh\n"}) },
		"a link leads to another directory": func(_ *testing.T, dir string) {
			_ = os.Remove(filepath.Join(dir, "bin"))
			_ = os.Symlink("other", filepath.Join(dir, "bin"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			place(t, dir, map[string]string{"real/tool*": "#!/bin/sh\nexit 2\n", "other/tool*": "#!/bin/sh\n", "guard*": "#!/bin/sh\ntool\n", "venv/keep": ""})
			if err := os.Symlink("real", filepath.Join(dir, "bin")); err != nil {
				t.Fatal(err)
			}
			c := command.Command{
				Line: `"$PAWL_AGENT_DIR/guard" | tool`, FileDir: dir, Workspace: dir,
				Env: []string{"PATH=" + filepath.Join(dir, "venv") + ":" + filepath.Join(dir, "bin") + ":/usr/bin:/bin"},
			}
			pins, err := c.Pins()
			if err != nil {
				t.Fatal(err)
			}
			run := c.Pinned(pins)
			for range 2 {
				if a, err := run(t.Context(), before); err != nil || a.Decision != "block" {
					t.Fatalf("as it was: %+v, %v", a, err)
				}
			}
			change(t, dir)
			if a, err := run(t.Context(), before); err == nil || !strings.Contains(err.Error(), "is not what it was when the run began") {
				t.Errorf("after the change: %+v, %v", a, err)
			}
		})
	}
}

// A word of the line may be the name of a directory that $PATH leads to.
func TestADirectoryIsNoProgramUntilThereIsOne(t *testing.T) {
	dir := t.TempDir()
	place(t, dir, map[string]string{"lint/rules": "x\n"})
	c := command.Command{Line: "echo lint; exit 2", FileDir: dir, Workspace: dir, Env: []string{"PATH=.:/usr/bin:/bin"}}
	pins, err := c.Pins()
	if err != nil {
		t.Fatal(err)
	}
	run := c.Pinned(pins)
	if a, err := run(t.Context(), before); err != nil || a.Decision != "block" {
		t.Errorf("with the directory: %+v, %v", a, err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "lint")); err != nil {
		t.Fatal(err)
	}
	place(t, dir, map[string]string{"lint*": "#!/bin/sh\n"})
	if a, err := run(t.Context(), before); err == nil {
		t.Errorf("with a program in its place: %+v", a)
	}
}

// Who has a file mapped changes what it holds and leaves its times as they were.
func TestAChangeThatNoTimeTellsOfIsSeen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	place(t, dir, map[string]string{"guard": "echo no >&2; exit 2\n"})
	c := command.Command{Words: []string{"/bin/sh", "./guard"}, FileDir: dir, Workspace: dir}
	pins, err := c.Pins()
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "guard"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	script, err := unix.Mmap(int(f.Fd()), 0, len("exit 0 #"), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(script) }()
	copy(script, "echo no ")            // the write that a time tells of
	time.Sleep(2100 * time.Millisecond) // that time is old by now
	run := c.Pinned(pins)
	if a, err := run(t.Context(), before); err != nil || a.Decision != "block" {
		t.Fatalf("as it was: %+v, %v", a, err)
	}
	copy(script, "exit 0 #")
	if a, err := run(t.Context(), before); err == nil {
		t.Errorf("after the change: %+v", a)
	}
}

// Between the look at a program and its start another call may put one in its place.
func TestHookFailsIfItsProgramChangesDuringTheCall(t *testing.T) {
	dir := t.TempDir()
	place(t, dir, map[string]string{"guard*": "#!/bin/sh\necho 'exit 0' > \"$PAWL_AGENT_DIR/new\"; mv \"$PAWL_AGENT_DIR/new\" \"$0\"\n"})
	c := command.Command{Words: []string{"./guard"}, FileDir: dir, Workspace: dir}
	pins, err := c.Pins()
	if err != nil {
		t.Fatal(err)
	}
	if a, err := c.Pinned(pins)(t.Context(), before); err == nil || !strings.Contains(err.Error(), "is not what it was") {
		t.Errorf("got %+v, %v", a, err)
	}
}
