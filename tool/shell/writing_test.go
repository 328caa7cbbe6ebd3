package shell_test

import (
	"os"
	"path/filepath"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/sandbox"
	"github.com/pawlrun/pawl/tool/shell"
)

// What a sandbox leaves open is written by commands that do not say so, and
// what it closes by those that name it: whatever a call names is opened for it,
// unless it is hidden.
func TestACommandInASandboxWritesWhatTheSandboxLeavesOpen(t *testing.T) {
	silent := event.Facts{Risk: event.RiskUnknown}
	naming := func(path string) event.Facts {
		return event.Facts{Paths: []event.PathUse{{Path: path, Write: true}}, Risk: event.RiskWrite}
	}
	for name, c := range map[string]struct {
		file   string
		policy func(work string) sandbox.Policy
		want   func(file string) []event.Facts
	}{
		"in the workspace": {"work/free", func(string) sandbox.Policy { return sandbox.Policy{} }, func(string) []event.Facts { return []event.Facts{naming("free"), silent} }},
		"protected": {"work/.git/config", func(string) sandbox.Policy { return sandbox.Policy{Protected: gitAlone{}} },
			func(string) []event.Facts {
				f := naming(".git/config")
				f.Paths[0].Protected = true
				return []event.Facts{f}
			}},
		"hidden": {"work/free", func(work string) sandbox.Policy { return sandbox.Policy{Hidden: []string{filepath.Join(work, "free")}} },
			func(string) []event.Facts { return nil }},
		"in a hidden directory, and not there yet": {"work/.git/new", func(work string) sandbox.Policy { return sandbox.Policy{Hidden: []string{filepath.Join(work, ".git")}} },
			func(string) []event.Facts { return nil }},
		"in a workspace that is read-only": {"work/free", func(string) sandbox.Policy { return sandbox.Policy{Filesystem: sandbox.FilesystemReadOnly} },
			func(string) []event.Facts { return nil }},
		"outside": {"outside/file", func(string) sandbox.Policy { return sandbox.Policy{} },
			func(file string) []event.Facts {
				return []event.Facts{{Paths: []event.PathUse{{Path: file, Outside: true, Write: true}}, Risk: event.RiskWrite}}
			}},
		"outside, where everything may be written": {"outside/file", func(string) sandbox.Policy { return sandbox.Policy{Filesystem: sandbox.FilesystemFull} },
			func(file string) []event.Facts {
				return []event.Facts{{Paths: []event.PathUse{{Path: file, Outside: true, Write: true}}, Risk: event.RiskWrite}, silent}
			}},
		"outside and hidden, where everything may be written": {"outside/file", func(work string) sandbox.Policy {
			return sandbox.Policy{Filesystem: sandbox.FilesystemFull, Hidden: []string{filepath.Join(filepath.Dir(work), "outside")}}
		}, func(string) []event.Facts { return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			for _, tier := range boxed {
				t.Run(string(tier), func(t *testing.T) {
					root := t.TempDir()
					for _, file := range []string{"work/free", "work/.git/config", "outside/file"} {
						path := filepath.Join(root, file)
						if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
							t.Fatal(err)
						}
						if err := os.WriteFile(path, []byte("here\n"), 0o644); err != nil {
							t.Fatal(err)
						}
					}
					work := filepath.Join(root, "work")
					p := c.policy(work)
					p.Workspace = work
					sh := shell.New(shell.Options{Dir: work, Sandbox: boxOf(t, tier, p)})
					file := filepath.Join(root, c.file)
					want := c.want(file)
					if name == "protected" && tier == sandbox.Landlock {
						want = append(want, silent) // compared afterwards, not held
					}
					if diff := gocmp.Diff(want, sh.Writing(file)); diff != "" {
						t.Errorf("-want +got\n%s", diff)
					}
				})
			}
		})
	}
}
