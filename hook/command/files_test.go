package command_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/hook/command"
)

// A hook runs outside of every sandbox, so that a model which puts a program
// where the hook's is looked for has left it.
func TestAProgramThatWouldBeFoundInTheWorkspaceIsOneOfTheFiles(t *testing.T) {
	workspace, elsewhere := t.TempDir(), t.TempDir()
	for _, file := range []string{"bin/jq", "venv/bin/ruff"} {
		path := filepath.Join(workspace, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(elsewhere, "jq"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, path string
		command    command.Command
		want       []string
	}{
		{"it is there", "WORK/bin:ELSE", command.Command{Words: []string{"jq", "-r"}}, []string{"bin/jq"}},
		{"it is there, and named by another program", "WORK/bin:ELSE", command.Command{Words: []string{"/usr/bin/env", "jq"}}, []string{"bin/jq"}},
		{"it is in a line", "WORK/bin:ELSE", command.Command{Line: "jq . | /bin/cat"}, []string{"bin/jq"}},
		{"it would be found first", "WORK/venv/bin:WORK/bin", command.Command{Words: []string{"jq"}}, []string{"venv/bin/jq", "bin/jq"}},
		{"it is found elsewhere first", "ELSE:WORK/bin", command.Command{Words: []string{"jq"}}, nil},
		{"it is looked for where the hook runs", "bin:ELSE", command.Command{Words: []string{"jq"}}, []string{"bin/jq"}},
		{"nothing of the workspace is searched", "ELSE", command.Command{Words: []string{"jq"}}, nil},
	} {
		c.command.Workspace = workspace
		c.command.Env = []string{"PATH=" + strings.NewReplacer("WORK", workspace, "ELSE", elsewhere).Replace(c.path)}
		var got []string
		for _, file := range c.command.Files() {
			if rel, err := filepath.Rel(workspace, file); err == nil && filepath.IsLocal(rel) {
				got = append(got, rel)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// A word that a shell reads is a command line, wherever it stands.
func TestTheFilesOfACommandLineInAWordAreTheHooks(t *testing.T) {
	workspace := t.TempDir()
	place(t, workspace, map[string]string{"hooks/g*": "#!/bin/sh\n", "agent/own*": "#!/bin/sh\n"})
	for _, words := range [][]string{
		{"./hooks/g"},
		{"sh", "-c", "./hooks/g --strict"},
		{"sh", "-ec", "exec ./hooks/g"},
		{"bash", "-lc", "set -e; (hooks/g)"},
		{"env", "-S", "sh -c ./hooks/g"},
		{"timeout", "5", "sh", "-c", `x=$(./hooks/g) && test -n "$x"`},
		{"sh", "-c", "`./hooks/g`"},
		{"sh", "-c", "cat <hooks/g"},
	} {
		c := command.Command{Words: words, FileDir: workspace, Workspace: workspace}
		guard := filepath.Join(workspace, "hooks/g")
		if files := c.Files(); !slices.Contains(files, guard) {
			t.Errorf("%q: files %q", words, files)
		}
		if strings.Contains(strings.Join(words, " "), "cat") {
			continue // read and not run
		}
		pins, err := c.Pins()
		if err != nil || !slices.ContainsFunc(pins, func(p command.Pin) bool { return p.Path == guard }) {
			t.Errorf("%q: pins %q, %v", words, pins, err)
		}
	}
	c := command.Command{Words: []string{"sh", "-c", `exec "$PAWL_AGENT_DIR/own"`}, FileDir: filepath.Join(workspace, "agent"), Workspace: workspace}
	if files := c.Files(); !slices.Contains(files, filepath.Join(workspace, "agent/own")) {
		t.Errorf("files %q", files)
	}
}
