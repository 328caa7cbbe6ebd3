package spec_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/golden"
)

var update = flag.Bool("update", false, "write the golden files anew")

// rules name the tools that the files of these tests may use.
var rules = spec.Options{Tools: []string{"fs.edit", "fs.read", "fs.write", "shell.exec"}}

// eachFile runs a test for every agent file of a directory.
func eachFile(t *testing.T, dir string, run func(t *testing.T, path string)) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); ext == ".yaml" || ext == ".json" {
			t.Run(e.Name(), func(t *testing.T) { run(t, filepath.Join(dir, e.Name())) })
		}
	}
}

// Every problem of every bad file, with its place: the golden files beside
// them are the messages that a user reads.
//
// rows: ALDO-6..10, ALDO-68
func TestBadFilesTellEveryProblemWithItsPlace(t *testing.T) {
	eachFile(t, "testdata/bad", func(t *testing.T, path string) {
		_, err := spec.ReadAgent(path, rules)
		var problems decode.Errors
		if !errors.As(err, &problems) || len(problems) == 0 {
			t.Fatalf("%s was accepted: %v", path, err)
		}
		golden.File(t, path+".golden", err.Error()+"\n", *update)
	})
}

func TestFilesThatPassTellWhatIsNotEnforced(t *testing.T) {
	eachFile(t, "testdata/warned", func(t *testing.T, path string) {
		a, err := spec.ReadAgent(path, rules)
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, w := range a.Warnings {
			lines = append(lines, w.String())
		}
		golden.File(t, path+".golden", strings.Join(lines, "\n")+"\n", *update)
	})
}
