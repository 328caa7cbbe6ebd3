//go:build linux && (amd64 || arm64)

package pawl_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/host/sandbox"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/shell"
)

var (
	shim sandbox.Shim
	// machine is what this machine can do.
	machine = sync.OnceValue(func() *sandbox.Machine { return sandbox.Detect(context.Background(), shim) })
)

func TestMain(m *testing.M) {
	shim = sandbox.Main()
	cache, err := os.MkdirTemp("", "cache-*")
	if err != nil {
		panic(err)
	}
	os.Setenv("XDG_CACHE_HOME", cache)
	code := m.Run()
	os.RemoveAll(cache)
	os.Exit(code)
}

// inEveryBox runs a test in each tier that holds something.
func inEveryBox(t *testing.T, test func(t *testing.T, open func(sandbox.Policy) tool.Tool)) {
	for _, tier := range slices.DeleteFunc(sandbox.Tiers(), func(t sandbox.Tier) bool { return t == sandbox.None }) {
		t.Run(string(tier), func(t *testing.T) {
			for _, f := range machine().Findings() {
				if f.Tier == tier && !f.Works {
					t.Skipf("the tier %s does not work here: %s", tier, f.Why)
				}
			}
			test(t, func(p sandbox.Policy) tool.Tool {
				b, err := machine().Open(tier, p)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { b.Close() })
				return shell.New(shell.Options{Dir: p.Workspace, Sandbox: b})
			})
		})
	}
}

// keeps protects some patterns.
type keeps []policy.Pattern

func (k keeps) Protects(path string) bool {
	return k.any(func(p policy.Pattern) bool { return p.Guards(path) })
}
func (k keeps) Below(dir string) bool {
	return k.any(func(p policy.Pattern) bool { return p.Below(dir) })
}
func (k keeps) Named() []string {
	var names []string
	for _, p := range k {
		names = append(names, strings.TrimSuffix(string(p), "**"))
	}
	return names
}

func (k keeps) any(is func(policy.Pattern) bool) bool {
	for _, p := range k {
		if is(p) {
			return true
		}
	}
	return false
}

func TestARunDoesNotStartWhereItsSandboxLeavesTheJournalOpen(t *testing.T) {
	for name, c := range map[string]struct {
		journal string
		policy  func(p place) sandbox.Policy
		refused bool
		// compared: a tier that only compares what is protected leaves it open.
		compared bool
	}{
		"in the workspace":               {"work/journal.db", func(place) sandbox.Policy { return sandbox.Policy{} }, true, false},
		"in a .pawl that it leaves open": {"work/.pawl/journal.db", func(place) sandbox.Policy { return sandbox.Policy{} }, true, false},
		"in a .pawl that it protects":    {"work/.pawl/journal.db", func(place) sandbox.Policy { return sandbox.Policy{Protected: keeps(policy.Builtin())} }, false, true},
		"in what it protects":            {"work/data/journal.db", func(place) sandbox.Policy { return sandbox.Policy{Protected: keeps{"data/**"}} }, false, true},
		"in what it hides": {"work/data/journal.db", func(p place) sandbox.Policy {
			return sandbox.Policy{Hidden: []string{filepath.Join(p.work, "data")}}
		}, false, false},
		"with the file alone hidden": {"work/journal.db", func(p place) sandbox.Policy {
			return sandbox.Policy{Hidden: []string{filepath.Join(p.work, "journal.db")}}
		}, true, false},
		"beside the workspace": {"aside/journal.db", func(place) sandbox.Policy { return sandbox.Policy{} }, false, false},
		"anywhere, where everything may be written": {"aside/journal.db", func(place) sandbox.Policy {
			return sandbox.Policy{Filesystem: sandbox.FilesystemFull}
		}, true, false},
		"hidden, where everything may be written": {"aside/journal.db", func(p place) sandbox.Policy {
			return sandbox.Policy{Filesystem: sandbox.FilesystemFull, Hidden: []string{p.aside}}
		}, false, false},
		"in a workspace that is read-only": {"work/journal.db", func(place) sandbox.Policy {
			return sandbox.Policy{Filesystem: sandbox.FilesystemReadOnly}
		}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			inEveryBox(t, func(t *testing.T, open func(sandbox.Policy) tool.Tool) {
				p := newPlace(t)
				store := p.journal(t, c.journal)
				policy := c.policy(p)
				policy.Workspace = p.work
				a := with(open(policy))
				target := filepath.Join(filepath.Dir(p.work), c.journal)
				if err := os.WriteFile(filepath.Join(p.work, "forge.sh"), []byte("for f in "+target+"*; do echo forged > $f; done"), 0o600); err != nil {
					t.Fatal(err)
				}
				a.Model = says(scripted.Turn{ToolCalls: calls("shell.exec", `{"command":"sh forge.sh"}`)}, scripted.Turn{Text: "done"})
				run, err := a.Start(t.Context(), "go", pawl.Options{Journal: store})
				if c.refused || c.compared && strings.HasSuffix(t.Name(), "/"+string(sandbox.Landlock)) {
					if err == nil {
						s, err := run.Wait()
						t.Fatalf("it ran: %+v, %v", s.Outcome, err)
					}
					if e, ok := errors.AsType[*pawl.JournalError](err); !ok || e.Tool != "shell.exec" || !strings.HasPrefix(e.File, target) {
						t.Errorf("it is refused with %v", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if s, err := run.Wait(); err != nil || s.Status != pawl.StatusCompleted {
					t.Errorf("%+v, %v", s, err)
				}
				for _, suffix := range []string{"", "-wal", "-shm"} {
					if text, err := os.ReadFile(target + suffix); err != nil || strings.HasPrefix(string(text), "forged") {
						t.Errorf("%s was written by a command: %v", target+suffix, err)
					}
				}
			})
		})
	}
}

// An approval opens whatever a command names.
func TestACommandThatNamesWhatItsSandboxProtectsAsks(t *testing.T) {
	for _, command := range []string{"echo new > keep/file", "echo new > twin", "rm -r .", "echo new > link/other", "echo new > behind/other"} {
		t.Run(command, func(t *testing.T) {
			inEveryBox(t, func(t *testing.T, open func(sandbox.Policy) tool.Tool) {
				p := newPlace(t)
				file := p.kept(t)
				if err := errors.Join(os.Mkdir(filepath.Join(p.work, "behind"), 0o700), os.Symlink("behind", filepath.Join(p.work, "link"))); err != nil {
					t.Fatal(err)
				}
				a := with(open(sandbox.Policy{Workspace: p.work, Protected: keeps{"keep/**", "link/**"}}))
				a.Approvals.Never = []string{"shell.exec"}
				a.Model = says(scripted.Turn{ToolCalls: calls("shell.exec", `{"command":"`+command+`"}`)}, scripted.Turn{Text: "done"})
				s, err := a.Run(t.Context(), "go")
				if err != nil || s.Status != pawl.StatusParked || len(s.Pending) != 1 || !strings.Contains(s.Pending[0].Reason, "protected") {
					t.Errorf("%+v, %v", s, err)
				}
				if text, err := os.ReadFile(file); string(text) != "old" {
					t.Errorf("the file holds %q: %v", text, err)
				}
			})
		})
	}
}

func (p place) kept(t *testing.T) (file string) {
	t.Helper()
	file = filepath.Join(p.work, "keep", "file")
	if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(file, filepath.Join(p.work, "twin")); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestReadOnlyWorkspaceIsNotWritten(t *testing.T) {
	inEveryBox(t, func(t *testing.T, open func(sandbox.Policy) tool.Tool) {
		p := newPlace(t)
		file := p.kept(t)
		a := with(open(sandbox.Policy{Workspace: p.work, Filesystem: sandbox.FilesystemReadOnly}))
		a.Model = says(scripted.Turn{ToolCalls: calls("shell.exec", `{"command":"echo new > keep/file; echo new > keep/other"}`)}, scripted.Turn{Text: "done"})
		if s, err := a.Run(t.Context(), "go"); err != nil || s.Status != pawl.StatusCompleted {
			t.Errorf("%+v, %v", s, err)
		}
		entries, err := os.ReadDir(filepath.Dir(file))
		if text, _ := os.ReadFile(file); string(text) != "old" || len(entries) != 1 {
			t.Errorf("the file holds %q beside %d others: %v", text, len(entries)-1, err)
		}
	})
}
