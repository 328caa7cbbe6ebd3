package shell_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/sandbox"
	"github.com/pawlrun/pawl/tool/shell"
)

// gitAlone protects .git and what is in it.
type gitAlone struct{}

func (gitAlone) Protects(path string) bool { return path == ".git" || strings.HasPrefix(path, ".git/") }
func (gitAlone) Below(dir string) bool     { return dir == "." }
func (gitAlone) Named() []string           { return []string{".git/"} }

// A command that writes a file under one of its names is judged by the
// protected ones, too, whatever tier it would run in.
func TestACommandIsJudgedByTheProtectedNamesOfAFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".git/config", "plain"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("here\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, of := range map[string]string{"innocent": ".git/config", "twin": "plain"} {
		if err := os.Link(filepath.Join(dir, of), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	sh := shell.New(shell.Options{Dir: dir, Protected: gitAlone{}})
	for command, want := range map[string][]event.PathUse{
		"echo x > innocent": {{Path: "innocent", Write: true}, {Path: ".git/config", Write: true}},
		"echo x > twin":     {{Path: "twin", Write: true}},
		"cat innocent":      {{Path: "innocent", Tree: true}},
	} {
		raw, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(want, sh.Facts(raw).Paths); diff != "" {
			t.Errorf("%s: -want +got\n%s", command, diff)
		}
	}
}

// looking counts what is looked at for something protected.
type looking struct {
	gitAlone
	at *int
}

func (l looking) Protects(path string) bool {
	*l.at++
	return l.gitAlone.Protects(path)
}

// A workspace may be full of files with other names, as some package managers make
// them, and large: it is not looked through for each of those that a command names.
func TestAWorkspaceIsLookedThroughOnceForAllThatACommandNames(t *testing.T) {
	dir, looked := t.TempDir(), 0
	if err := os.WriteFile(filepath.Join(dir, "a"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"b", "c", "d"} {
		if err := os.Link(filepath.Join(dir, "a"), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	sh := shell.New(shell.Options{Dir: dir, Protected: looking{at: &looked}})
	if paths := sh.Facts(json.RawMessage(`{"command":"rm a b c d"}`)).Paths; len(paths) != 4 || looked != 4 {
		t.Errorf("for %d files, %d were looked at", len(paths), looked)
	}
}

// gitByLink protects .git and a link that leads to the directory notes.
type gitByLink struct{ gitAlone }

func (p gitByLink) Protects(path string) bool {
	return p.gitAlone.Protects(path) || path == "link" || strings.HasPrefix(path, "link/")
}

// A sandbox opens the file itself for a command: a name that leads to it asks nothing.
func TestASandboxOpensNoNameThatLeadsThroughALink(t *testing.T) {
	for _, tier := range boxed {
		t.Run(string(tier), func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "notes"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("notes", filepath.Join(dir, "link")); err != nil {
				t.Fatal(err)
			}
			sh := shell.New(shell.Options{Dir: dir, Sandbox: boxOf(t, tier, sandbox.Policy{Workspace: dir, Protected: gitByLink{}})})
			for command, want := range map[string][]event.PathUse{
				"echo x > link/a": {{Path: "notes/a", Write: true}, {Path: "link/a", Write: true, Alias: true}},
				"rm link":         {{Path: "notes", Write: true}, {Path: "link", Write: true, Alias: true}, {Path: "link", Write: true, Protected: true}},
			} {
				raw, err := json.Marshal(map[string]string{"command": command})
				if err != nil {
					t.Fatal(err)
				}
				if diff := gocmp.Diff(want, sh.Facts(raw).Paths); diff != "" {
					t.Errorf("%s: -want +got\n%s", command, diff)
				}
			}
		})
	}
}

// The sandbox hides the directory of the link. The second command works where the first
// one did.
func TestCommandsWorkInAWorkspaceNamedByALink(t *testing.T) {
	inEveryTier(t, func(t *testing.T, newTool maker) {
		link := filepath.Join(t.TempDir(), "link")
		if err := os.Symlink(t.TempDir(), link); err != nil {
			t.Fatal(err)
		}
		sh := newTool(shell.Options{Dir: link})
		good(t, sh, "echo kept > file")
		if r := good(t, sh, "cat file"); !strings.Contains(r.Output, "kept") {
			t.Errorf("%+v", r)
		}
	})
}
