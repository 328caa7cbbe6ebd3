package launch_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/files/launch"
)

// If a protected name is a link, its target is protected too, because the target also
// has a name of its own.
func TestWhatAProtectedLinkLeadsToIsProtected(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{".realgit/hooks", "conf/live", "notes"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{".git": ".realgit", "current": "conf/live", "conf/link": "live", "policy.md": "notes/policy-7.md", "out": t.TempDir()} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "agent.yaml")
	text := "identity: {name: x}\nmodel_policy: {primary: anthropic/claude-sonnet-4-5}\n" +
		"tools: {allow: [fs.write, shell.exec], protected_paths: [\"current/**\", policy.md, \"out/**\", gone.md]}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for call, want := range map[string]event.Decision{
		`fs.write {"path":".git/config","content":""}`:             event.DecisionAsk,
		`fs.write {"path":".realgit/hooks/pre-push","content":""}`: event.DecisionAsk,
		`shell.exec echo x > .realgit/config`:                      event.DecisionAsk,
		`fs.write {"path":"conf/live/a.yaml","content":""}`:        event.DecisionAsk,
		`fs.write {"path":"conf/link/a.yaml","content":""}`:        event.DecisionAsk,
		`fs.write {"path":"notes/policy-7.md","content":""}`:       event.DecisionAsk,
		`fs.write {"path":"notes/policy-8.md","content":""}`:       event.DecisionAllow,
		`fs.write {"path":"conf/b.yaml","content":""}`:             event.DecisionAllow,
		`fs.write {"path":"other.md","content":""}`:                event.DecisionAllow,
	} {
		decides(t, "of the file", path, call, launch.Options{Flags: launch.Flags{Workspace: dir}}, want)
	}
}

// The tools use paths relative to the workspace, even if the owner's pattern is
// absolute.
func TestAnAbsolutePatternHoldsInTheWorkspace(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	linked := filepath.Join(t.TempDir(), "project")
	if err := os.Symlink(dir, linked); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "agent.yaml")
	text := "identity: {name: x}\nmodel_policy: {primary: anthropic/claude-sonnet-4-5}\ntools:\n  allow: [fs.read, fs.write, shell.exec]\n" +
		"  protected_paths: [\"" + dir + "/deploy/**\", \"" + linked + "/key.txt\", \"" + filepath.Dir(dir) + "/**\"]\n" +
		"  rules: [{deny: \"*\", path: \"" + dir + "/**/*.pem\"}]\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for call, want := range map[string]event.Decision{
		`fs.write {"path":"deploy/a","content":""}`:             event.DecisionAsk,
		`fs.write {"path":"` + dir + `/deploy/a","content":""}`: event.DecisionAsk,
		`shell.exec echo x > deploy/a`:                          event.DecisionAsk,
		`fs.write {"path":"key.txt","content":""}`:              event.DecisionAsk,
		`fs.read a/b.pem`:                                       event.DecisionDeny,
		`fs.read a/b.txt`:                                       event.DecisionAllow,
		`fs.write {"path":"other/a","content":""}`:              event.DecisionAllow,
	} {
		decides(t, "of the file", path, call, launch.Options{Flags: launch.Flags{Workspace: linked}}, want)
	}
}

// A rule that denies a name also denies the target of that link, under every name that
// leads through the link.
func TestARuleHoldsForWhatALinkOfItsNameLeadsTo(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"conf/live", "keys"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	beside := filepath.Join(t.TempDir(), "beside.env")
	for link, to := range map[string]string{
		".env": "conf/env.prod", "current": "conf/live", "again": "current", "server.pem": "keys/server", ".beside": beside,
	} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "agent.yaml")
	text := "identity: {name: x}\nmodel_policy: {primary: anthropic/claude-sonnet-4-5}\ntools:\n  allow: [fs.read, fs.write, fs.grep, shell.exec]\n" +
		"  rules:\n    - {deny: \"*\", path: .env}\n    - {ask: fs.write, path: \"current/**\"}\n    - {deny: fs.read, path: \"**/*.pem\"}\n" +
		"    - {deny: \"*\", path: .beside}\n    - {allow: fs.write, path: \"conf/**\"}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for call, want := range map[string]event.Decision{
		`fs.read {"path":".env"}`:                      event.DecisionDeny,
		`fs.read {"path":"conf/env.prod"}`:             event.DecisionDeny,
		`shell.exec cat .env`:                          event.DecisionDeny,
		`shell.exec grep -r KEY conf`:                  event.DecisionDeny,
		`fs.write {"path":"current/a","content":""}`:   event.DecisionAsk,
		`fs.write {"path":"again/a","content":""}`:     event.DecisionAsk,
		`fs.write {"path":"conf/live/a","content":""}`: event.DecisionAsk,
		`fs.write {"path":"conf/other","content":""}`:  event.DecisionAllow,
		`fs.read {"path":"server.pem"}`:                event.DecisionDeny,
		`shell.exec cat .beside`:                       event.DecisionDeny,
		"shell.exec cat " + beside:                     event.DecisionDeny,
		`fs.read {"path":"keys/other"}`:                event.DecisionAllow,
		`fs.read {"path":"current/a"}`:                 event.DecisionAllow,
	} {
		decides(t, "of the file", path, call, launch.Options{Flags: launch.Flags{Workspace: dir}}, want)
	}
}

// A program that changes a link between a name and its target changes what the name
// refers to.
func TestALinkBetweenANameAndItsFileIsHeldLikeTheName(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"links", "releases/7"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"current": "links/now", "links/now": "../releases/7"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "agent.yaml")
	for tools, want := range map[string]event.Decision{
		"protected_paths: [\"current/**\"]":                 event.DecisionAsk,
		"rules: [{deny: shell.exec, path: \"current/**\"}]": event.DecisionDeny,
	} {
		text := "identity: {name: x}\nmodel_policy: {primary: anthropic/claude-sonnet-4-5}\ntools: {allow: [shell.exec], approvals: {shell.exec: never}, " + tools + "}\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, call := range []string{"shell.exec rm -r links", "shell.exec mv links old"} {
			decides(t, tools, path, call, launch.Options{Flags: launch.Flags{Workspace: dir}}, want)
		}
	}
}

// A link to the agent file or the journal is protected itself; other files behind it
// are not.
func TestALinkToTheOwnFilesProtectsNothingElseBehindIt(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "conf/agents"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("conf/agents", filepath.Join(dir, "agents")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "agents", "agent.yaml")
	text := "identity: {name: x}\nmodel_policy: {primary: anthropic/claude-sonnet-4-5}\n" +
		"tools: {allow: [fs.write, shell.exec], approvals: {shell.exec: never}}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for call, want := range map[string]event.Decision{
		`fs.write {"path":"agents/notes.md","content":""}`:        event.DecisionAllow,
		`shell.exec echo x > agents/notes.md`:                     event.DecisionAllow,
		`fs.write {"path":"agents/agent.yaml","content":""}`:      event.DecisionAsk,
		`fs.write {"path":"conf/agents/agent.yaml","content":""}`: event.DecisionAsk,
		`fs.write {"path":"agents/runs.db-wal","content":""}`:     event.DecisionAsk,
		`shell.exec rm agents`:                                    event.DecisionAsk,
		`shell.exec ln -sfn elsewhere agents`:                     event.DecisionAsk,
	} {
		decides(t, "of the file", path, call, launch.Options{Flags: launch.Flags{Workspace: dir}, Host: launch.Host{Journal: filepath.Join(dir, "agents", "runs.db")}}, want)
	}
}

// The owner does not protect a repository elsewhere, so it causes no question if the
// file says that commands never ask.
func TestALinkToARepositoryElsewhereMakesNoUnclearCommandAsk(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(t.TempDir(), filepath.Join(dir, ".git")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "agent.yaml")
	text := "identity: {name: x}\nmodel_policy: {primary: anthropic/claude-sonnet-4-5}\n" +
		"tools: {allow: [shell.exec], approvals: {shell.exec: never}}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for call, want := range map[string]event.Decision{
		`shell.exec eval "$X"`:              event.DecisionAllow,
		"shell.exec echo x > .git/config":   event.DecisionAsk,
		"shell.exec some-tool .git/config":  event.DecisionAsk,
		"shell.exec ln -sfn elsewhere .git": event.DecisionAsk,
	} {
		decides(t, "of the file", path, call, launch.Options{Flags: launch.Flags{Workspace: dir}}, want)
	}
}

// A rule for a file behind a link does not apply to other files there. The link itself
// is protected, because it leads to a protected file.
func TestANameBehindALinkForbidsNothingBesideIt(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "releases/7/conf"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("releases/7", filepath.Join(dir, "current")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "agent.yaml")
	text := "identity: {name: x}\nmodel_policy: {primary: anthropic/claude-sonnet-4-5}\ntools:\n  allow: [fs.read, fs.write, shell.exec]\n" +
		"  approvals: {shell.exec: never}\n  protected_paths: [\"current/conf/**\"]\n  rules: [{deny: \"*\", path: current/.env}]\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for call, want := range map[string]event.Decision{
		`fs.read {"path":"current/.env"}`:                    event.DecisionDeny,
		`fs.read {"path":"releases/7/.env"}`:                 event.DecisionDeny,
		`fs.read {"path":"current/a"}`:                       event.DecisionAllow,
		`fs.write {"path":"current/a","content":""}`:         event.DecisionAllow,
		`fs.write {"path":"current/conf/a","content":""}`:    event.DecisionAsk,
		`fs.write {"path":"releases/7/conf/a","content":""}`: event.DecisionAsk,
		"shell.exec ln -sfT releases/8 current":              event.DecisionAsk,
		"shell.exec echo x > current/a":                      event.DecisionAllow,
	} {
		decides(t, "of the file", path, call, launch.Options{Flags: launch.Flags{Workspace: dir}}, want)
	}
}
