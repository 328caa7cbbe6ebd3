package command_test

import (
	"os"
	"path/filepath"
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
