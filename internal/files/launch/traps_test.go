package launch_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/files/launch"
)

const gatedReads = `{allow: [fs.read, fs.grep, fs.list, shell.exec], protected_paths: ["*.pem"],
  approvals: {fs.read: protected_paths, fs.grep: protected_paths, fs.list: protected_paths, shell.exec: protected_paths}}`

// The cases are mistakes of other agents' permission rules. A case has the tools block
// of a file, a call, and the required decision.
// rows: ALDO-57
func TestTrapsThatOthersFellInto(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{".git", "src/lib", "lib/src"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(".git", filepath.Join(dir, "state")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "key.pem"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(dir, "key.pem"), filepath.Join(dir, "lib/innocent")); err != nil {
		t.Fatal(err)
	}
	const allow, ask, deny = event.DecisionAllow, event.DecisionAsk, event.DecisionDeny
	for _, c := range []struct {
		trap, tools, call string
		want              event.Decision
	}{
		{"an allow overrides a deny", `{allow: [fs.write], rules: [{allow: fs.write, path: a.txt}, {deny: "fs.*"}]}`, `fs.write {"path":"a.txt","content":""}`, deny},
		{"an ask downgrades a deny", `{rules: [{ask: fs.write, path: a.txt}, {deny: fs.write}], approvals: {fs.write: always}}`, `fs.write {"path":"a.txt","content":""}`, deny},
		{"rewritten arguments keep the old decision: before", `{allow: [fs.write]}`, `fs.write {"path":"a.txt","content":""}`, allow},
		{"rewritten arguments keep the old decision: after", `{allow: [fs.write]}`, `fs.write {"path":".git/config","content":""}`, ask},
		{"the background is allowed what the foreground is not", `{allow: [shell.exec], rules: [{deny: shell.exec, command: "git push *"}]}`, "shell.exec sleep 1 & git push &", deny},
		{"the background of a substitution", `{allow: [shell.exec], rules: [{deny: shell.exec, command: "git push *"}]}`, "shell.exec echo $(ls & git push)", deny},
		{"src/** matches a nested src", `{rules: [{allow: fs.write, path: "src/**"}]}`, `fs.write {"path":"lib/src/a","content":""}`, ask},
		{"src/** matches its own", `{rules: [{allow: fs.write, path: "src/**"}]}`, `fs.write {"path":"src/lib/a","content":""}`, allow},
		{"a script brings code along", `{rules: [{allow: shell.exec, command: "touch *"}]}`, "shell.exec touch a && . ./more.sh", ask},
		{"and so does a variable", `{rules: [{allow: shell.exec, command: "touch *"}]}`, "shell.exec PATH=. touch a", ask},
		{"without it the rule holds", `{rules: [{allow: shell.exec, command: "touch *"}]}`, "shell.exec cat a | touch b", allow},
		{"the case of a name", `{allow: [fs.write]}`, `fs.write {"path":".GIT/config","content":""}`, ask},
		{"a stream of a file", `{allow: [fs.write]}`, `fs.write {"path":".git::$INDEX_ALLOCATION/config","content":""}`, ask},
		{"dots and spaces at the end", `{allow: [fs.write]}`, `fs.write {"path":".git. ./config","content":""}`, ask},
		{"backslashes", `{allow: [fs.write]}`, `fs.write {"path":".git\\config","content":""}`, ask},
		{"a character nobody sees", `{allow: [fs.write]}`, `fs.write {"path":".g\u200cit/config","content":""}`, ask},
		{"a hard link is read past what asks before reads", gatedReads, `fs.read {"path":"lib/innocent"}`, ask},
		{"and from above", gatedReads, `fs.grep {"path":"lib","pattern":"x"}`, ask},
		{"and by a command", gatedReads, "shell.exec cat lib/innocent", ask},
		{"and by one that searches", gatedReads, "shell.exec grep -r x lib", ask},
		{"what is beside it is read", gatedReads, "shell.exec grep -r x src", allow},
		{"and by a file tool", gatedReads, `fs.list {"path":"src"}`, allow},
		{"where reads do not ask, a hard link does not", `{allow: [fs.read], protected_paths: ["*.pem"]}`, `fs.read {"path":"lib/innocent"}`, allow},
		{"a link to the protected directory", `{allow: [fs.write]}`, `fs.write {"path":"state/config","content":""}`, ask},
		{"a link to the protected directory, in a command", `{allow: [shell.exec]}`, "shell.exec cd state && echo x > config", ask},
		{"a mode that bypasses overrides a deny", `{mode: bypass, rules: [{deny: shell.exec, command: "rm *"}]}`, "shell.exec /bin/rm x", deny},
		{"a mode that bypasses opens what is protected", `{mode: bypass}`, `fs.write {"path":".git/config","content":""}`, ask},
		{"a mode that bypasses opens what is outside", `{mode: bypass}`, "shell.exec echo x > ../x", ask},
		{"edits are accepted inside", `{mode: accept-edits}`, `fs.write {"path":"a","content":""}`, allow},
		{"edits are accepted where they are protected", `{mode: accept-edits}`, `fs.write {"path":".pawl/journal.db","content":""}`, ask},
		{"edits are accepted, and programs run", `{mode: accept-edits}`, "shell.exec ./x > a", ask},
		{"a plan changes something", `{mode: plan, allow: [shell.exec]}`, "shell.exec ls; touch x", deny},
		{"a plan looks", `{mode: plan, allow: [shell.exec]}`, "shell.exec ls | wc -l", allow},
		{"an option hides the subcommand", `{allow: [shell.exec], rules: [{deny: shell.exec, command: "git push *"}]}`, "shell.exec git -C . push", deny},
		{"a variable hides the subcommand", `{allow: [shell.exec], rules: [{deny: shell.exec, command: "git push *"}]}`, "shell.exec git $x", deny},
		{"a host is one of another name", `{rules: [{allow: shell.exec, host: "*.example.com"}]}`, "shell.exec curl https://example.com.evil.test", ask},
		{"one host of two is allowed", `{rules: [{allow: shell.exec, host: "*.example.com"}]}`, "shell.exec curl https://a.example.com https://evil.test", ask},
		{"a host is denied", `{allow: [shell.exec], rules: [{deny: "*", host: evil.test}]}`, "shell.exec curl https://EVIL.test/x", deny},
		{"an argument is denied", `{allow: [fs.write], rules: [{deny: fs.write, args: {content: "*BEGIN*KEY*"}}]}`, `fs.write {"path":"a","content":"-BEGIN RSA KEY-"}`, deny},
		{"never means never, but for what is guarded", `{approvals: {shell.exec: never}}`, `shell.exec eval "$x"`, allow},
		{"and asks where the owner protects something", `{approvals: {shell.exec: never}, protected_paths: ["*.pem"]}`, `shell.exec eval "$x"`, ask},
	} {
		path := filepath.Join(t.TempDir(), "agent.yaml")
		text := "identity: {name: x}\nmodel_policy: {primary: anthropic/claude-sonnet-4-5}\ntools: " + c.tools + "\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		e, err := launch.Explain(read(t, path), c.call, launch.Options{Flags: launch.Flags{Workspace: dir}})
		if err != nil {
			t.Errorf("%s: %v", c.trap, err)
			continue
		}
		if e.Decision.Decision != c.want {
			t.Errorf("%s: %s is %s by %s, want %s", c.trap, c.call, e.Decision.Decision, e.Decision.Rule, c.want)
		}
	}
}
