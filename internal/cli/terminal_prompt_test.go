package cli

import (
	"strings"
	"testing"
)

func writeTurn(path string) string {
	return "- tool_calls: [{name: fs.write, arguments: {path: " + path + ", content: \"new\\n\"}}]\n"
}

// What is allowed beside an approval holds for the directory, after a kill too, and
// never for what is protected.
//
// rows: HAR-68
func TestWhatAPersonAllowsHoldsForTheRestOfTheRun(t *testing.T) {
	p := newProject(t, map[string]string{
		"agent.yaml": gatedAgent,
		"script.yaml": writeTurn("docs/a.md") + writeTurn("docs/b.md") + writeTurn("docs/sub/c.md") + writeTurn("docs/d.md") +
			writeTurn(".git/config") + "- text: the end\n",
	})
	y, s := p.atTerminal(nil, "run", "agent.yaml", "go")
	p.eventually("it asks", func() bool { return strings.Contains(y.seen(), prompt) })
	if !strings.Contains(y.plain(), "a approves this call and allows for this run: fs.write, path docs/*\r\n") {
		t.Errorf("it is not shown what would be allowed: %q", y.plain())
	}
	y.types("a\n")
	p.eventually("it asks about another directory", func() bool { return strings.Contains(y.seen(), "-3-1: fs.write docs/sub/c.md?") })
	if !p.exists("docs/b.md")() || strings.Contains(y.seen(), "-2-1: fs.write") {
		t.Errorf("a file of the directory was not written unasked: %q", y.plain())
	}
	id := p.newest()
	if err := s.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = s.Wait()
	if f := p.exits(0, "runs", "show", id); !strings.Contains(f.out, "allowed   fs.write, path docs/* (by ") {
		t.Errorf("the run is shown as %s", f.out)
	}

	y, s = p.atTerminal(nil, "runs", "resume", id)
	p.eventually("it asks again", func() bool {
		return strings.Contains(y.seen(), "-3-1: fs.write docs/sub/c.md?") && strings.Contains(y.seen(), prompt)
	})
	y.types("n\n")
	p.eventually("it asks about what is protected", func() bool {
		return strings.Contains(y.seen(), "-5-1: fs.write .git/config?") && strings.Contains(y.seen(), "reason, [e]dit: ")
	})
	y.types("a\n") // which is not offered
	p.eventually("it says how to answer", func() bool { return strings.Contains(y.plain(), "answer y to approve, n to reject") })
	y.types("n\n")
	if f := s.wait(); f.code != 0 || !p.exists("docs/d.md")() || p.exists("docs/sub/c.md")() || p.exists(".git/config")() {
		t.Errorf("exit code %d: %q", f.code, y.seen())
	}
}

func TestAnEditIsShownAsADifference(t *testing.T) {
	p := newProject(t, map[string]string{
		"agent.yaml": gatedAgent,
		"poem.txt":   "roses are red\nviolets are green\nsugar is sweet\n",
		"script.yaml": "- tool_calls: [{name: fs.read, arguments: {path: poem.txt}}]\n" +
			"- tool_calls: [{name: fs.edit, arguments: {path: poem.txt, old_string: green, new_string: \"blue\\e[2J\"}}]\n" +
			"- tool_calls: [{name: fs.write, arguments: {path: poem.txt, content: \"roses are red\\n\"}}]\n" +
			"- text: the end\n",
	})
	y, s := p.atTerminal(nil, "run", "agent.yaml", "go")
	p.eventually("it asks", func() bool { return strings.Contains(y.seen(), prompt) })
	want := "-2-1: fs.edit poem.txt?\x1b[0m\r\n" +
		"  \x1b[2m@@ -1,3 +1,3 @@\x1b[0m\r\n   roses are red\r\n  \x1b[31m-violets are green\x1b[0m\r\n  \x1b[32m+violets are blue⟨U+001B⟩[2J\x1b[0m\r\n   sugar is sweet\r\n"
	if seen := strings.ReplaceAll(y.seen(), "?\r\n\x1b[0m", "?\x1b[0m\r\n"); !strings.Contains(seen, want) {
		t.Errorf("the edit is shown as %q", seen)
	}
	y.types("n\n")
	p.eventually("it asks about the second", func() bool { return strings.Count(y.seen(), prompt) == 2 })
	if !strings.Contains(y.plain(), "\r\n  -violets are green\r\n  -sugar is sweet\r\n") {
		t.Errorf("the new content is shown as %q", y.plain())
	}
	y.types("n\n")
	if f := s.wait(); f.code != 0 || p.read("poem.txt") != "roses are red\nviolets are green\nsugar is sweet\n" {
		t.Errorf("exit code %d: %q", f.code, y.seen())
	}
}

// The editor has the terminal to itself, and the arguments as they are.
func TestArgumentsAreEditedInTheEditor(t *testing.T) {
	p := newProject(t, map[string]string{
		"agent.yaml":  gatedAgent,
		"script.yaml": shellTurn("touch touched") + "- text: the end\n  expect: {last: [\"changed the arguments of this call to\"]}\n",
		"editor.sh": `cat "$2" >&2; [ -t 0 ] || exit 9; echo editing what; read -r answer; case $answer in
  fail) exit 3;;
  wrong) echo '{"comand": "x"}' > "$2";;
  good) echo '{"command": "touch edited"}' > "$2";;
esac`,
	})
	y, s := p.atTerminal([]string{"EDITOR=sh editor.sh -x"}, "run", "agent.yaml", "go")
	asks := func(n int) {
		t.Helper()
		p.eventually("it asks", func() bool { return strings.Count(y.seen(), prompt) == n })
	}
	opens := func(n int) {
		t.Helper()
		p.eventually("the editor is there", func() bool { return strings.Count(y.plain(), "editing what") == n })
	}
	asks(1)
	y.types("e\n")
	opens(1)
	if !strings.Contains(y.plain(), "{\r\n  \"command\": \"touch touched\"\r\n}\r\n") {
		t.Errorf("the arguments are not there to be edited: %q", y.plain())
	}
	y.types("fail\n")
	asks(2)
	if !strings.Contains(y.plain(), "the editor sh editor.sh -x: exit status 3; the arguments are as they were") {
		t.Errorf("it is not said that the editor failed: %q", y.plain())
	}
	y.types("e\n")
	opens(2)
	y.types("same\n")
	asks(3)
	y.types("e\n")
	opens(3)
	y.types("wrong\n")
	p.eventually("it says what is wrong", func() bool { return strings.Contains(y.plain(), "[e]dit again, or Enter for the question: ") })
	y.types("e\n")
	opens(4)
	if !strings.Contains(y.plain(), "\r\n{\"comand\": \"x\"}\r\n") {
		t.Errorf("what was written is lost: %q", y.plain())
	}
	y.types("good\n")
	if f := s.wait(); f.code != 0 || !p.exists("edited")() || p.exists("touched")() {
		t.Errorf("exit code %d: %q", f.code, y.plain())
	}
}
