package shell_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/shell"
)

// Other calls change files between a call's judgement and its start. What it names
// must still be what it named; a pattern of names may stand for more of them.
func TestACommandRunsOnlyWhereItsPathsLeadWhereTheyLed(t *testing.T) {
	for name, c := range map[string]struct {
		command string
		change  func(dir string) error
		runs    bool
	}{
		"a file more fits":                    {"true *.go", func(dir string) error { return os.WriteFile(dir+"/new.go", nil, 0o600) }, true},
		"a file fewer":                        {"base64 a.go *.go", func(dir string) error { return os.Remove(dir + "/b.go") }, true},
		"a file more for a program":           {"base64 *.go", func(dir string) error { return os.WriteFile(dir+"/new.go", nil, 0o600) }, true},
		"a link in its place":                 {"base64 a.go", func(dir string) error { return relink(dir, "a.go", "secret") }, false},
		"a link among those it is":            {"base64 *.go", func(dir string) error { return relink(dir, "a.go", "secret") }, false},
		"a link to elsewhere":                 {"base64 *.go", func(dir string) error { return os.Symlink("/etc/hostname", dir+"/new.go") }, false},
		"a link to what is also named":        {"base64 also a.go", func(dir string) error { return relink(dir, "also", "secret") }, false},
		"a link to what a pattern finds, too": {"base64 *.go als*", func(dir string) error { return relink(dir, "also", "secret") }, false},
		"a new link to a file that is there":  {"base64 *.go", func(dir string) error { return os.Symlink("secret", dir+"/new.go") }, false},
		"a link that is written to":           {"echo x > a.go", func(dir string) error { return relink(dir, "a.go", "secret") }, false},
		"a program in the place of a look": {"cat a.go", func(dir string) error {
			return errors.Join(os.Mkdir(dir+"/bin", 0o700), os.WriteFile(dir+"/bin/cat", []byte("#!/bin/sh\n"), 0o700))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range []string{"a.go", "b.go", "secret"} {
				if err := os.WriteFile(filepath.Join(dir, file), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink("a.go", filepath.Join(dir, "also")); err != nil {
				t.Fatal(err)
			}
			sh := shell.New(shell.Options{Dir: dir, Env: append(os.Environ(), "PATH="+dir+"/bin:"+os.Getenv("PATH"))})
			args, err := json.Marshal(map[string]string{"command": c.command})
			if err != nil {
				t.Fatal(err)
			}
			facts := sh.Facts(args)
			if err := c.change(dir); err != nil {
				t.Fatal(err)
			}
			_, err = sh.Run(t.Context(), tool.Call{ID: "c", Args: args, Facts: &facts})
			refused, _ := errors.AsType[*tool.Error](err)
			if conflict := refused != nil && refused.Type == event.ErrorConflict; conflict == c.runs {
				t.Errorf("it ends with %v", err)
			}
		})
	}
}

func relink(dir, name, target string) error {
	return errors.Join(os.Remove(filepath.Join(dir, name)), os.Symlink(target, filepath.Join(dir, name)))
}
