package launch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/files/launch"
)

// Git runs programs from a repository's own files, so a nested repository is protected
// like the workspace's.
func TestNestedRepositoryIsProtectedLikeTheWorkspaces(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"vendor/lib/.git/hooks", "vendor/lib/src", "build/out", "sub", "linked", "elsewhere/hooks"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "sub/.git"), []byte("gitdir: ../.git/modules/sub\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../elsewhere", filepath.Join(dir, "linked/.git")); err != nil {
		t.Fatal(err)
	}
	path := file(t, "model_policy: {primary: anthropic/claude-sonnet-4-5}\n"+
		"tools: {allow: [fs.read, fs.write, fs.grep, shell.exec], approvals: {shell.exec: never}}\n")
	for call, want := range map[string]event.Decision{
		`fs.write {"path":"vendor/lib/.git/hooks/pre-commit","content":""}`: event.DecisionAsk,
		`fs.write {"path":"sub/.git","content":"gitdir: x"}`:                event.DecisionAsk,
		`fs.write {"path":"elsewhere/hooks/pre-commit","content":""}`:       event.DecisionAsk,
		`fs.write {"path":"build/.git/config","content":""}`:                event.DecisionAsk,
		"shell.exec echo x > vendor/lib/.git/config":                        event.DecisionAsk,
		"shell.exec cd vendor/lib && cp a .git/hooks/pre-commit":            event.DecisionAsk,
		"shell.exec cd vendor/lib && git config core.fsmonitor ./x":         event.DecisionAsk,
		"shell.exec mv build/out vendor/lib/.git":                           event.DecisionAsk,
		"shell.exec rm -rf vendor":                                          event.DecisionAsk,
		"shell.exec mv vendor old":                                          event.DecisionAsk,
		`fs.read {"path":"vendor/lib/.git/config"}`:                         event.DecisionAllow,
		`fs.grep {"pattern":"x","path":"vendor"}`:                           event.DecisionAllow,
		`fs.write {"path":"vendor/lib/src/a.go","content":""}`:              event.DecisionAllow,
		`fs.write {"path":"vendor/lib/.gitignore","content":""}`:            event.DecisionAllow,
		"shell.exec cat sub/.git":                                           event.DecisionAllow,
		"shell.exec cd sub && git log -p":                                   event.DecisionAllow,
		"shell.exec cd vendor/lib && git add . && git commit -m x":          event.DecisionAsk,
		"shell.exec cd vendor/lib && git config --get user.name":            event.DecisionAllow,
		"shell.exec python3 x.py vendor/lib/.git/config":                    event.DecisionAsk,
		"shell.exec zip -r x.zip vendor -x '*/.git/*'":                      event.DecisionAllow,
		"shell.exec rsync -a --exclude '**/.git/**' vendor/ build/":         event.DecisionAllow,
		"shell.exec cp -r vendor build/copy":                                event.DecisionAllow,
		"shell.exec cp -rl vendor build/copy":                               event.DecisionAsk,
		"shell.exec cp -r build/out vendor":                                 event.DecisionAsk,
		"shell.exec make -C vendor/lib":                                     event.DecisionAllow,
		"shell.exec rm -rf build vendor/lib/src":                            event.DecisionAllow,
		"shell.exec git clone https://example.com/x.git third":              event.DecisionAllow,
		`shell.exec eval "$X"`:                                              event.DecisionAllow,
	} {
		decides(t, "of the file", path, call, launch.Options{Flags: launch.Flags{Workspace: dir}}, want)
	}
}

// Each protected repository costs every command two mounts: with hundreds of them a
// command took seconds to start, and with thousands none started.
func TestSoManyRepositoriesWithinTheWorkspaceAreProtected(t *testing.T) {
	o := options(t)
	repository := func(name string) {
		if err := os.MkdirAll(filepath.Join(o.Workspace, name, ".git"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 99 {
		repository(fmt.Sprintf("deep/down/r%03d", i))
	}
	repository("near")
	told := func(w string) bool { return strings.Contains(w, "more than 100 repositories within it") }
	path := file(t, "tools: {allow: [fs.write, shell.exec]}")
	if started, _, _ := start(t, path, o); slices.ContainsFunc(started.Warnings, told) {
		t.Errorf("with 100 it says %q", started.Warnings)
	}
	repository("deep/down/r099")
	started, cfg, _ := start(t, path, o)
	if !slices.ContainsFunc(started.Warnings, told) {
		t.Errorf("with 101 it says %q", started.Warnings)
	}
	if n := cfg.Policy.Nested; len(n) != 100 || !slices.Contains(n, "near/.git/**") {
		t.Errorf("%d are protected: %v", len(n), n)
	}
}

// Searching a workspace lists each of its directories at every start of a run.
func TestWorkspaceIsSearchedForRepositoriesOnlyIfNeeded(t *testing.T) {
	o := options(t)
	if err := os.MkdirAll(filepath.Join(o.Workspace, "vendor/lib/.git"), 0o755); err != nil {
		t.Fatal(err)
	}
	for tools, want := range map[string]bool{
		"{allow: [fs.read, fs.grep, fs.glob, web.fetch]}": false,
		"{allow: []}": false,
		"{allow: [fs.grep], approvals: {fs.grep: always}}":          false,
		"{allow: [fs.grep], approvals: {fs.grep: protected_paths}}": true,
		"{allow: [fs.read, fs.write]}":                              true,
		"{allow: [fs.read, fs.edit]}":                               true,
		"{allow: [shell.exec]}":                                     true,
		"{mode: default}":                                           true,
	} {
		started, env, err := launch.Agent(read(t, file(t, "tools: "+tools)), "go", o)
		if err != nil {
			t.Fatal(tools, err)
		}
		if got := strings.Contains(string(started.Config), "vendor/lib/.git/**"); got != want {
			t.Errorf("tools %s: looked through %t, want %t", tools, got, want)
		}
		if err := env.Close(); err != nil {
			t.Error(err)
		}
	}
}
