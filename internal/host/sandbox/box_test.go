//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlrun/pawl/internal/host/egress"
	"github.com/pawlrun/pawl/internal/host/sandbox"
)

// inEach runs a test in each tier, in a field of its own.
func inEach(t *testing.T, test func(*testing.T, sandbox.Tier, field)) { in(t, tiers, test) }

// in runs a test in some tiers, in a field of its own for each.
func in(t *testing.T, tiers []sandbox.Tier, test func(*testing.T, sandbox.Tier, field)) {
	t.Helper()
	for _, tier := range tiers {
		t.Run(string(tier), func(t *testing.T) {
			test(t, tier, newField(t))
			gate.pass(t)
		})
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// Most of what tunes the kernel asks for no capability, but for its owner, and
// that is root in a sandbox, too.
func TestRootChangesNoSettingOfTheKernel(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may change one")
	}
	// Processes that end meanwhile are no matter, which find complains of.
	const writable = `command -v find >/dev/null || echo there is no find; ` +
		`find /proc -path '/proc/[0-9]*' -prune -o -type f -perm -200 -print 2>/dev/null | while read -r f; do { true >> "$f"; } 2>/dev/null && echo "$f"; done; true`
	inEach(t, func(t *testing.T, tier sandbox.Tier, f field) {
		b := open(t, tier, f.policy)
		if got := run(t, b, f.command(writable)); got.Code != 0 || got.output != "" {
			t.Errorf("%+v may be opened for writing", got)
		}
	})
}

// What only root reads, root's commands would read without any capability.
func TestRootsCommandsDoNotReadThePasswordsOfTheMachine(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may read them")
	}
	if _, err := os.ReadFile("/etc/shadow"); err != nil {
		t.Skip("this machine has none:", err)
	}
	const readable = `for f in /etc/shadow /etc/gshadow /etc/sudoers /etc/ssl/private/*; do cat "$f" 2>/dev/null; done; cat /etc/passwd`
	inEach(t, func(t *testing.T, tier sandbox.Tier, f field) {
		all, err := os.ReadFile("/etc/passwd")
		if err != nil {
			t.Fatal(err)
		}
		if got := run(t, open(t, tier, f.policy), f.command(readable)); got.Code != 0 || got.output != string(all) {
			t.Errorf("%+v is read, and only what everybody reads should be", got)
		}
	})
}

func TestWorkspaceAmongKeysIsVisibleToItsCommands(t *testing.T) {
	const keys = "/etc/ssl/private"
	if _, err := os.ReadDir(keys); err != nil {
		t.Skip("this machine has none, or they are not to be read:", err)
	}
	inEach(t, func(t *testing.T, tier sandbox.Tier, f field) {
		f.policy.Workspace = keys
		if !open(t, tier, f.policy).MayWrite(keys + "/new.pem") {
			t.Error("nothing may be written in the workspace")
		}
	})
}

// What a newcomer does first: a repository, or what pawl init writes, has
// protected directories at its top.
func TestTheTopOfTheWorkspaceIsWorkedIn(t *testing.T) {
	in(t, withMounts, func(t *testing.T, tier sandbox.Tier, f field) {
		b := open(t, tier, f.policy)
		if got := run(t, b, f.command(`set -e; touch new; mkdir new-dir; mv new new-dir; ls -la | grep -c '\.git$'; rm free; rm -r new-dir; sed -i s/x/y/ open/free; echo kept > kept; stat -c %u kept`)); got.output != fmt.Sprintf("1\n%d\n", os.Getuid()) || got.Code != 0 {
			t.Errorf("%+v", got)
		}
		info, err := os.Stat(filepath.Join(f.workspace, "kept"))
		if err != nil {
			t.Fatal(err)
		}
		if owner := info.Sys().(*syscall.Stat_t).Uid; int(owner) != os.Getuid() {
			t.Errorf("what it makes belongs to %d, and this is %d", owner, os.Getuid())
		}
	})
}

// A repository may be a link to where it lies, and so may the directory of the
// journals.
func TestAProtectedLinkIsNotReplaced(t *testing.T) {
	inEach(t, func(t *testing.T, tier sandbox.Tier, f field) {
		root := filepath.Dir(f.workspace)
		for _, name := range []string{"outside/git", "work/plain", "work/alone"} {
			if err := os.Mkdir(filepath.Join(root, name), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for name, to := range map[string]string{
			".git": "../outside/git", "deep/key.pem": "down/key.pem", "deep/down/link": "../../free", "alone/key.pem": "../../outside/file",
		} {
			path := filepath.Join(f.workspace, name)
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(to, path); err != nil {
				t.Fatal(err)
			}
		}
		b := open(t, tier, f.policy)
		for _, command := range []string{
			`rm .git`, `mv .git sub/git`, `ln -sfn sub .git`, `mkdir sub/n && ln -s n sub/git && mv -T sub/git .git`,
			`rm deep/key.pem`, `echo x > deep/key.pem`, `rm alone/key.pem`, `mv alone away`, `mv deep away`, `mv deep/down deep/away`,
		} {
			if got := run(t, b, f.command(command)); !got.held() {
				t.Errorf("%s: %+v", command, got)
			}
		}
		for _, file := range []string{".git", "deep/key.pem", "alone/key.pem"} {
			if b.MayWrite(filepath.Join(f.workspace, file)) != (tier == sandbox.Landlock) {
				t.Errorf("whether it may write %s is said wrongly", file)
			}
		}
		if got := run(t, b, f.command(`echo x > free && echo x > plain/new`)); got.Code != 0 {
			t.Errorf("what is not protected: %+v", got)
		}
		if tier == sandbox.Landlock {
			return // in which nothing can be made beside what is hidden
		}
		if got := run(t, b, f.command(`rm deep/down/link && mkdir deep/down/more && mv plain/new deep/down/more`)); got.Code != 0 {
			t.Errorf("beside what is not protected: %+v", got)
		}
		command := f.command(`rm .git && mkdir .git && echo x > .git/config`)
		command.Grants = []sandbox.Grant{{Path: filepath.Join(f.workspace, ".git"), Tree: true}}
		if got := run(t, b, command); got.Code != 0 {
			t.Errorf("granted: %+v", got)
		}
	})
}

func TestAGrantOpensWhatItNamesAndNoMore(t *testing.T) {
	inEach(t, func(t *testing.T, tier sandbox.Tier, f field) {
		b := open(t, tier, f.policy)
		outside := filepath.Join(filepath.Dir(f.workspace), "outside")
		for _, c := range []struct {
			name, command string
			grant         sandbox.Grant
			open          bool
		}{
			{"a file outside", `echo granted > "$OUT/file"`, sandbox.Grant{Path: filepath.Join(outside, "file")}, true},
			{"a new file outside", `echo granted > "$OUT/spare/new"`, sandbox.Grant{Path: filepath.Join(outside, "spare", "new")}, true},
			{"a protected file", `echo granted > .git/config`, sandbox.Grant{Path: filepath.Join(f.workspace, ".git/config")}, true},
			{"beside a protected file", `echo granted > .git/other`, sandbox.Grant{Path: filepath.Join(f.workspace, ".git/config")}, false},
			{"a protected tree", `echo granted > .git/other`, sandbox.Grant{Path: filepath.Join(f.workspace, ".git"), Tree: true}, true},
			{"what is hidden stays so", `cat .pawl/journal.db`, sandbox.Grant{Path: f.workspace, Tree: true}, false},
		} {
			command := f.command(c.command)
			command.Grants = []sandbox.Grant{c.grant}
			if got := run(t, b, command); got.held() == c.open {
				t.Errorf("%s: %+v, want it open: %t", c.name, got, c.open)
			}
		}
		for _, path := range []string{"file", "spare/new"} {
			if text, err := os.ReadFile(filepath.Join(outside, path)); string(text) != "granted\n" {
				t.Errorf("%s holds %q, %v", path, text, err)
			}
		}
	})
}

// A repository that is still to be made is granted by its own name, not by the
// directory that it will be in.
func TestAGrantForWhatIsNotThereYetOpensNothingBesideIt(t *testing.T) {
	inEach(t, func(t *testing.T, tier sandbox.Tier, f field) {
		if err := os.RemoveAll(filepath.Join(f.workspace, ".git")); err != nil {
			t.Fatal(err)
		}
		b := open(t, tier, f.policy)
		for _, c := range []struct {
			command string
			open    bool
		}{
			{`echo x > sub/key.pem`, false},
			{`mkdir -p later && echo x > later/file`, false},
			{`mkdir .git && echo x > .git/config`, tier != sandbox.Landlock}, // in which nothing can be made beside what is hidden
		} {
			command := f.command(c.command)
			command.Grants = []sandbox.Grant{{Path: filepath.Join(f.workspace, ".git"), Tree: true}}
			if got := run(t, b, command); got.held() == c.open {
				t.Errorf("%s: %+v, want it open: %t", c.command, got, c.open)
			}
		}
	})
}

// A command may put a link where another one, in the same moment, was let write.
func TestAGrantIsNotForWhatAPathLeadsToMeanwhile(t *testing.T) {
	inEach(t, func(t *testing.T, tier sandbox.Tier, f field) {
		b := open(t, tier, f.policy)
		outside := filepath.Join(filepath.Dir(f.workspace), "outside")
		for link, target := range map[string]string{"there": "file", "not-there": "spare/new", "dir": "spare"} {
			if err := os.Symlink(filepath.Join(outside, target), filepath.Join(f.workspace, link)); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"there", "not-there", "dir/new"} {
			command := f.command("echo x > " + name)
			command.Grants = []sandbox.Grant{{Path: filepath.Join(f.workspace, name)}}
			if got := run(t, b, command); got.Code == 0 {
				t.Errorf("%s was written: %+v", name, got)
			}
		}
	})
}

// A command with the machine's network still does not reach its desktop, which would
// type for it.
func TestTheMachinesNetworkIsNotItsAbstractSockets(t *testing.T) {
	inEach(t, func(t *testing.T, tier sandbox.Tier, f field) {
		f.policy.Egress = egress.Rules{Network: egress.NetworkHost}
		open(t, sandbox.Landlock, f.policy) // the kernel is new enough
		b := open(t, tier, f.policy)
		if got := run(t, b, f.command(`"$SELF" attack unix $ABSTRACT`)); got.Code == 0 {
			t.Errorf("it is reached: %+v", got)
		}
		if got := run(t, b, f.command(`"$SELF" attack tcp $TCP`)); got.Code != 0 {
			t.Errorf("the network is not: %+v", got)
		}
	})
}

func TestAReadOnlyWorkspace(t *testing.T) {
	inEach(t, func(t *testing.T, tier sandbox.Tier, f field) {
		f.policy.Filesystem = sandbox.FilesystemReadOnly
		b := open(t, tier, f.policy)
		if got := run(t, b, f.command(`cat free && echo x > "$TMPDIR/t" && cat "$TMPDIR/t"`)); got.output != "here\nx\n" {
			t.Errorf("%+v", got)
		}
		if got := run(t, b, f.command(`echo x > free`)); got.Code == 0 {
			t.Errorf("%+v", got)
		}
	})
}

func TestAFullFileSystemIsWrittenButForWhatIsProtectedOrHidden(t *testing.T) {
	inEach(t, func(t *testing.T, tier sandbox.Tier, f field) {
		f.policy.Filesystem = sandbox.FilesystemFull
		b := open(t, tier, f.policy)
		if got := run(t, b, f.command(`echo x > "$OUT/file" && cat "$HOUSE/diary" && echo x > free`)); got.Code != 0 {
			t.Errorf("%+v", got)
		}
		for _, command := range []string{`echo x > .git/config`, `cat "$OUT/journal.db"`, `cat .pawl/journal.db`} {
			if got := run(t, b, f.command(command)); !got.held() {
				t.Errorf("%s: %+v", command, got)
			}
		}
	})
}

func TestABoxMayWriteWhatItsCommandsWrite(t *testing.T) {
	for _, filesystem := range []sandbox.Filesystem{sandbox.FilesystemReadOnly, sandbox.FilesystemReadWrite, sandbox.FilesystemFull} {
		t.Run(string(filesystem), func(t *testing.T) {
			inEach(t, func(t *testing.T, tier sandbox.Tier, f field) {
				f.policy.Filesystem = filesystem
				b := open(t, tier, f.policy)
				var files []string
				var grants []sandbox.Grant
				for _, name := range []string{
					"work/free", "work/sub/new", "work/.git/config", "work/sub/key.pem", "work/later/file", "work/.pawl/journal.db", "work/.pawl/new",
					"work/other/config", "work/other/journal", "outside/file", "outside/new", "outside/journal.db", "house/diary",
				} {
					file := filepath.Join(filepath.Dir(f.workspace), name)
					files, grants = append(files, file), append(grants, sandbox.Grant{Path: file})
				}
				for _, granted := range [][]sandbox.Grant{nil, grants} {
					command := f.command(`for f in ` + strings.Join(files, " ") + `; do sh -c "echo more >> $f"; done`)
					command.Grants = granted
					said, before := map[string]bool{}, map[string]int64{}
					for _, file := range files {
						said[file], before[file] = b.MayWrite(file, granted...), size(file)
					}
					changed := run(t, b, command).Changed
					for _, file := range files {
						wrote := size(file) > before[file] || slices.ContainsFunc(changed, func(c sandbox.Change) bool { return filepath.Join(f.workspace, c.Path) == file })
						if wrote != said[file] && (wrote || before[file] > 0) {
							t.Errorf("%s, with grants %t: it may be written %t, and was %t", file, granted != nil, said[file], wrote)
						}
					}
				}
			})
		})
	}
}

func size(file string) int64 {
	if info, err := os.Stat(file); err == nil {
		return info.Size()
	}
	return 0
}

func TestTemporaryFilesArePerBoxAndHomePerWorkspace(t *testing.T) {
	inEach(t, func(t *testing.T, tier sandbox.Tier, f field) {
		first, second := open(t, tier, f.policy), open(t, tier, f.policy)
		run(t, first, f.command(`echo temporary > "$TMPDIR/t"; echo kept > "$HOME/k"`))
		if got := run(t, first, f.command(`cat "$TMPDIR/t" "$HOME/k"`)); got.output != "temporary\nkept\n" {
			t.Errorf("the same box: %+v", got)
		}
		if got := run(t, second, f.command(`cat "$HOME/k"; cat "$TMPDIR/t"`)); !strings.HasPrefix(got.output, "kept\n") || got.Code == 0 {
			t.Errorf("another box: %+v", got)
		}
		if _, err := os.Stat(filepath.Join(filepath.Dir(f.workspace), "house", "k")); err == nil {
			t.Error("the real home directory was written")
		}
	})
}

func TestALimitIsNamed(t *testing.T) {
	inEach(t, func(t *testing.T, tier sandbox.Tier, f field) {
		b := open(t, tier, f.policy)
		for command, limit := range map[string]string{
			`for i in $(seq 150); do sleep 60 & done; wait`:            sandbox.LimitProcesses,
			`"$SELF" attack memory 400`:                                sandbox.LimitMemory,
			`sleep 0.2; "$SELF" attack memory 400`:                     sandbox.LimitMemory,
			`sleep 0.2; for i in $(seq 150); do sleep 60 & done; wait`: sandbox.LimitProcesses,
			`kill -9 $$`: "",
		} {
			if got := run(t, b, f.command(command)); got.Limit != limit || got.Signal == 0 {
				t.Errorf("%s: %+v, want the limit %q", command, got, limit)
			}
		}
	})
}

// What is written there is memory of the machine that no process has as its own.
func TestFilesInMemoryAreBoundedAsMemoryIs(t *testing.T) {
	in(t, withMounts, func(t *testing.T, tier sandbox.Tier, f field) {
		f.policy.Limits.MemoryBytes = 32 << 20
		b := open(t, tier, f.policy)
		got := run(t, b, f.command(`exec 2>/dev/null; head -c 100000000 /dev/zero >/dev/shm/file; wc -c </dev/shm/file; : >/dev/file && echo beside it; ls /dev/file; true`))
		if want := "33554432\n"; got.output != want || got.Limit != "" {
			t.Errorf("%+v, want %q", got, want)
		}
	})
	f := newField(t)
	if got := run(t, open(t, sandbox.Landlock, f.policy), f.command(`: >/dev/shm/file && echo written; true`)); strings.Contains(got.output, "written") {
		t.Errorf("%+v", got)
	}
	gate.pass(t)
}

func TestACommandThatCannotBeStartedSaysWhy(t *testing.T) {
	inEach(t, func(t *testing.T, tier sandbox.Tier, f field) {
		b := open(t, tier, f.policy)
		null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer null.Close()
		_, err = b.Start(sandbox.Command{Args: []string{"/no/such/program"}, Dir: f.workspace, Output: null})
		if !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%v", err)
		}
		_, err = b.Start(sandbox.Command{Args: []string{"/bin/sh", "-c", "true"}, Dir: f.workspace + "/nowhere", Output: null})
		if !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%v", err)
		}
	})
}

func TestABoxNeedsATierThatWorks(t *testing.T) {
	none := sandbox.Detect(t.Context(), sandbox.Shim{})
	if none.Tier() != sandbox.None || !strings.Contains(none.Why(), "did not call sandbox.Main") {
		t.Errorf("%s: %s", none.Tier(), none.Why())
	}
	for _, tier := range sandbox.Tiers() {
		if _, err := none.Open(tier, sandbox.Policy{Workspace: t.TempDir()}); !errors.Is(err, sandbox.ErrUnavailable) {
			t.Errorf("%s: %v", tier, err)
		}
	}
	if m := sandbox.Strongest(t.Context(), shim, sandbox.None); m.Tier() != sandbox.None {
		t.Errorf("the owner allows none, and %s is used", m.Tier())
	}
}

func TestTiersAreOrdered(t *testing.T) {
	order := []sandbox.Tier{sandbox.Bubblewrap, sandbox.Namespaces, sandbox.Landlock, sandbox.None}
	for i, a := range order {
		for j, b := range order {
			if got := a.AtLeast(b); got != (i <= j) {
				t.Errorf("%s is at least %s: %v", a, b, got)
			}
		}
	}
	if sandbox.Tier("iron").AtLeast(sandbox.None) || sandbox.Bubblewrap.AtLeast("iron") {
		t.Error("a tier that nobody knows has a place in the order")
	}
}

func TestATierSaysWhatItDoesNotHold(t *testing.T) {
	open := sandbox.Policy{Filesystem: sandbox.FilesystemFull, Egress: egress.Rules{Network: egress.NetworkHost}}
	if err := sandbox.None.Holds(open); err != nil {
		t.Error(err)
	}
	for _, p := range []sandbox.Policy{{}, {Filesystem: sandbox.FilesystemFull}, {Egress: egress.Rules{Network: egress.NetworkHost}}} {
		if err := sandbox.None.Holds(p); !errors.Is(err, sandbox.ErrUnavailable) {
			t.Errorf("%+v: %v", p, err)
		}
	}
}
